"""The audit DB's tables. A change here needs a step in `migrations`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    null,
)
from sqlalchemy.types import TypeEngine

POSTGRES_SCHEMA: Final = "hakiri"


class UtcTime(TypeDecorator[datetime]):
    """timestamptz in PostgreSQL; in SQLite ISO text of one width, so that it sorts."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return TIMESTAMP(timezone=True) if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: datetime | str | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC)


METADATA: Final = MetaData()

AUDIT_VERSION: Final = Table("audit_version", METADATA, Column("version", Integer, nullable=False))

PIPELINE_CURSOR: Final = Table(
    "pipeline_cursor",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("cursor_json", Text, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

PIPELINE_RUN: Final = Table(
    "pipeline_run",
    METADATA,
    Column("run_id", Text, nullable=False),
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False, default=""),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("status", Text, nullable=False),
    Column("row_count", BigInteger),
    Column("bytes", BigInteger),
    Column("error_kind", Text),
    Column("error_msg", Text),
    Column("trace_id", Text),
    Column("holder_node", Text),
    PrimaryKeyConstraint("run_id", "pipeline_id", "table_name"),
    Index("pipeline_run_recent", "pipeline_id", "table_name", "started_at"),
)
OPEN_RUN: Final = PIPELINE_RUN.c.status == "running"
RUN_OPEN: Final = Index(
    "pipeline_run_open", PIPELINE_RUN.c.holder_node, sqlite_where=OPEN_RUN, postgresql_where=OPEN_RUN
)

AS_IT_WAS: Final = (
    "generation", "predicate", "status", "attempts", "started_at", "completed_at", "cursor_committed", "covered",
    "run_id", "winning_attempt", "load_id", "rows", "bytes", "carried_from",
)  # fmt: skip
"""Of a chunk that is rewound, what is kept."""

# `predicate` is the chunk's bounds as JSON; its cursors are positions (`planning/chunks.py`), as text.
PIPELINE_CHUNKS: Final = Table(
    "pipeline_chunks",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("predicate", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("started_at", UtcTime),
    Column("completed_at", UtcTime),
    Column("cursor_committed", Text),
    Column("covered", Text, nullable=False),
    Column("seen", Text),
    Column("attempt_seen", Text),
    Column("holder_node", Text),
    Column("leased_until", UtcTime),
    Column("run_id", Text),
    Column("winning_attempt", Text),
    Column("load_id", BigInteger),
    Column("rows", BigInteger),
    Column("bytes", BigInteger),
    Column("carried_from", Text, nullable=False),
    Column("supersedes", Text, nullable=False),
    Column("rewind_id", BigInteger),
    Column("gap", Integer),
    Column("token", Text),
    Column("error_kind", Text),
    Column("error_msg", Text),
    PrimaryKeyConstraint("pipeline_id", "table_name", "chunk_id"),
)

_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

# Who asked when for which stretch of the cursor, and what each chunk was until then. Rows are added and never changed.
REWIND: Final = Table(
    "rewind",
    METADATA,
    Column("rewind_id", _NUMBER, primary_key=True, autoincrement=True),
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("lower", Text, nullable=False),
    Column("upper", Text, nullable=False),
    Column("asked_from", Text, nullable=False),
    Column("asked_to", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("asked_at", UtcTime, nullable=False),
    Index("rewind_of_table", "pipeline_id", "table_name"),
)
REWOUND_CHUNK: Final = Table(
    "rewound_chunk",
    METADATA,
    Column("rewind_id", _NUMBER, nullable=False),
    Column("chunk_id", Text, nullable=False),
    *(Column(name, PIPELINE_CHUNKS.c[name].type, nullable=PIPELINE_CHUNKS.c[name].nullable) for name in AS_IT_WAS),
    PrimaryKeyConstraint("rewind_id", "chunk_id"),
)

# The `taken_in_…` columns are the version that the chunk plan reflects; the others the one that was last looked at.
SOURCE_FILES: Final = Table(
    "source_files",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("lower_cursor", Text),
    Column("upper_cursor", Text),
    Column("null_cursors", BigInteger, nullable=False),
    Column("rows", BigInteger),
    Column("taken_in_hash", Text),
    Column("taken_in_lower", Text),
    Column("taken_in_upper", Text),
    Column("taken_in_nulls", BigInteger),
    PrimaryKeyConstraint("pipeline_id", "table_name", "path"),
)

TABLE_SCHEMA: Final = Table(
    "table_schema",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("schema_json", Text, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

TABLE_STATE: Final = Table(
    "table_state",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("start", Text),
    Column("planned_at", UtcTime, nullable=False),
    Column("source_upper", Text),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

# The highest cursors that surveys of a source saw, with the transactions that were open then (`planning/horizon.py`).
CURSOR_HISTORY: Final = Table(
    "cursor_history",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("history_json", Text, nullable=False),
    Column("saved_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

# When a sensor looked at a table's source last, and what was found. `said` tells the source's word from any other;
# `shown` is how many chunks Dagster showed then as published; `failures` counts looks that did not end well.
SOURCE_LOOK: Final = Table(
    "source_look",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("looked_at", UtcTime, nullable=False),
    Column("surveyed_at", UtcTime),
    Column("said", Text),
    Column("shown", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

# Parts of tables that a source does not answer for, though it does for others.
SILENT_PART: Final = Table(
    "silent_part",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("since", UtcTime, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name", "part"),
)

# One open row a condition: `acknowledged_at` closes it, and the next time begins a row of its own. `passed_on_at` is
# NULL while somebody still has to be told; `tries` is how often that was tried.
ALERT: Final = Table(
    "alert",
    METADATA,
    Column("alert_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("details_json", Text, nullable=False),
    Column("run_id", Text),
    Column("raised_at", UtcTime, nullable=False),
    Column("last_seen", UtcTime, nullable=False),
    Column("times", Integer, nullable=False),
    Column("acknowledged_at", UtcTime),
    Column("passed_on_at", UtcTime),
    Column("tries", Integer, nullable=False),
)
OPEN_ALERT: Final = ALERT.c.acknowledged_at.is_(null())
Index(
    "alert_open",
    *(ALERT.c[name] for name in ("pipeline_id", "table_name", "kind", "subject")),
    unique=True,
    sqlite_where=OPEN_ALERT,
    postgresql_where=OPEN_ALERT,
)

# A source's columns as the last load that followed them found them; `version` grows with each change.
ACCEPTED_SCHEMA: Final = Table(
    "accepted_schema",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("schema_json", Text, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "table_name"),
)

# One row a change and decision, however many runs meet it.
SCHEMA_LOG: Final = Table(
    "schema_log",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("change_id", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("kind", Text, nullable=False),
    Column("column_name", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Column("run_id", Text),
    Column("actor", Text),
    Column("reason", Text),
    PrimaryKeyConstraint("pipeline_id", "table_name", "change_id", "decision"),
)

# `state_json` is a `planning/rate_window.py`; whoever changes it holds the row's lock.
RATE_BUDGET: Final = Table(
    "rate_budget",
    METADATA,
    Column("pipeline_id", Text, nullable=False),
    Column("of", Text, nullable=False),
    Column("state_json", Text, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "of"),
)

# What budgets gave to a run, and how long it waited for that; `chunk_id` is empty where it was of no chunk.
BUDGET_USE: Final = Table(
    "budget_use",
    METADATA,
    Column("run_id", Text, nullable=False),
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("of", Text, nullable=False),
    Column("permits", BigInteger, nullable=False),
    Column("wait_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("run_id", "pipeline_id", "table_name", "chunk_id", "of"),
)

# Passes over sources that are at work, and those that wait for their turn.
PASS_PLACE: Final = Table(
    "pass_place",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("pipeline_id", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("holder_node", Text, nullable=False),
    Column("parallelism", Integer, nullable=False),
    Column("at_work", Boolean, nullable=False),
    Column("leased_until", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)

# `hakiri pipeline rename`, from its first step to its last. `old_table` and `new_table` are empty where a whole
# pipeline is renamed. While `finished_at` is NULL, neither name is loaded.
PIPELINE_RENAME: Final = Table(
    "pipeline_rename",
    METADATA,
    Column("rename_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("old_pipeline", Text, nullable=False),
    Column("old_table", Text, nullable=False),
    Column("new_pipeline", Text, nullable=False),
    Column("new_table", Text, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
)

# What reached a pipeline's triggers: no body, only its hash. `proof` is a hash as well. `run_ids` is a list, as JSON.
DELIVERIES: Final = Table(
    "deliveries",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("pipeline_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("delivery_id", Text, nullable=False),
    Column("proof", Text),
    Column("received_at", UtcTime, nullable=False),
    Column("body_sha256", Text, nullable=False),
    Column("body_bytes", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("batch", Text),
    Column("started_at", UtcTime),
    Column("ended_at", UtcTime),
    Column("run_ids", Text, nullable=False),
    Column("look_after", UtcTime, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("error", Text),
    UniqueConstraint("pipeline_id", "source", "delivery_id"),
    UniqueConstraint("pipeline_id", "proof"),
    Index("deliveries_of_batch", "batch"),
)
OPEN_DELIVERY: Final = DELIVERIES.c.ended_at.is_(null())
_IS_OVER: Final = DELIVERIES.c.ended_at.is_not(null())
DELIVERY_ENDS: Final = Index(
    "deliveries_ended", DELIVERIES.c.ended_at, sqlite_where=_IS_OVER, postgresql_where=_IS_OVER
)
"""For what is over so long ago that it is forgotten."""
Index(
    "deliveries_open",
    DELIVERIES.c.pipeline_id,
    sqlite_where=OPEN_DELIVERY,
    postgresql_where=OPEN_DELIVERY,
)
