"""What a connector says of how a table's history can be pulled, and what of the operator's wishes that rules out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from hakiri_dagster.planning.chunks import Part

SafetyKind = Literal["monotonic", "partitioned-monotonic", "opaque-token", "snapshot-id"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A column whose values the source keeps apart. Each value is a part of the table, with an order of its own."""

    column: str
    values: tuple[str, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(self.column, value) for value in self.values)


@dataclass(frozen=True, slots=True)
class BackfillHint:
    """`kind`: what of a history may be read side by side. `natural_window` and `rate_budget` hold where the operator
    says nothing; they are written as in a manifest. `requests_a_look`: what a look at the source sends."""

    kind: SafetyKind = "monotonic"
    partition_keys: tuple[PartitionKey, ...] = ()
    natural_window: str | int | None = None
    rate_budget: str | None = None
    requests_a_look: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """In the order of the manifest; none where the table is one whole."""
        return tuple(part for key in self.partition_keys for part in key.parts)

    @property
    def most_parallel(self) -> int | None:
        """How many passes may be at work at once; None: as many as the operator likes."""
        match self.kind:
            case "opaque-token":
                return 1
            case "snapshot-id":
                return max(1, len(self.parts))
            case "monotonic" | "partitioned-monotonic":
                return None
            case _:
                assert_never(self.kind)

    @property
    def in_order(self) -> bool:
        """Chunks are loaded one after the other: of the whole table, or of each part."""
        return self.kind in ("opaque-token", "snapshot-id")


MONOTONIC: Final = BackfillHint()


def objections(hint: BackfillHint, parallelism: int) -> Iterator[str]:
    """To `backfill.parallelism`, with what to do about it."""
    most = hint.most_parallel
    if most is None or parallelism <= most:
        return
    if hint.kind == "opaque-token":
        why = "the source's page tokens can only be walked in order, one segment after the other"
    else:
        why = f"snapshots are read in order within each of the source's {most} stream(s)"
    yield (
        f"backfill.parallelism = {parallelism} is more than a cursor of the kind {hint.kind} can bear: {why}; "
        f"set backfill.parallelism to {most} for this table"
    )
