"""`load`: how rows are published, and the hooks around that."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, model_validator

from hakiri_dagster.manifest.field_types import (
    ColumnNames,
    Duration,
    Flag,
    Model,
    Number,
    TableName,
    Text,
    Whole,
    Window,
    wrong,
)
from hakiri_dagster.manifest.hook_spec import Hooks

LoadMode = Literal[
    "append", "truncate", "upsert", "blue_green", "incremental_watermark", "cdc_mirror", "scd2", "delete_missing"
]
ADDING_MODES: frozenset[LoadMode] = frozenset({"append", "incremental_watermark"})
"""They change no row that another slice has published."""
WHOLE_TABLE_MODES: frozenset[LoadMode] = frozenset({"truncate", "blue_green", "delete_missing"})


HISTORY_MODES: frozenset[LoadMode] = frozenset({"scd2"})
"""They keep every version of a row; whether a load has the whole table is the table's to say."""
IN_ORDER_MODES: frozenset[LoadMode] = frozenset({"incremental_watermark"})
"""Their chunks are published one by one in the order of the cursor; one that fails stops those after it."""
STREAM_MODES: frozenset[LoadMode] = frozenset({"cdc_mirror"})
EXCHANGING_MODES: frozenset[LoadMode] = frozenset({"blue_green"})
"""They load into a table of its own, which takes the target's place."""


SubMicroseconds = Literal["warn", "quarantine"]


class RowCountDeltaSpec(Model):
    """The band around the running mean of earlier loads outside of which a warning is raised."""

    window_runs: Whole = Field(default=7, ge=3, description="How many earlier runs make the mean; three at least.")
    min_ratio: Number = Field(default=0.5, ge=0, description="Fewer rows than this share of the mean warn.")
    max_ratio: Number = Field(default=2.0, gt=0, description="More rows than this share of the mean warn.")

    @model_validator(mode="after")
    def _in_order(self) -> RowCountDeltaSpec:
        if self.min_ratio > self.max_ratio:
            raise wrong(
                f"min_ratio is {self.min_ratio:g} and max_ratio {self.max_ratio:g}, so every load would be outside",
                "min_ratio must not be greater than max_ratio",
            )
        return self


class BackupSpec(Model):
    """How many copies of the target are kept."""

    keep: Whole = Field(default=1, ge=1, description="How many copies are kept, the newest ones.")


def _backup(value: Any) -> Any:
    match value:
        case True:
            return {}
        case False:
            return None
        case None | dict() | BackupSpec():
            return value
        case _:
            raise wrong("must be true, false or a table", "write `true`, or `{ keep = 3 }`")


Backup = Annotated[
    BackupSpec | None, BeforeValidator(_backup, json_schema_input_type=Annotated[bool, Strict()] | BackupSpec | None)
]


class LoadSpec(Model):
    """How rows are published."""

    mode: LoadMode | None = Field(
        default=None, description="Default: `upsert` if the table has a primary key, else `append`."
    )
    upsert_key: ColumnNames | None = Field(
        default=None,
        description="`upsert`, `delete_missing`, `scd2`: the columns that tell rows apart. Default: the primary key.",
    )
    on_duplicate_key: Literal["last", "reject"] = Field(
        default="last",
        description="Modes with a key: of rows with one key in a slice the last counts (by the cursor), or the load "
        "fails.",
    )
    hard_delete: Text | None = Field(
        default=None,
        description="Modes with a key: a column of the source. Rows in which it is true, or not NULL if it is no "
        "boolean, delete the row of their key.",
    )
    close_missing: Flag | None = Field(
        default=None,
        description="`scd2`: every load has the whole source, and what that no longer holds is closed. Default: true "
        "for a table without a cursor.",
    )
    soft_delete: TableName | None = Field(
        default=None,
        description="`upsert`, `delete_missing`: a column of the target that gets the time of the load, instead of "
        "the row being deleted.",
    )
    watermark_column: Text | None = Field(
        default=None, description="`incremental_watermark`: the column whose highest value is the mark."
    )
    lag: Window | None = Field(
        default=None,
        description="How far before the mark rows are read again with each load, and replace what was published there, "
        "as they may come late: `1h`, `2d`, or a number of ids. Default: none where the source tells which of its "
        "transactions are open; see [Cursors on busy sources](cursors.md).",
    )
    max_lag: Duration = Field(
        default="1h",
        description="Sources that tell which transactions are open: one that is open for longer, and keeps loads "
        "reading the same stretch again, raises an alert.",
    )
    on_max_lag: Literal["warn", "wait"] = Field(
        default="warn",
        description="What loads do while such a transaction is open: `warn` goes on, and reads again what came since "
        "it began; `wait` leaves that stretch pending until it ends.",
    )
    cdc_source: Text | None = Field(default=None, description="`cdc_mirror`: the stream of changes.")
    fail_on_empty_source: Flag = Field(
        default=True, description="Modes that replace or delete all rows refuse to do so for an empty source."
    )
    on_miss_action: Literal["alert", "ignore"] | None = Field(
        default=None, description="What a source that comes up empty does: `alert` raises an alert. Default: `ignore`."
    )
    empty_as_null: Flag | None = Field(
        default=None,
        description="Empty strings become NULL. Default: true for text formats, false for typed sources.",
    )
    bad_rows: Literal["quarantine", "abort"] = Field(
        default="quarantine",
        description="A line that cannot be parsed, or a row that cannot be stored, is set aside or stops the run.",
    )
    sub_microseconds: SubMicroseconds = Field(
        default="warn",
        description="Timestamps of files and APIs with digits beyond microseconds, which PostgreSQL does not keep: cut,"
        " with one warning that counts them, or their rows are quarantined. A declared precision, such as"
        " `timestamp(6)`, permits the cut.",
    )
    provenance: Literal["standard", "full"] = Field(
        default="standard", description="`full` adds `_hakiri_ingested_at` and `_hakiri_row_hash`."
    )
    adopt: Flag = Field(
        default=False,
        description="Takes over what the target holds of a pipeline or table that this project does not declare, or of "
        "another project: its published chunks count as published by this table. Without it such a target is refused.",
    )
    expected_row_count_delta: RowCountDeltaSpec | None = Field(
        default=None, description="Raises an alert for a run that loads far more or fewer rows than the ones before it."
    )
    backup_before_load: Backup = Field(
        default=None,
        description="Keeps a copy of the target as it was before a run that may change or delete its rows; "
        "`true` keeps one.",
    )
    pre_hook: Hooks | None = Field(default=None, description="One hook, or a list: before the first row moves.")
    post_hook: Hooks | None = Field(default=None, description="One hook, or a list: after a load that succeeded.")
