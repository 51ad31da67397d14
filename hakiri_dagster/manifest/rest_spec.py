"""The settings of a REST API and of the tables it gives. Checked without any I/O."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hakiri_dagster.manifest.field_types import Flag, Model, Number, Text, Whole, quoted, wrong
from hakiri_dagster.manifest.parting import PartitionKeys

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade"})


def _header_name(value: Any) -> Any:
    if isinstance(value, str):
        if not _HEADER_NAME.fullmatch(value):
            raise wrong(f"{quoted(value)} is not the name of a header", "use letters, digits and `-`")
        if value.lower() in _OURS:
            raise wrong(f"the header {quoted(value)} is set by every request itself", "take it out")
    return value


def _header_value(value: Any) -> Any:
    """Never quoted: it may come from the environment."""
    if isinstance(value, str) and not (value.isprintable() and value.isascii()):
        raise wrong("the value holds characters that no header holds", "use printable ASCII characters")
    return value


def _base_url(value: Any) -> Any:
    if isinstance(value, str):
        if "?" in value or "#" in value:
            raise wrong("the URL holds a query or a fragment", "write parameters under `params` of a table")
        if "@" in value:
            raise wrong("the URL holds an `@`, as of a user name", 'use `auth = { type = "basic", … }`')
    return value


def _dotted(value: Any) -> Any:
    if isinstance(value, str) and not all(value.split(".")):
        raise wrong(f"{quoted(value)} is not a dotted path", "write it like `data.items`")
    return value


def _flatten(value: Any) -> Any:
    if isinstance(value, list | tuple):
        for path in value:
            if isinstance(path, str):
                _dotted(path)
        return value
    if not isinstance(value, bool):
        raise wrong("must be true, false or a list of objects", 'write `true`, or like `["user", "head.repo"]`')
    return value


def _param(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | list | tuple) or (
        isinstance(value, list | tuple) and not all(isinstance(one, str | int | float | bool) for one in value)
    ):
        raise wrong("must be text, a number, true or false, or a list of these")
    return value


HeaderName = Annotated[str, BeforeValidator(_header_name)]
HeaderValue = Annotated[str, BeforeValidator(_header_value)]
BaseUrl = Annotated[str, Field(min_length=1, examples=["https://api.example.com/v2"]), BeforeValidator(_base_url)]
DottedPath = Annotated[str, Field(min_length=1, examples=["data.items"]), BeforeValidator(_dotted)]
ParamValue = Annotated[str | int | float | bool | tuple[str | int | float | bool, ...], BeforeValidator(_param)]
Params = dict[Text, ParamValue]
Flatten = Annotated[Flag | tuple[DottedPath, ...], BeforeValidator(_flatten)]
Seconds = Annotated[Number, Field(gt=0, le=86_400)]


class BearerAuth(Model):
    """A token in the header `Authorization`."""

    type: Literal["bearer"] = Field(description="`Authorization: Bearer …`")
    token: HeaderValue = Field(repr=False, min_length=1, description="`${NAME}`: the token.")


class BasicAuth(Model):
    """User name and password in the header `Authorization`."""

    type: Literal["basic"] = Field(description="`Authorization: Basic …`")
    username: Text = Field(repr=False, description="The user's name; where it is the secret, `${NAME}`.")
    password: str = Field(repr=False, default="", description="`${NAME}`: the password. Default: an empty one.")


class HeaderAuth(Model):
    """A secret in a header of the API's own."""

    type: Literal["header"] = Field(description="A header like `X-Api-Key`.")
    name: HeaderName = Field(min_length=1, description="The header's name.")
    value: HeaderValue = Field(repr=False, min_length=1, description="`${NAME}`: the secret.")


class QueryAuth(Model):
    """A secret as a parameter of the query."""

    type: Literal["query"] = Field(description="A parameter like `api_key`.")
    name: Text = Field(description="The parameter's name.")
    value: Text = Field(repr=False, description="`${NAME}`: the secret.")


