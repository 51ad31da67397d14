"""The one schema of a manifest. TOML and JSON both become these models; JSON Schema is exported from them.

snake_case is canonical; every name is also accepted in the camelCase of the seed documents, and the seed's flat
names on a table or pipeline as well (`flat_keys`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, Tag, model_validator

from hakiri_dagster.manifest import rule_spec, validator_spec
from hakiri_dagster.manifest.contracts import Contract
from hakiri_dagster.manifest.field_types import (
    ColumnNames,
    ColumnType,
    Duration,
    Flag,
    Model,
    Owner,
    PipelineId,
    QualifiedName,
    RateBudget,
    ScheduleText,
    StartFrom,
    TableName,
    Tags,
    Text,
    TimeZone,
    VariableName,
    Whole,
    Window,
    wrong,
)
from hakiri_dagster.manifest.flat_keys import fold_flat_keys
from hakiri_dagster.manifest.load_spec import LoadSpec
from hakiri_dagster.manifest.parting import PartitionKeys
from hakiri_dagster.manifest.preset_spec import GithubConfig, StripeConfig
from hakiri_dagster.manifest.rates import MOST_A_SECOND
from hakiri_dagster.manifest.rest_spec import (
    ContinuedSpec,
    CursorParams,
    DottedPath,
    Flatten,
    PaginationSpec,
    Params,
    RestConfig,
    SegmentsSpec,
)
from hakiri_dagster.manifest.rule_spec import RowRules
from hakiri_dagster.manifest.source_config import (
    EmbeddedTargetConfig,
    FilesConfig,
    PostgresConfig,
    PostgresTargetConfig,
    PostgresUrl,
)
from hakiri_dagster.manifest.trigger_spec import Triggers
from hakiri_dagster.manifest.validator_spec import DatasetLevelSpec, LateSpec
from hakiri_dagster.manifest.verify_spec import VerifySpec

BUILT_SOURCES = ("files", "postgres", "rest", "github", "stripe")
_SOURCES_ONLY = frozenset(BUILT_SOURCES) - {"postgres"}


def _connector_of(value: Any) -> str | None:
    """The tag of a source or destination: its connector if it is built, else `other`."""
    connector = value.get("connector") if isinstance(value, dict) else getattr(value, "connector", None)
    if not isinstance(connector, str):
        return "other" if isinstance(value, dict) else None
    return connector if connector in (*BUILT_SOURCES, "context") else "other"


def _source_tag(value: Any) -> str | None:
    return "other" if _connector_of(value) == "context" else _connector_of(value)


def _destination_tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "name"
    return "other" if _connector_of(value) in _SOURCES_ONLY else _connector_of(value)


class FilesSource(Model):
    """Files in a folder or a glob."""

    connector: Literal["files"] = Field(description="CSV, JSON lines, Parquet or ORC files.")
    config: FilesConfig = Field(description="What to read and how.")


class PostgresSource(Model):
    """Tables and views of a PostgreSQL."""

    connector: Literal["postgres"] = Field(description="Any table or view that can be queried.")
    config: PostgresConfig = Field(default_factory=PostgresConfig, description="Where the tables are.")


class RestSource(Model):
    """Lists of records of a REST API."""

    connector: Literal["rest"] = Field(description="An API that answers with JSON.")
    config: RestConfig = Field(description="Where the API is, and how it is asked.")


class GithubSource(Model):
    """What belongs to a repository of GitHub."""

    connector: Literal["github"] = Field(description="GitHub's REST API: its tables are known by name.")
    config: GithubConfig = Field(description="Which repository.")


class StripeSource(Model):
    """The objects of an account of Stripe."""

    connector: Literal["stripe"] = Field(description="Stripe's API, or one like it: its tables are known by name.")
    config: StripeConfig = Field(description="Whose account.")


class OtherSource(Model):
    """A connector that this version does not build yet."""

    connector: Text = Field(
        description="A connector that is not built yet.",
        json_schema_extra={"not": {"enum": list(BUILT_SOURCES)}},
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="The connector's own settings.")


SourceSpec = Annotated[
    Annotated[FilesSource, Tag("files")]
    | Annotated[PostgresSource, Tag("postgres")]
    | Annotated[RestSource, Tag("rest")]
    | Annotated[GithubSource, Tag("github")]
    | Annotated[StripeSource, Tag("stripe")]
    | Annotated[OtherSource, Tag("other")],
    Discriminator(_source_tag),
]


class PostgresDestination(Model):
    """A PostgreSQL."""

    connector: Literal["postgres"] = Field(description="A PostgreSQL; without a `url` the embedded one.")
    config: PostgresTargetConfig = Field(default_factory=PostgresTargetConfig, description="Where the tables land.")


class ContextDestination(Model):
    """The project's embedded PostgreSQL."""

    connector: Literal["context"] = Field(description="The project's embedded PostgreSQL.")
    config: EmbeddedTargetConfig = Field(default_factory=EmbeddedTargetConfig, description="Where the tables land.")


