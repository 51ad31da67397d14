"""The resolved project: pipelines and tables with every default filled in. All later layers read these."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakiri_dagster.manifest.contracts import Contract
from hakiri_dagster.manifest.field_types import MAX_IDENTIFIER_BYTES
from hakiri_dagster.manifest.load_spec import (
    HISTORY_MODES,
    IN_ORDER_MODES,
    STREAM_MODES,
    WHOLE_TABLE_MODES,
    LoadMode,
    LoadSpec,
)
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.manifest.spec import BackfillSpec, ValidateSpec
from hakiri_dagster.manifest.trigger_spec import (
    DeliveredTrigger,
    FilesTrigger,
    QueueTrigger,
    SourceTrigger,
    Triggers,
    WebhookTrigger,
)
from hakiri_dagster.manifest.verify_spec import VerifySpec

READS_WITHOUT_REQUESTS = frozenset(("files", "postgres"))
"""Connectors that no budget of requests concerns."""

_PLAIN_NAME = re.compile("[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a pipeline or table is written."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A source or destination with its `${NAME}`s filled in. Its repr hides the config, which may hold secrets.
    `preset`: what an API is known by, whose config was written out of that."""

    connector: str
    config: Mapping[str, Any]
    name: str | None = None
    preset: str | None = None

    @property
    def known_as(self) -> str:
        """As the manifest names its connector."""
        return self.preset or self.connector

    def __repr__(self) -> str:
        return f"Endpoint({self.connector!r}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class Publishes:
    """A table of the project and the target that it publishes to."""

    pipeline_id: str
    table: str
    target_schema: str
    target_name: str


@dataclass(frozen=True, slots=True)
class ProjectKey:
    """By what a destination tells the project from others, and which of its tables publish where."""

    id: str | None
    name: str
    root: Path
    publishes: frozenset[Publishes]

    def publishers_of(self, table: Table) -> frozenset[tuple[str, str]]:
        """The pipelines and tables that are declared with the target of this one."""
        target = table.target_schema, table.target_name
        return frozenset((p.pipeline_id, p.table) for p in self.publishes if (p.target_schema, p.target_name) == target)


@dataclass(frozen=True, slots=True)
class Table:
    """One target table of a pipeline: one Dagster asset, key `[pipeline id, name]`."""

    pipeline_id: str
    name: str
    source: Endpoint
    destination: Endpoint
    target_schema: str
    target_name: str
    mode: LoadMode
    primary_key: tuple[str, ...]
    upsert_key: tuple[str, ...]
    cursor: str | None
    path: str | None
    columns: Mapping[str, str]
    load: LoadSpec
    backfill: BackfillSpec
    validation: ValidateSpec
    description: str | None
    owners: tuple[str, ...]
    tags: Mapping[str, str]
    schedule: str | None
    timezone: str
    origin: Origin
    position: int = 0
    """Among the tables of its pipeline."""
    contract: Contract = "evolve"
    endpoint: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How its records are asked of an API; empty for other sources."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Old names of columns by their new ones."""
    verify: VerifySpec | None = None
    """How often the target is compared with the source; None: never by itself."""
    told_when: bool = False
    """Something from outside tells when there is something to load."""
    project: ProjectKey | None = field(default=None, repr=False, compare=False)
    """None only for tables that no manifest declares."""

    @property
    def label(self) -> str:
        """How messages name the table."""
        return f"{self.pipeline_id}/{self.name}"

    @property
    def in_order(self) -> bool:
        return self.mode in IN_ORDER_MODES

    @property
    def streams(self) -> bool:
        """Its rows come as a stream of changes, not in chunks."""
        return self.mode in STREAM_MODES

    @property
    def whole_table(self) -> bool:
        """Every load has all rows of the source: the table has one chunk, whatever its cursor is."""
        return self.mode in WHOLE_TABLE_MODES or self._closes_missing

    @property
    def _closes_missing(self) -> bool:
        declared = self.load.close_missing
        return self.mode in HISTORY_MODES and (self.cursor is None if declared is None else declared)

    @property
    def quarantine_table(self) -> tuple[str, str]:
        """Schema and name of the table that holds rows that were set aside."""
        declared = self.validation.quarantine.table
        if declared is None:
            return "hakiri", _fitting(f"quarantine_{self.pipeline_id}_{self.name}")
        schema, _, name = declared.rpartition(".")
        return schema or self.target_schema, name

    @property
    def quarantine_place(self) -> str:
        """As it can be put into a query."""
        return ".".join(map(_as_written, self.quarantine_table))


def _as_written(name: str) -> str:
    doubled = name.replace('"', '""')
    return name if _PLAIN_NAME.fullmatch(name) else f'"{doubled}"'


def _fitting(name: str) -> str:
    """PostgreSQL would cut a longer name in silence, and two could become one."""
    encoded = name.encode()
    if len(encoded) <= MAX_IDENTIFIER_BYTES:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    return f"{encoded[: MAX_IDENTIFIER_BYTES - 9].decode(errors='ignore')}_{digest}"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`backfill`: what is said of the pipeline as a whole; a table may cut its history in another way."""

    id: str
    tables: tuple[Table, ...]
    schedule: str | None
    timezone: str
    secrets: tuple[str, ...]
    description: str | None
    owners: tuple[str, ...]
    tags: Mapping[str, str]
    origin: Origin
    backfill: BackfillSpec = field(default_factory=BackfillSpec)
    triggers: Triggers = ()
    verify: VerifySpec | None = None

    @property
    def receives(self) -> bool:
        """Something from outside tells that there is something to load."""
        return any(isinstance(trigger, DeliveredTrigger) for trigger in self.triggers)

    @property
    def webhooks(self) -> tuple[WebhookTrigger, ...]:
        return tuple(trigger for trigger in self.triggers if isinstance(trigger, WebhookTrigger))

    @property
    def queues(self) -> tuple[QueueTrigger, ...]:
        return tuple(trigger for trigger in self.triggers if isinstance(trigger, QueueTrigger))

    @property
    def files_trigger(self) -> FilesTrigger | None:
        return next((one for one in self.triggers if isinstance(one, FilesTrigger)), None)

    @property
    def source_trigger(self) -> SourceTrigger | None:
        return next((one for one in self.triggers if isinstance(one, SourceTrigger)), None)

    @property
    def rate_budget(self) -> Rate | None:
        """Of requests to its source."""
        text = self.backfill.rate_budget
        return None if text is None or not self.sends_requests else Rate.parse(text)

    @property
    def write_budget(self) -> Rate | None:
        """Of writes to its destination."""
        most = self.backfill.destination_writes_per_sec
        return None if most is None else Rate(most, 1)

    @property
    def sends_requests(self) -> bool:
        return all(table.source.connector not in READS_WITHOUT_REQUESTS for table in self.tables)

    def table(self, name: str) -> Table | None:
        return next((t for t in self.tables if t.name == name), None)


@dataclass(frozen=True, slots=True)
class Project:
    """`root` holds `manifests/` and `.hakiri/`."""

    root: Path
    name: str
    audit_url: str | None
    pipelines: tuple[Pipeline, ...]
    max_parallel_chunks: int | None = None

    @property
    def state_dir(self) -> Path:
        return self.root / ".hakiri"

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for pipeline in self.pipelines for table in pipeline.tables)

    def pipeline(self, pipeline_id: str) -> Pipeline | None:
        return next((p for p in self.pipelines if p.id == pipeline_id), None)
