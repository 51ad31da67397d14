"""The model that all parts of a manifest share, and field types that check their own values."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AliasChoices, AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from hakiri_dagster.manifest import durations
from hakiri_dagster.manifest.rates import Rate, RateError
from hakiri_dagster.manifest.schedules import ScheduleError, cron_of
from hakiri_dagster.manifest.spelling import closest

MAX_IDENTIFIER_BYTES = 63
WRONG_VALUE = "hakiri_wrong_value"


def _spellings(name: str) -> str | AliasChoices:
    camel = to_camel(name)
    return name if camel == name else AliasChoices(name, camel)


class Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        validate_by_name=False,
        validate_by_alias=True,
        alias_generator=AliasGenerator(validation_alias=_spellings),
    )


def wrong(message: str, hint: str | None = None) -> PydanticCustomError:
    """Settings of sources and destinations may hold secrets from the environment: do not quote their values."""
    return PydanticCustomError(WRONG_VALUE, "{message}", {"message": message, "hint": hint})


def quoted(text: str) -> str:
    """A value as messages show it: short, and on one line."""
    shown = text if len(text) <= 60 else f"{text[:57]}…"
    return f"`{shown}`" if shown.isprintable() else f"`{shown.encode('unicode_escape').decode()}`"


Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Text = Annotated[str, Field(min_length=1)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _names(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if not value:
            raise wrong("the list is empty", "name at least one column, or leave it out")
        seen: set[str] = set()
        for name in filter(_is_text, value):
            if name in seen:
                raise wrong(f"{quoted(name)} is named twice")
            seen.add(name)
    return value


ColumnNames = Annotated[tuple[Text, ...], Field(min_length=1), BeforeValidator(_names)]


def _identifier(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise wrong("the name is empty")
    if not value.isprintable():
        raise wrong("the name holds a control character")
    if (size := len(value.encode())) > MAX_IDENTIFIER_BYTES:
        raise wrong(
            f"the name is {size} bytes long, and PostgreSQL cuts names at {MAX_IDENTIFIER_BYTES}",
            "choose a shorter name; `target` may differ from a table's `name`",
        )
    return value


TableName = Annotated[str, Field(min_length=1), BeforeValidator(_identifier)]


def _target_schema(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value == "hakiri":
        raise wrong("the schema `hakiri` holds our own tables", "choose another schema, like `raw`")
    if value.startswith("pg_") or value == "information_schema":
        raise wrong("it is a schema of PostgreSQL's own", "choose another schema, like `raw`")
    return _identifier(value)


TargetSchema = Annotated[str, Field(min_length=1), BeforeValidator(_target_schema)]

PIPELINE_ID = r"^[a-z0-9][a-z0-9_-]*$"


def _pipeline_id(value: Any) -> Any:
    if isinstance(value, str):
        if re.fullmatch(r"[a-z0-9][a-z0-9_-]*", value) is None:
            raise wrong(
                f"{quoted(value)} is not a pipeline id",
                "use lower-case letters, digits, `-` and `_`, and begin with a letter or digit",
            )
        if len(value) > MAX_IDENTIFIER_BYTES:
            raise wrong(
                f"the id is {len(value)} characters long; names in PostgreSQL are made from it, and are cut at"
                f" {MAX_IDENTIFIER_BYTES}",
                "choose a shorter id",
            )
    return value


PipelineId = Annotated[str, Field(pattern=PIPELINE_ID, max_length=MAX_IDENTIFIER_BYTES), BeforeValidator(_pipeline_id)]


VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _variable(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(VARIABLE.strip("^$"), value) is None:
        raise wrong(f"{quoted(value)} is not the name of an environment variable", "use letters, digits and `_`")
    return value


VariableName = Annotated[str, Field(pattern=VARIABLE), BeforeValidator(_variable)]


def _qualified_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = value.split(".")
    if len(parts) > 2 or not all(parts):
        raise wrong(f"{quoted(value)} is not a table name", "write `table` or `schema.table`")
    for part in parts:
        _identifier(part)
    return value


QualifiedName = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)?$"), BeforeValidator(_qualified_name)]


def _schedule(value: Any) -> Any:
    if isinstance(value, str):
        try:
            cron_of(value)
        except ScheduleError as error:
            raise wrong(f"{quoted(value)} is not a schedule: {error}", error.hint) from None
    return value


ScheduleText = Annotated[str, Field(examples=["every 15m", "0 */2 * * *"]), BeforeValidator(_schedule)]


@cache
def _time_zones() -> frozenset[str]:
    """Reads hundreds of files, so only when somebody misspelt one, and once."""
    return frozenset(available_timezones())


def _time_zone(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = closest(value, _time_zones())
        hint = f"did you mean `{near}`?" if near else "use a name like `Europe/Berlin`"
        raise wrong(f"{quoted(value)} is not a time zone", hint) from None
    return value


TimeZone = Annotated[str, Field(examples=["UTC", "Europe/Berlin"]), BeforeValidator(_time_zone)]

WINDOW = r"^[1-9][0-9]{0,4}(m|h|d|w|mo|q|y)$"
_WINDOW_HINT = "use `15m`, `6h`, `30d`, `1w`, `1mo`, `1q` or `1y`, or a whole number of ids without quotes"


def _window(value: Any) -> Any:
    match value:
        case bool() | float():
            raise wrong("not a window", _WINDOW_HINT)
        case int() if value < 1:
            raise wrong("a window must be at least 1", _WINDOW_HINT)
        case str() if re.fullmatch(WINDOW.strip("^$"), value) is None:
            raise wrong(f"{quoted(value)} is not a window", _WINDOW_HINT)
        case str() | int() | None:
            return value
        case _:
            raise wrong("not a window", _WINDOW_HINT)


Window = Annotated[Annotated[str, Field(pattern=WINDOW)] | Annotated[Whole, Field(ge=1)], BeforeValidator(_window)]


def _duration(value: Any) -> Any:
    if value is not None and not durations.is_duration(value):
        shown = quoted(value) if isinstance(value, str) else "it"
        raise wrong(f"{shown} is not a duration", durations.HINT)
    return value


Duration = Annotated[str, Field(pattern=durations.DURATION), BeforeValidator(_duration)]

START = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].+)?$"
_START_HINT = 'use a date like "2020-01-01", a time like "2020-01-01T06:00:00Z", or a number without quotes'


def _start(value: Any) -> Any:
    match value:
        case str():
            if re.fullmatch(START.strip("^$"), value) is None or not _is_time(value):
                raise wrong(f"{quoted(value)} is not a place to start from", _START_HINT)
            return value
        case bool() | float():
            raise wrong("not a place to start from", _START_HINT)
        case int() | None:
            return value
        case _:
            raise wrong("not a place to start from", _START_HINT)


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


StartFrom = Annotated[Annotated[str, Field(pattern=START)] | Whole, BeforeValidator(_start)]

RATE = r"^[1-9][0-9]*/(s|min|h|d)$"


def _rate(value: Any) -> Any:
    if isinstance(value, str):
        try:
            Rate.parse(value)
        except RateError as error:
            raise wrong(f"{quoted(value)} is {error}", error.hint) from None
    return value


RateBudget = Annotated[str, Field(pattern=RATE), BeforeValidator(_rate)]

_TYPE_WORDS = r"(?:double precision|(?:character|bit) varying|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)"
COLUMN_TYPE = rf"^{_TYPE_WORDS}(?: ?\( ?[0-9]+(?: ?, ?-?[0-9]+)? ?\))?(?: with(?:out)? time zone)?(?: ?\[[0-9]*\])*$"


def _column_type(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(COLUMN_TYPE.strip("^$"), value, re.IGNORECASE) is None:
        raise wrong(
            f"{quoted(value)} is not a PostgreSQL type", "use a type like `bigint`, `numeric(15,2)` or `text[]`"
        )
    return value


ColumnType = Annotated[str, BeforeValidator(_column_type)]


def _owner(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"team:.+|[^@\s]+@[^@\s]+\.[^@\s]+", value) is None:
        raise wrong(f"{quoted(value)} is not an owner", "use an e-mail address, or `team:` and a name")
    return value


Owner = Annotated[str, Field(examples=["team:data", "ann@example.com"]), BeforeValidator(_owner)]

TAG_KEY = r"^([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}$"
TAG_VALUE = r"^[A-Za-z0-9_.-]{0,63}$"


def _tag_key(value: Any) -> Any:
    return _tag_text(value, TAG_KEY, "key")


def _tag_value(value: Any) -> Any:
    return _tag_text(value, TAG_VALUE, "value")


def _tag_text(value: Any, pattern: str, what: str) -> Any:
    """Dagster's own rule for the tags of assets."""
    if isinstance(value, str) and re.fullmatch(pattern.strip("^$"), value) is None:
        raise wrong(f"{quoted(value)} is not a tag {what}", "use up to 63 letters, digits, `_`, `-` and `.`")
    return value


Tags = dict[
    Annotated[str, Field(pattern=TAG_KEY), BeforeValidator(_tag_key)],
    Annotated[str, Field(pattern=TAG_VALUE), BeforeValidator(_tag_value)],
]