AuthSpec = Annotated[BearerAuth | BasicAuth | HeaderAuth | QueryAuth, Field(discriminator="type")]


class NoPages(Model):
    """Everything is in one answer."""

    type: Literal["none"] = Field(description="There is one page.")


class LinkPages(Model):
    """The header `Link` names the next page."""

    type: Literal["link"] = Field(description='`Link: <…>; rel="next"`')


class NextUrlPages(Model):
    """The body holds the URL of the next page."""

    type: Literal["next_url"] = Field(description="The body holds a URL.")
    next: DottedPath = Field(description="The dotted path of the URL; there is none on the last page.")


class CursorPages(Model):
    """The body holds a token, which the next request gives back."""

    type: Literal["cursor"] = Field(description="The body holds a token.")
    next: DottedPath = Field(description="The dotted path of the token; there is none on the last page.")
    param: Text = Field(description="The parameter that the token is given back in.")
    more: DottedPath | None = Field(
        default=None, description="The dotted path of `true` where pages follow. Default: they do where a token is."
    )


class LastRecordPages(Model):
    """The next request names the last record that has come."""

    type: Literal["last_record"] = Field(description="The last record's id leads to the next page.")
    id: DottedPath = Field(default="id", description="The dotted path of the id in a record.")
    param: Text = Field(default="starting_after", description="The parameter that the id is given in.")
    more: DottedPath | None = Field(
        default=None,
        description="The dotted path of `true` where pages follow. Default: the first empty page is the end.",
    )


class NumberedPages(Model):
    """Pages have numbers."""

    type: Literal["page"] = Field(description="A parameter holds the page's number.")
    param: Text = Field(default="page", description="The parameter.")
    first: Whole = Field(default=1, ge=0, description="The number of the first page.")
    size_param: Text | None = Field(default=None, description="The parameter for the size of a page.")
    size: Whole | None = Field(default=None, ge=1, description="How many records a page is asked to have.")
    total: DottedPath | None = Field(
        default=None, description="The dotted path of the number of pages. Default: the first empty page is the end."
    )


class OffsetPages(Model):
    """Requests say how many records to pass over."""

    type: Literal["offset"] = Field(description="A parameter holds how many records came before.")
    param: Text = Field(default="offset", description="The parameter.")
    first: Whole = Field(default=0, ge=0, description="Its value on the first page.")
    size_param: Text | None = Field(default=None, description="The parameter for the size of a page.")
    size: Whole | None = Field(default=None, ge=1, description="How many records a page is asked to have.")
    total: DottedPath | None = Field(
        default=None, description="The dotted path of the number of records. Default: the first empty page is the end."
    )


PaginationSpec = Annotated[
    NoPages | LinkPages | NextUrlPages | CursorPages | LastRecordPages | NumberedPages | OffsetPages,
    Field(discriminator="type"),
]


class TimeoutSpec(Model):
    """How long is waited, in seconds."""

    connect: Seconds = Field(default=10, description="For a connection.")
    read: Seconds = Field(default=60, description="For more of an answer.")
    total: Seconds = Field(default=300, description="For one request with its whole answer.")


class RetrySpec(Model):
    """How often and when a request is tried again that met a 429, a 5xx, a timeout or a lost connection."""

    retries: Whole = Field(default=5, ge=0, le=100, description="How often, after the first try.")
    first_pause: Seconds = Field(default=1, description="The longest first pause, in seconds; each next one is double.")
    longest_pause: Seconds = Field(default=60, description="The longest pause of all, in seconds.")
    longest_retry_after: Seconds = Field(
        default=900,
        description="How long `Retry-After` is waited for, in seconds; if the API asks for more, the load fails.",
    )


