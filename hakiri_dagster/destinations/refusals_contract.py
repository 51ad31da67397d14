"""Rows that passed the encoder and that the destination itself refuses: what its destinations tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from hakiri_dagster.errors import DestinationError

if TYPE_CHECKING:
    from hakiri_dagster.destinations.contract import BadRow


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