class OtherDestination(Model):
    """A destination that this version does not build yet."""

    connector: Text = Field(
        description="A destination that is not built yet.",
        json_schema_extra={"not": {"enum": ["postgres", "context"]}},
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="The destination's own settings.")


_TaggedDestination = (
    Annotated[PostgresDestination, Tag("postgres")]
    | Annotated[ContextDestination, Tag("context")]
    | Annotated[OtherDestination, Tag("other")]
)
DestinationSpec = Annotated[_TaggedDestination, Discriminator(_destination_tag)]
DestinationChoice = Annotated[Annotated[Text, Tag("name")] | _TaggedDestination, Discriminator(_destination_tag)]


class BackfillSpec(Model):
    """How history is cut into chunks and how fast it is pulled."""

    window: Window | None = Field(
        default=None,
        description="`15m` `6h` `30d` `1w` `1mo` `1q` `1y`, or a number of ids. Default: `1mo`, or 1000000 ids.",
    )
    start_from: StartFrom | None = Field(
        default=None, description="A date, a time or an id; rows before it are never read."
    )
    parallelism: Whole = Field(
        default=2,
        ge=1,
        le=64,
        description="How many passes over the source may be at work at once, of all tables and processes; and how many "
        "chunks of a pass are copied at once, where the load mode allows it: appends without unique keys.",
    )
    max_chunks_per_tick: Whole = Field(
        default=8, ge=1, description="How many pending chunks one tick of the schedule dispatches."
    )
    sla: Duration | None = Field(
        default=None,
        description="How far the target may be behind the source's newest cursor to be called `streaming`: `15m`, `2h`,"
        " `1d`. Default: the longest time between two ticks of the schedule.",
    )
    rate_budget: RateBudget | None = Field(
        default=None,
        description="How many requests the source may see in any such time, like `60/min`, of all workers together: "
        "1 at least, 200 a second at most. For a whole pipeline. Reads of files and databases are no requests.",
    )
    destination_writes_per_sec: Whole | None = Field(
        default=None,
        ge=1,
        le=MOST_A_SECOND,
        description="How many blocks of rows, of up to 8 MiB each, the destination gets in any second, of all workers "
        "together. For a whole pipeline.",
    )


class QuarantineSpec(Model):
    """Where rows that were set aside are kept."""

    enabled: Flag = Field(default=True, description="`false`: they are counted, and not kept.")
    table: QualifiedName | None = Field(
        default=None, description="`schema.table`. Default: `hakiri.quarantine_<pipeline>_<table>`."
    )
    allow_all: Flag = Field(
        default=False,
        description="`true`: a chunk of which every row is set aside is published without rows. Else it fails.",
    )


class ValidateSpec(Model):
    """What must hold for a load to be published."""

    dataset_level: DatasetLevelSpec = Field(
        default_factory=DatasetLevelSpec, description="Questions asked of all rows of a candidate together."
    )
    row_level: RowRules = Field(default=(), description="Rules that each row must pass.")
    quarantine: QuarantineSpec = Field(
        default_factory=QuarantineSpec, description="Where rows that were set aside are kept."
    )
    profile: Flag = Field(
        default=False,
        description="`true`: the columns of each load's rows are profiled in passing; its event in Dagster shows them. "
        "It takes time.",
    )

    late: LateSpec | None = Field(
        default=None,
        description="When the UI shows the table as late. Default: what the strictest `freshness` allows.",
    )

    @property
    def lateness(self) -> LateSpec | None:
        """What was said, or what follows from the age that rows may have: without a publish they only get older."""
        ages = [validator.within_hours for validator in self.dataset_level.freshness]
        return self.late or (LateSpec(after_hours=max(min(ages), 1 / 60)) if ages else None)

    @property
    def check_ids(self) -> Iterator[str]:
        """Of rules, then of validators."""
        yield from map(rule_spec.id_of, self.row_level)
        yield from map(validator_spec.id_of, self.dataset_level.validators)


def _cursor(value: Any) -> Any:
    if value is True or not isinstance(value, (str, bool, type(None))):
        raise wrong("must be the name of a column", "or `false`: this table has no cursor")
    return value


