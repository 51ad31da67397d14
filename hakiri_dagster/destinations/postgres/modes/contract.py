"""What a load mode is: how staged rows become the state that the load leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hakiri_dagster.destinations.contract import Load, Target
from hakiri_dagster.destinations.postgres.catalog import Found
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.copy import Blocks
from hakiri_dagster.destinations.postgres.replacement import Replacement
from hakiri_dagster.manifest.tables import Table


@dataclass(frozen=True, slots=True)
class Work:
    """One load in its open transaction."""

    connection: Connection
    load: Load
    found: Found
    blocks: Blocks
    replaced: Replacement


class Mode(Protocol):
    clears_target: bool
    """A load removes every row of the target, whoever loaded it."""

    looks_for_load_ids: bool
    """It finds the rows of earlier loads by their load ids."""

    def objections(self, table: Table, found: Found | None, columns: Sequence[str]) -> Sequence[str]:
        """Why this mode cannot load the table into the target; told by `plan`, before any row moves."""
        ...

    def key(self, table: Table) -> tuple[str, ...]:
        """Columns that need a unique index and hold no NULL."""
        ...

    def stage(self, work: Work) -> int:
        """Brings the target to the state the load leaves; how many rows the candidate held."""
        ...

    def parallel(self, target: Target) -> bool:
        """Whether loads of different chunks may be staged at once without waiting for each other."""
        ...
