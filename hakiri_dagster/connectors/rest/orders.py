"""The order of the cursor in which an API gives records: what a walk may stop at, and go on from, because of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.errors import SourceError

Position = Callable[[Record], int | None]
"""Where a record lies in the order of the table's cursor; None where that cannot be told."""


class Following(Protocol):
    """Of one walk. It raises where records are not in the order that was declared."""

    @property
    def done(self) -> bool:
        """What follows is not wanted."""
        ...

    def takes(self, records: Sequence[Record], where: str) -> None:
        """The new ones of a page. `where`: how errors name its request."""
        ...

    def again(self) -> Pairs | None:
        """The parameters with which the next page is asked for, rather than as the API says; None: as it says."""
        ...


class Order(Protocol):
    """Can be pickled."""

    def follow(self) -> Following: ...


@dataclass(frozen=True, slots=True)
class Ascending:
    """`end`: records from there on are not wanted. `restart`: asks for records from a position on, so that no page
    depends on how many records lie before it."""

    position: Position
    end: int | None = None
    restart: Callable[[int], Pairs] | None = None

    def follow(self) -> Following:
        return _Up(self)


@dataclass(frozen=True, slots=True)
class Descending:
    """`end`: records before it are not wanted."""

    position: Position
    end: int | None = None

    def follow(self) -> Following:
        return _Down(self)


class _Up:
    def __init__(self, order: Ascending) -> None:
        self._order = order
        self._high: int | None = None

    @property
    def done(self) -> bool:
        return self._order.end is not None and self._high is not None and self._high >= self._order.end

    def takes(self, records: Sequence[Record], where: str) -> None:
        """Where each page is asked for from a position on, it may show again what lies just before that."""
        high = None if self._order.restart is not None else self._high
        for record in records:
            here = self._order.position(record)  # records without one are in no order
            if here is None:
                continue
            if high is not None and here < high:
                raise out_of_order(where, "ascending")
            high = here
        self._high = max((one for one in (high, self._high) if one is not None), default=None)

    def again(self) -> Pairs | None:
        return None if self._order.restart is None or self._high is None else self._order.restart(self._high)


class _Down:
    """A record that changes meanwhile becomes the newest, and others are shown again: at its top a page may hold
    records that are newer than all on the pages before. One that is not was passed over there. Within a page nothing
    changes meanwhile."""

    def __init__(self, order: Descending) -> None:
        self._order = order
        self._high: int | None = None
        self._low: int | None = None

    @property
    def done(self) -> bool:
        return self._order.end is not None and self._low is not None and self._low < self._order.end

    def takes(self, records: Sequence[Record], where: str) -> None:
        high = self._high
        before: int | None = None
        for record in records:
            here = self._order.position(record)
            if here is None:
                continue
            passed_over = self._low is not None and high is not None and self._low < here < high
            if passed_over or (before is not None and here > before):
                raise out_of_order(where, "descending")
            before = here
            if high is None or here < high:
                self._low = here
            self._high = here if self._high is None else max(here, self._high)
            high = self._high if high is None else high

    def again(self) -> Pairs | None:
        return None


Declared = Literal["ascending", "descending"]


def out_of_order(page: str, order: Declared, label: str | None = None) -> SourceError:
    than = "a later" if order == "ascending" else "an earlier"
    return SourceError(
        f"{page}: a record comes after one with {than} cursor: the order is not {order}",
        where=label,
        hint=f'take `order = "{order}"` out of `cursor_params`, or give the API the parameter that sorts so',
    )
