"""Functions that packages register for hooks, as entry points of the group `hakiri_dagster.hooks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hakiri_dagster.hooks"


def registered() -> dict[str, tuple[EntryPoint, ...]]:
    """By name. Looks at what is installed; imports none of it."""
    from importlib.metadata import entry_points  # most manifests have no use for it

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry_point in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        found[entry_point.name] = (*found.get(entry_point.name, ()), entry_point)
    return found


def whose(entry_point: EntryPoint) -> str:
    """The package that registers it."""
    return entry_point.dist.name if entry_point.dist is not None else entry_point.value
