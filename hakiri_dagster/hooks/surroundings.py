"""What a hook runs with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.hooks.context import HookContext
from hakiri_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`relation` is what `{table}` stands for. `execute` runs a statement in the destination, of a relation.
    `idempotency_key` is the same whenever the same hook is run for the same loads."""

    context: HookContext
    relation: Relation
    execute: Callable[[str, Relation], Sequence[str]]
    settings: Settings
    idempotency_key: str
