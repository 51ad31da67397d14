"""The settings of each connector and destination that is built. Checked without any I/O."""

from __future__ import annotations

import codecs
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from hakiri_dagster.manifest.field_types import Flag, Model, TargetSchema, Text, Whole, wrong

FileFormat = Literal["csv", "jsonl", "parquet", "orc"]
WrittenFormat = Literal["csv", "jsonl", "json", "ndjson", "parquet", "orc"]
_FORMAT_SPELLINGS = {"json": "jsonl", "ndjson": "jsonl"}


def _canonical_format(value: Any) -> Any:
    return _FORMAT_SPELLINGS.get(value, value) if isinstance(value, str) else value


def _postgres_url(value: Any) -> Any:
    """Never quotes the URL: it may hold a password."""
    if not isinstance(value, str):
        return value
    if not value:
        raise wrong("the URL is empty", "leave `url` out to use the embedded PostgreSQL")
    if not _is_postgres_url(value):
        raise wrong("not a PostgreSQL URL", "write it like `postgresql://user:${PASSWORD}@host:5432/database`")
    if urlsplit(value).netloc.count("@") > 1:
        raise wrong("the URL has an `@` in its user or password", "write it as `%40`")
    return value


def _is_postgres_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        several_hosts = "," in parts.netloc
        return parts.scheme in ("postgresql", "postgres") and (several_hosts or parts.port != 0)
    except ValueError:
        return False


def _one_character(value: Any) -> Any:
    if isinstance(value, str) and len(value) != 1:
        raise wrong("must be exactly one character")
    return value


def _delimiter(value: Any) -> Any:
    if isinstance(value, str) and len(value) != 1 and value != "\\t":
        raise wrong("must be exactly one character", 'a tab is "\\t"')
    return value


def _encoding(value: Any) -> Any:
    if isinstance(value, str):
        try:
            codecs.lookup(value)
        except LookupError:
            raise wrong("no such encoding", "use a name like `UTF-8`, `ISO-8859-1` or `windows-1252`") from None
    return value


def _compression(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Delimiter = Annotated[str, Field(min_length=1, max_length=2), BeforeValidator(_delimiter)]
Encoding = Annotated[str, Field(min_length=1), BeforeValidator(_encoding)]
Compression = Annotated[
    Literal["none", "uncompressed", "gzip", "gz", "bzip2", "bz2", "zstd", "zst"], BeforeValidator(_compression)
]
Character = Annotated[str, Field(min_length=1, max_length=1), BeforeValidator(_one_character)]
PostgresUrl = Annotated[str, Field(examples=["postgresql://user@host:5432/db"]), BeforeValidator(_postgres_url)]


class FilesConfig(Model):
    """What `connector = "files"` reads."""

    path: Text = Field(
        description="A folder, a file or a glob, relative to the project. A table without a `path` of its own"
        " is `<path>/<table>.<format>` or all files under `<path>/<table>/`."
    )
    format: Annotated[FileFormat, BeforeValidator(_canonical_format, json_schema_input_type=WrittenFormat)] | None = (
        Field(
            default=None,
            description="Default: from the files' extension. `json` and `ndjson` mean `jsonl`.",
        )
    )
    header: Flag = Field(default=True, description="CSV: the first line holds the column names.")
    delimiter: Delimiter = Field(default=",", description="CSV: what separates values.")
    encoding: Encoding = Field(default="UTF-8", description="Text formats: like `ISO-8859-1`.")
    infer_schema: Flag = Field(
        default=True, description="Text formats: find out types from the values; `false` reads all as text."
    )
    null_values: tuple[str, ...] = Field(default=(), description="CSV: texts that mean NULL, like `NA`.")
    compression: Compression | None = Field(
        default=None, description="Text formats: like `gzip`. Default: from the files' extension."
    )
    multiline: Flag = Field(default=True, description="CSV: quoted values may hold line breaks.")
    quote: Character = Field(default='"', description="CSV: what encloses values.")
    escape: Character = Field(default='"', description="CSV: what escapes a quote inside quotes.")


class PostgresConfig(Model):
    """A PostgreSQL to read from."""

    url: PostgresUrl | None = Field(default=None, description="None: the project's embedded PostgreSQL.")
    schema_name: Text = Field(
        default="public",
        validation_alias="schema",
        serialization_alias="schema",
        description="The schema that holds the tables.",
    )
    max_connections: Whole = Field(
        default=8, ge=1, le=64, description="How many parts of one table are read at once, at most."
    )
    text_columns: tuple[Text, ...] = Field(
        default=(),
        description="Columns that are read as text, exactly: for values that Spark cannot hold (`infinity`, NaN).",
    )
    row_security: Literal["on", "off"] = Field(
        default="on",
        description="`off`: a read that row-level security would filter fails, as in pg_dump. `on`: `plan` warns of it,"
        " with the policies.",
    )


class PostgresTargetConfig(Model):
    """A PostgreSQL to load into."""

    url: PostgresUrl | None = Field(default=None, description="None: the project's embedded PostgreSQL.")
    schema_name: TargetSchema = Field(
        default="public",
        validation_alias="schema",
        serialization_alias="schema",
        description="The schema that the target tables are in; created if it is not there.",
    )


class EmbeddedTargetConfig(Model):
    """The project's embedded PostgreSQL."""

    schema_name: TargetSchema = Field(
        default="public",
        validation_alias="schema",
        serialization_alias="schema",
        description="The schema that the target tables are in; created if it is not there.",
    )


def as_config(model: Model, include: set[str] | None = None) -> dict[str, Any]:
    """What connectors and destinations are given: plain values under the names of the manifest."""
    return model.model_dump(mode="json", by_alias=True, include=include)
