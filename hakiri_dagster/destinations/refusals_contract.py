"""What a destination refuses of a candidate: rows that passed the encoder, or that there are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from hakiri_dagster.errors import DestinationError

if TYPE_CHECKING:
    from hakiri_dagster.destinations.contract import BadRow, LoadAnswers


class RefusedRows(Protocol):
    """Rows of a candidate that are not among those which its load prepared."""

    @property
    def rows(self) -> int: ...

    @property
    def first(self) -> str | None:
        """Why the first of them was refused."""
        ...

    def __iter__(self) -> Iterator[BadRow]: ...


class TooManyRowsRefused(DestinationError):
    """The search for the rows that the destination refuses was given up; `refused` are those found by then."""

    def __init__(self, what: str, refused: RefusedRows, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.refused = refused


class EmptySource(DestinationError):
    """A source without a row would have emptied the target, so nothing was changed. `answers` are of no rows, and of
    the target as it stays."""

    def __init__(self, what: str, answers: LoadAnswers, *, where: str | None = None) -> None:
        super().__init__(what, where=where)
        self.answers = answers