class RestConfig(Model):
    """What `connector = "rest"` asks."""

    base_url: BaseUrl = Field(description="Where the API is; tables are below it. https only, no private addresses.")
    auth: AuthSpec | None = Field(default=None, description="The credentials. Secrets are written as `${NAME}`.")
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict, repr=False, description="Sent with every request."
    )
    pagination: PaginationSpec = Field(description="How pages follow each other, for tables that do not say it.")
    timeout: TimeoutSpec = Field(default_factory=TimeoutSpec, description="How long is waited.")
    retry: RetrySpec = Field(default_factory=RetrySpec, description="When requests are tried again.")
    max_body_mib: Whole = Field(
        default=64, ge=1, le=1024, description="How large one answer may be, unpacked. It is held in memory."
    )
    max_pages: Whole = Field(
        default=100_000, ge=1, le=100_000_000, description="After so many pages a walk is taken to have no end."
    )
    max_connections: Whole = Field(
        default=4, ge=1, le=64, description="How many chunks of one table are asked for at once, at most."
    )
    partition_keys: PartitionKeys = Field(
        default_factory=dict,
        description="What the API keeps apart, for tables whose `path` or `params` name it, like `{repo}`.",
    )


CursorFormat = Literal["iso8601", "date", "epoch", "epoch_ms", "number"]


class CursorParams(Model):
    """How the API is asked for a range of the cursor, so that history is loaded in chunks and then what is new."""

    lower: Text | None = Field(
        default=None,
        description="The parameter for records from a value on, like `since`. It may be left out where the order is"
        " descending: records are then read down to the value.",
    )
    upper: Text | None = Field(default=None, description="The parameter for records up to a value, like `until`.")
    format: CursorFormat = Field(
        default="iso8601",
        description="How values are written: `2024-01-31T00:00:00Z`, `2024-01-31`, seconds or milliseconds since 1970,"
        " or as numbers.",
    )
    inclusive: Flag = Field(
        default=False,
        description="`true`: the API gives records at the lower value, too. Else it is asked from one step before it.",
    )
    order: Literal["ascending", "descending"] | None = Field(
        default=None, description="The order of the cursor in which the API gives records, if it gives them in one."
    )
    restart: Flag = Field(
        default=False,
        description="`true`: each page is asked for with `lower`, from the highest value of the page before, so that"
        " records which change meanwhile shift no others. For an ascending order, and a table with a key.",
    )
    newest: Params = Field(
        default_factory=dict,
        description="Parameters with which the API gives the newest record first: one request then tells where the"
        " table ends. Needed for numbers, unless the order is descending.",
    )
    oldest: Params = Field(
        default_factory=dict,
        description="Parameters with which the API gives the oldest record first: one request then tells where history"
        " begins, unless the order is ascending.",
    )

    @model_validator(mode="after")
    def _asked_somehow(self) -> CursorParams:
        if self.lower is None and (self.order != "descending" or self.upper is not None):
            raise wrong("`lower` is missing: nothing asks the API for a range", 'write it like `lower = "since"`')
        if self.restart and (self.order != "ascending" or self.lower is None):
            raise wrong("`restart` needs `lower` and an ascending order", 'add `order = "ascending"`, or take it out')
        return self


class ContinuedSpec(Model):
    """Where a record shows only the beginning of a list."""

    more: DottedPath = Field(description="The dotted path of `true` where the list goes on, within the record.")
    url: DottedPath = Field(
        description="The dotted path of the URL of all its elements, whose pages go like those of the table."
    )
    params: Params = Field(
        default_factory=dict, description="Parameters of these requests, which have none of the table's."
    )


class SegmentsSpec(Model):
    """The table is walked once, in segments that are committed one after the other; what is new comes at its end."""

    pages: Whole = Field(default=100, ge=1, le=1_000_000, description="How many pages a segment has.")


CHILD_KEYS = {"parent", "explode", "parent_keys", "position", "continued"}
"""The keys of a table whose rows are elements of a list."""

ENDPOINT_KEYS = {
    "params", "records", "flatten", "epochs", "pagination", "cursor_params", "partition_keys", "segments",
}  # fmt: skip
"""The keys of a table that only a REST API knows."""
