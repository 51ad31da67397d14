"""The one schema of a manifest. TOML and JSON both become these models; JSON Schema is exported from them.

snake_case is canonical; every name is also accepted in the camelCase of the seed documents.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

LoadMode = Literal[
    "append", "truncate", "upsert", "blue_green", "incremental_watermark", "cdc_mirror", "scd2", "delete_missing"
]
WHOLE_TABLE_MODES: frozenset[LoadMode] = frozenset({"truncate", "blue_green", "delete_missing", "scd2"})

OnFail = Literal["abort", "warn"]
RowOnFail = Literal["abort", "warn", "skip"]
FieldTypeName = Literal["string", "integer", "float", "boolean", "date", "timestamp", "json", "uuid"]


class Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasChoices(name, to_camel(name)) if to_camel(name) != name else name
        ),
    )


class SourceSpec(Model):
    """Where rows come from."""

    connector: str = Field(description="`files` or `postgres`.")
    config: dict[str, Any] = Field(default_factory=dict, description="The connector's own settings.")


class DestinationSpec(Model):
    """Where rows land."""

    connector: str = Field(description="`postgres`; `context` is the project's default destination.")
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="`url` (none: the project's embedded PostgreSQL) and `schema` (default `public`).",
    )


class SqlHook(Model):
    type: Literal["sql"]
    statement: str


class RefreshMatViewHook(Model):
    type: Literal["refresh_mat_view"]
    view: str


class WebhookHook(Model):
    type: Literal["webhook"]
    url: str


class CustomFunctionHook(Model):
    type: Literal["custom_function"]
    function: str


Hook = Annotated[
    SqlHook | RefreshMatViewHook | WebhookHook | CustomFunctionHook, Field(discriminator="type")
]


class RowCountDeltaSpec(Model):
    """The band around the running mean of earlier loads outside of which a warning is raised."""

    window_runs: int = Field(default=7, ge=1)
    min_ratio: float = Field(default=0.5, ge=0)
    max_ratio: float = Field(default=2.0, gt=0)


class LoadSpec(Model):
    """How rows are published."""

    mode: LoadMode | None = Field(
        default=None, description="Default: `upsert` if the table has a primary key, else `append`."
    )
    upsert_key: tuple[str, ...] | None = Field(default=None, description="Default: the primary key.")
    watermark_column: str | None = None
    cdc_source: str | None = None
    fail_on_empty_source: bool = True
    on_miss_action: Literal["alert", "ignore"] | None = None
    empty_as_null: bool | None = Field(
        default=None, description="Empty strings become NULL. Default: true for text formats, false for typed sources."
    )
    bad_rows: Literal["quarantine", "abort"] = Field(
        default="quarantine",
        description="What happens to a line that cannot be parsed or a row that cannot be stored.",
    )
    provenance: Literal["standard", "full"] = Field(
        default="standard", description="`full` adds `_hakiri_ingested_at` and `_hakiri_row_hash`."
    )
    expected_row_count_delta: RowCountDeltaSpec | None = None
    backup_before_load: bool = False
    pre_hook: Hook | tuple[Hook, ...] | None = None
    post_hook: Hook | tuple[Hook, ...] | None = None


class BackfillSpec(Model):
    """How history is cut into chunks and how fast it is pulled."""

    window: str | int | None = Field(
        default=None,
        description="`15m` `6h` `30d` `1w` `1mo` `1q` `1y`, or a number of ids. Default: `1mo`, or 1000000 ids.",
    )
    start_from: str | int | None = Field(default=None, description="Rows before this are never read.")
    parallelism: int = Field(default=1, ge=1, le=64)
    max_chunks_per_tick: int = Field(default=8, ge=1)
    rate_budget: str | None = Field(default=None, description="Requests a source tolerates, like `60/min`.")


class RowCountValidator(Model):
    min: int | None = None
    max: int | None = None
    on_fail: OnFail = "abort"


class FreshnessValidator(Model):
    within_hours: float
    column: str
    on_fail: OnFail = "abort"


class FkIntegrityValidator(Model):
    column: str
    ref_table: str
    ref_column: str
    on_fail: OnFail = "abort"


class CardinalityValidator(Model):
    column: str
    min_distinct: int | None = None
    max_distinct: int | None = None
    on_fail: OnFail = "abort"


class DuplicateKeyValidator(Model):
    columns: tuple[str, ...]
    on_fail: OnFail = "abort"


class DatasetLevelSpec(Model):
    """Questions asked of the candidate before it is published."""

    row_count: RowCountValidator | None = None
    freshness: FreshnessValidator | None = None
    fk_integrity: FkIntegrityValidator | None = None
    cardinality: CardinalityValidator | None = None
    duplicate_key: DuplicateKeyValidator | None = None


class NotNullRule(Model):
    type: Literal["not_null", "notNull"]
    field: str
    on_fail: RowOnFail = "abort"


class RegexRule(Model):
    type: Literal["regex"]
    field: str
    pattern: str
    on_fail: RowOnFail = "abort"


class RangeRule(Model):
    type: Literal["range"]
    field: str
    min: float | None = None
    max: float | None = None
    on_fail: RowOnFail = "abort"


class MaxLengthRule(Model):
    type: Literal["max_length", "maxLength"]
    field: str
    max: int
    on_fail: RowOnFail = "abort"


class FieldTypeRule(Model):
    type: Literal["field_type", "fieldType"]
    field: str
    expected: FieldTypeName
    on_fail: RowOnFail = "abort"


RowRule = Annotated[
    NotNullRule | RegexRule | RangeRule | MaxLengthRule | FieldTypeRule, Field(discriminator="type")
]


class QuarantineSpec(Model):
    """Where rows that were set aside are kept."""

    enabled: bool = True
    table: str | None = Field(
        default=None, description="`schema.table`. Default: `hakiri.quarantine_<pipeline>_<table>`."
    )


class ValidateSpec(Model):
    """What must hold for a load to be published."""

    dataset_level: DatasetLevelSpec = Field(default_factory=DatasetLevelSpec)
    row_level: tuple[RowRule, ...] = ()
    quarantine: QuarantineSpec = Field(default_factory=QuarantineSpec)


class TableSpec(Model):
    """One table. What it does not say, its pipeline says."""

    name: str
    target: str | None = Field(default=None, description="The target table's name, if it is not `name`.")
    path: str | None = Field(default=None, description="`files`: a file, a folder or a glob.")
    primary_key: tuple[str, ...] | None = None
    columns: dict[str, str] = Field(
        default_factory=dict, description="PostgreSQL types by column, over what the source says or was inferred."
    )
    incremental: str | None = None
    load: LoadSpec | None = None
    backfill: BackfillSpec | None = None
    validation: ValidateSpec | None = Field(default=None, validation_alias="validate")
    transforms: tuple[dict[str, Any], ...] | None = None
    description: str | None = None
    owners: tuple[str, ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)


class PipelineSpec(Model):
    """A source, its tables, where they land and how."""

    json_schema: str | None = Field(default=None, validation_alias="$schema")
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", description="`[a-z0-9][a-z0-9_-]*`, unique in the project.")
    source: SourceSpec
    tables: tuple[str | TableSpec, ...] = Field(min_length=1)
    destination: str | DestinationSpec | None = None
    schedule: str | None = Field(default=None, description="`every 15m` or a cron expression.")
    timezone: str = "UTC"
    incremental: str | None = Field(default=None, description="The cursor column.")
    secrets: tuple[str, ...] = Field(default=(), description="Environment variables that must be set.")
    load: LoadSpec = Field(default_factory=LoadSpec)
    backfill: BackfillSpec = Field(default_factory=BackfillSpec)
    validation: ValidateSpec = Field(default_factory=ValidateSpec, validation_alias="validate")
    transforms: tuple[dict[str, Any], ...] = ()
    description: str | None = None
    owners: tuple[str, ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)


class ProjectInfo(Model):
    name: str = "hakiri"
    version: str | None = None


class ContextSpec(Model):
    path: str | None = None
    default_destination: str | None = None


class AuditSpec(Model):
    url: str | None = Field(default=None, description="PostgreSQL; none: SQLite in `.hakiri/`.")


class SyncSpec(Model):
    bucket: str
    endpoint: str | None = None
    region: str | None = None


class ProjectSpec(Model):
    """`hakiri.toml`."""

    json_schema: str | None = Field(default=None, validation_alias="$schema")
    project: ProjectInfo = Field(default_factory=ProjectInfo)
    context: ContextSpec = Field(default_factory=ContextSpec)
    audit: AuditSpec = Field(default_factory=AuditSpec)
    sync: SyncSpec | None = None
    destinations: dict[str, DestinationSpec] = Field(default_factory=dict)
    pipeline: tuple[PipelineSpec, ...] = ()
