"""A range of the cursor as an API is asked for it, and where a record lies in it.

The API is asked for the range and a little more, never for less: what it does not understand as exactly as it was meant
is left out again when the records are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, assert_never

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.connectors.rest.orders import Ascending, Descending, Order
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorKind, Interval

Format = Literal["iso8601", "date", "epoch", "epoch_ms", "number"]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_STEPS: Mapping[Format, int] = {"iso8601": _SECOND, "date": _DAY, "epoch": _SECOND, "epoch_ms": 1000, "number": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS: Final = 309
"""Of a whole number that a column holds: the largest double has as many."""


@dataclass(frozen=True, slots=True)
class CursorParams:
    """`inclusive`: the API gives records at the lower value, too. `newest`, `oldest`: with these it gives that one
    first. `restart`: each page is asked for from the highest value of the one before."""

    lower: str | None
    upper: str | None = None
    format: Format = "iso8601"
    inclusive: bool = False
    ascending: bool = False
    descending: bool = False
    newest: Pairs = ()
    oldest: Pairs = ()
    restart: bool = False

    @property
    def asks_apart(self) -> bool:
        """Ranges can be asked for one by one, without reading all that comes behind each."""
        return self.upper is not None or self.ascending

    def refuse_misfit(self, kind: CursorKind, where: str) -> None:
        if (self.format == "number") != (kind == "numeric"):
            fits = "`number`" if kind == "numeric" else "`iso8601`, `date`, `epoch` or `epoch_ms`"
            raise SourceError(
                f"the cursor is a {kind}, and `cursor_params.format` is `{self.format}`",
                where=where,
                hint=f"set it to {fits}",
            )

    def asked(self, interval: Interval) -> Pairs:
        params = []
        step = _STEPS[self.format]
        if interval.lower is not None and self.lower is not None:
            lower = _written(interval.lower // step - (0 if self.inclusive else 1), self.format)
            if lower is not None:
                params.append((self.lower, lower))
        if interval.upper is not None and self.upper is not None:
            upper = _written(-(-interval.upper // step), self.format)
            if upper is not None:
                params.append((self.upper, upper))
        return tuple(params)

    def asked_from(self, position: int) -> Pairs:
        return self.asked(Interval(position, None))

    def order_of(self, position: PositionOf, interval: Interval) -> Order | None:
        """In which the records of a walk come, where a walk depends on it."""
        if self.ascending:
            return Ascending(position, interval.upper, self.asked_from if self.restart else None)
        return Descending(position, interval.lower) if self.descending and self.lower is None else None


def _written(steps: int, format_: Format) -> str | None:
    """None where nothing is left out by it: before the first time there is, or behind the last."""
    match format_:
        case "number":
            return str(steps)
        case "epoch" | "epoch_ms":
            return str(steps) if steps >= 0 else None
        case "iso8601":
            moment = _moment(timedelta(seconds=1), steps)
            return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
        case "date":
            moment = _moment(timedelta(days=1), steps)
            return None if moment is None else moment.date().isoformat()
        case _:
            assert_never(format_)


def _moment(step: timedelta, steps: int) -> datetime | None:
    try:
        return _EPOCH + steps * step
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True)
class PositionOf:
    """The cursor of a record as a position. None where it has none, or where only Spark can tell."""

    name: str
    kind: CursorKind

    def __call__(self, record: Record) -> int | None:
        value = record.value.get(self.name) if isinstance(record.value, Mapping) else None
        if value is None or isinstance(value, bool):
            return None
        try:
            return self._position(value)
        except (ValueError, OverflowError, InvalidOperation):
            return None

    def _position(self, value: Any) -> int | None:
        match self.kind:
            case "numeric":
                return _floor(Decimal(str(value))) if isinstance(value, int | float | str) else None
            case "date":
                day = date.fromisoformat(value[:10]) if isinstance(value, str) else None
                return None if day is None else (day - _EPOCH.date()).days * _DAY
            case "timestamp":
                moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
                return None if moment is None else _microseconds(moment)
            case _:
                assert_never(self.kind)


def _floor(number: Decimal) -> int | None:
    """A text of a few characters may be a number whose digits fill the memory."""
    return math.floor(number) if number.adjusted() < _MOST_DIGITS else None


def _microseconds(moment: datetime) -> int:
    """Without a zone it is in UTC, as windows are."""
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


def as_position(moment: datetime) -> int:
    return _microseconds(moment)
