"""What a kind of validator is: what it asks, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

import pyarrow as pa

from hakiri_dagster.manifest.validator_spec import Validator
from hakiri_dagster.quality.measures import Answers, Measure

S = TypeVar("S", bound=Validator, contravariant=True)

Kinds = Mapping[str, pa.DataType]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`observed` is for people, `numbers` plot over time."""

    passed: bool
    observed: str
    numbers: Mapping[str, int | float] = field(default_factory=dict)


class Kind(Protocol[S]):
    """Made of nothing but its specification, so one object serves all of them."""

    def asks(self, validator: S) -> Sequence[Measure]: ...

    def verdict(self, validator: S, answers: Answers, now: datetime) -> Verdict:
        """Of answers to all that it asks."""
        ...

    def shown(self, validator: S) -> str:
        """What it asks for."""
        ...

    def misfits(self, validator: S, kinds: Kinds) -> Iterator[str]:
        """Why it cannot be asked of its columns, which are all there."""
        return iter(())