ParentKeys = ColumnNames | Annotated[dict[TableName, Text], Field(min_length=1)]
CursorColumn = Annotated[Text | Literal[False], BeforeValidator(_cursor)]
Transforms = tuple[dict[str, JsonValue], ...]


class TableSpec(Model):
    """One table. What it does not say, its pipeline says. A name alone is a table with nothing else to say."""

    name: TableName = Field(description="The table's name in the source, and in Dagster.")
    target: TableName | None = Field(default=None, description="The target table's name, if it is not `name`.")
    path: Text | None = Field(
        default=None,
        description="`files`: a file, a folder or a glob, relative to the project. `rest`: what follows `base_url`;"
        " default: the table's name.",
    )
    params: Params = Field(default_factory=dict, description="`rest`: parameters of every request.")
    records: DottedPath | None = Field(
        default=None, description="`rest`: the dotted path of the list of records. Default: the answer is the list."
    )
    flatten: Flatten = Field(
        default=False,
        description="`rest`: objects whose members become columns (`user.login` → `user_login`): all, or those named."
        " Others are kept as `jsonb`, as lists are.",
    )
    epochs: tuple[Text, ...] = Field(
        default=(),
        description="`rest`: columns that the API gives as seconds since 1970: they are loaded as `timestamptz`.",
    )
    pagination: PaginationSpec | None = Field(
        default=None, description="`rest`: how pages follow each other, over the source's."
    )
    cursor_params: CursorParams | None = Field(
        default=None, description="`rest`: how a range of the cursor (`incremental`) is asked for."
    )
    partition_keys: PartitionKeys | None = Field(
        default=None,
        description='`rest`: what the API keeps apart, over the source\'s, like `{ repo = ["owner/one"] }`: each value'
        " stands for `{repo}` in `path` and `params`, is a column of its own, and has a history of its own.",
    )
    parent: Text | None = Field(
        default=None,
        description="`rest`: the table of this pipeline whose records hold the list that `explode` names; how it is"
        " asked for is inherited.",
    )
    explode: DottedPath | None = Field(
        default=None,
        description="`rest`: the dotted path of a list in the records of `parent`: each element is a row. One that is"
        " no object is the column `value`.",
    )
    parent_keys: ParentKeys | None = Field(
        default=None,
        description="`rest`: members of the parent's records that its elements bear, as `<parent>_<member>`; or, by the"
        " columns' names, `{ issue = \"id\" }`. Default: the parent's primary key.",
    )
    position: Text = Field(
        default="position", description="`rest`: the column for the place of an element in its list, from 0."
    )
    continued: ContinuedSpec | None = Field(
        default=None, description="`rest`: how the rest of a list is found of which records show only the beginning."
    )
    segments: SegmentsSpec | None = Field(
        default=None,
        description="`rest`: for an API that gives the oldest records first and cannot be asked for a range: it is"
        " walked by its pages, from where the last load has ended.",
    )
    primary_key: ColumnNames | None = Field(default=None, description="The columns that tell rows apart.")
    columns: dict[Text, ColumnType] = Field(
        default_factory=dict, description="PostgreSQL types by column, over what the source says or was inferred."
    )
    renamed: dict[Text, Text] = Field(
        default_factory=dict,
        description='Columns that the source has renamed: `{ new_name = "old_name" }`. The target\'s follow.',
    )
    contract: Contract | None = Field(
        default=None, description="What is done with columns that the source changes, over the pipeline's."
    )
    incremental: CursorColumn | None = Field(
        default=None, description="The cursor column, over the pipeline's; `false`: none."
    )
    load: LoadSpec | None = Field(default=None, description="How rows are published, key by key over the pipeline's.")
    backfill: BackfillSpec | None = Field(
        default=None, description="How history is cut, key by key over the pipeline's."
    )
    validation: ValidateSpec | None = Field(
        default=None, validation_alias="validate", description="What must hold, key by key over the pipeline's."
    )
    verify: VerifySpec | Literal[False] | None = Field(
        default=None,
        description="How often the target is compared with the source, over the pipeline's; `false`: never.",
    )
    transforms: Transforms | None = Field(default=None, description="Changes to the rows on their way.")
    description: str | None = Field(default=None, description="What the table holds; shown in Dagster.")
    owners: tuple[Owner, ...] = Field(default=(), description="Over the pipeline's; shown in Dagster.")
    tags: Tags = Field(default_factory=dict, description="On top of the pipeline's; shown in Dagster.")

    @model_validator(mode="before")
    @classmethod
    def _normal_form(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else fold_flat_keys(value)


class PipelineSpec(Model):
    """A source, its tables, where they land and how."""

    json_schema: str | None = Field(
        default=None, validation_alias="$schema", description="The address of this schema, for editors."
    )
    id: PipelineId = Field(description="`[a-z0-9][a-z0-9_-]*`, unique in the project.")
    source: SourceSpec = Field(description="Where rows come from.")
    tables: tuple[TableSpec, ...] = Field(
        min_length=1, description="The tables: names, or `{ name = …, … }` where there is more to say."
    )
    destination: DestinationChoice | None = Field(
        default=None,
        description="The name of a `[destinations.*]` entry, `context`, or `{ connector, config }`."
        " Default: `default_destination`.",
    )
    schedule: ScheduleText | None = Field(default=None, description="`every 15m` or a cron expression.")
    timezone: TimeZone = Field(default="UTC", description="The time zone of the schedule.")
    triggers: Triggers = Field(default=(), description="What starts the pipeline besides its schedule.")
    incremental: CursorColumn | None = Field(
        default=None, description="The cursor column: which rows are new, and how history is cut."
    )
    secrets: tuple[VariableName, ...] = Field(
        default=(), description="Environment variables that must be set; their values are never shown."
    )
    contract: Contract = Field(
        default="evolve",
        description="What is done with columns that the source changes: `evolve` follows, `freeze` refuses,"
        " `discard_row` and `discard_value` keep out the rows or the values that do not fit.",
    )
    load: LoadSpec = Field(default_factory=LoadSpec, description="How rows are published.")
    backfill: BackfillSpec = Field(default_factory=BackfillSpec, description="How history is cut into chunks.")
    validation: ValidateSpec = Field(
        default_factory=ValidateSpec, validation_alias="validate", description="What must hold for a publish."
    )
    verify: VerifySpec | None = Field(
        default=None, description="How often the targets are compared with the source. Default: never by itself."
    )
    transforms: Transforms = Field(default=(), description="Changes to the rows on their way.")
    description: str | None = Field(default=None, description="What the pipeline is for; shown in Dagster.")
    owners: tuple[Owner, ...] = Field(default=(), description="E-mail addresses or `team:…`; shown in Dagster.")
    tags: Tags = Field(default_factory=dict, description="Shown and searchable in Dagster.")

    @model_validator(mode="before")
    @classmethod
    def _normal_form(cls, value: Any) -> Any:
        return fold_flat_keys(value)


class ProjectInfo(Model):
    """What the project is called, and how much of it works at once."""

    name: Text = Field(default="hakiri", description="The project's name; shown in Dagster.")
    id: Text | None = Field(
        default=None,
        description="By what destinations tell this project from others. It travels with the manifests, so a moved or "
        "copied folder keeps it; no two projects share one. Default: the name, and what the tables are read from.",
    )
    version: Text | None = Field(default=None, description="The project's own version.")
    max_parallel_chunks: Whole | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="How many passes over sources may be at work at once, of all pipelines and processes. A pass reads "
        "up to 128 chunks.",
    )


