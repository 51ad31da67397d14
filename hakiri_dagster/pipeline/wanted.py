"""Which chunks a run is for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY
from hakiri_dagster.planning.parts import bare_key, part_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """`partitions`: all keys that runs can be asked for.

    `open_windows`: the parts of the table whose open window is among the keys; "" is the whole of a table without
    parts. What no run can be asked for comes along with it: the NULL cursors, the rows outside the plan, and what is
    due of an earlier cut. Windows of the plan do not: a run is as long as its keys say.
    `published_by`: runs that this one retries; what they published is left alone.
    """

    keys: tuple[str, ...]
    due_only: bool
    partitions: frozenset[str]
    open_windows: frozenset[str] = frozenset()
    published_by: tuple[str, ...] = ()

    def of_next(self, keys: tuple[str, ...]) -> Wanted:
        """The same run goes on with these."""
        return replace(self, keys=keys, due_only=True)

    def beyond(self, published: Collection[str], due: tuple[str, ...]) -> Wanted:
        """Of a run that is tried again: with what is due, if the tries before have `published` all its own and nothing
        of that is due again."""
        if not self.published_by or not set(self.keys) <= set(published) or not set(due).isdisjoint(published):
            return self
        return self.of_next((*self.keys, *due))

    def means(self, key: str, planned: Collection[str]) -> bool:
        """Of a chunk that is due."""
        return key in self.keys or self._brings(key) or (self._has_no_partition(key) and key not in planned)

    def means_again(self, key: str) -> bool:
        """Even if it is not due."""
        return key in self.keys or self._brings(key)

    def _brings(self, key: str) -> bool:
        return bare_key(key) in (NULL_KEY, OUTSIDE_KEY) and self._has_no_partition(key)

    def _has_no_partition(self, key: str) -> bool:
        return part_name(key) in self.open_windows and key not in self.partitions
