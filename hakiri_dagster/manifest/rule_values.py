"""What rules and validators are given, checked where it is written."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.manifest.field_types import Flag, Number, Text, Whole, quoted, wrong

_FARTHEST = int(sys.float_info.max)


def _bound(value: Any) -> Any:
    """Numbers keep their digits; a date or a time is written as text."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise wrong(
                f"{quoted(value)} is neither a number nor a date",
                'write numbers without quotes, dates like "2024-01-31" and times like "2024-01-31T06:00:00Z"',
            ) from None
    if isinstance(value, int) and abs(value) > _FARTHEST:
        raise wrong(
            "it is beyond all numbers that a column may hold as floats", "leave the bound out, or write a smaller one"
        )
    return value


Bound = Annotated[Whole | Number | Text, BeforeValidator(_bound)]
PlainValue = Whole | Number | Flag | Text


def _pattern(value: Any) -> Any:
    """Whoever uses it judges it: RE2, as Arrow has it, which takes a moment to import."""
    if isinstance(value, str) and value:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            pc.match_substring_regex(pa.array([""]), value)
        except pa.ArrowInvalid as error:
            raise wrong(
                f"{quoted(value)} is not a pattern: {str(error).removeprefix('Invalid regular expression: ')}",
                "patterns are RE2's: no backreferences, no lookaround, so that none can backtrack without end",
            ) from None
    return value


Pattern = Annotated[Text, BeforeValidator(_pattern)]


def _expression(value: Any) -> Any:
    """Whoever uses it judges it; the parser takes a moment to import."""
    if isinstance(value, str) and value:
        from hakiri_dagster.expressions.reading import read_expression

        try:
            read_expression(value)
        except UnsafeExpression as error:
            raise wrong(error.what, error.hint) from None
    return value


Expression = Annotated[Text, BeforeValidator(_expression)]


def moment_of(bound: str) -> datetime:
    """Without a zone it is UTC, as everywhere."""
    moment = datetime.fromisoformat(bound)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def place_of(bound: float | str) -> Any:
    """Of bounds of one kind, as they are ordered."""
    return moment_of(bound) if isinstance(bound, str) else bound