class ContextSpec(Model):
    """What holds for pipelines that do not say otherwise."""

    path: Text | None = Field(
        default=None, description="Accepted and without effect: the embedded PostgreSQL lives in `.hakiri/`."
    )
    default_destination: Text | None = Field(
        default=None, description="The name of a `[destinations.*]` entry, or `context`, the embedded PostgreSQL."
    )


class AuditSpec(Model):
    """Where cursors, chunks and runs are kept."""

    url: PostgresUrl | None = Field(default=None, description="A PostgreSQL URL; none: SQLite in `.hakiri/`.")


class SyncSpec(Model):
    """A bucket that keeps a copy."""

    bucket: Text = Field(description="The bucket's address.")
    endpoint: Text | None = Field(default=None, description="The object store's endpoint.")
    region: Text | None = Field(default=None, description="The object store's region.")


class ProjectSpec(Model):
    """`manifests/hakiri.toml`: the project, its destinations, and pipelines written inline."""

    json_schema: str | None = Field(
        default=None, validation_alias="$schema", description="The address of this schema, for editors."
    )
    project: ProjectInfo = Field(default_factory=ProjectInfo, description="What the project is called.")
    context: ContextSpec = Field(default_factory=ContextSpec, description="Defaults for all pipelines.")
    audit: AuditSpec = Field(default_factory=AuditSpec, description="Where cursors, chunks and runs are kept.")
    sync: SyncSpec | None = Field(default=None, description="A bucket that keeps a copy.")
    destinations: dict[Text, DestinationSpec] = Field(
        default_factory=dict, description="Where pipelines land, by name."
    )
    pipeline: tuple[PipelineSpec, ...] = Field(
        default=(), description="Pipelines; others are in `manifests/pipelines/`, one a file."
    )
