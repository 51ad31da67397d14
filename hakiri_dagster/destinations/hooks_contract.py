"""What a destination offers to hooks: a session for their SQL. Which of them are owed, `contract` has it remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Relation = tuple[str, str]
"""Schema and name."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whose hooks these are: a later claim of the chunk ends what they have at work."""

    chunk_key: str
    token: int


class HookSession(Protocol):
    """One session for the hooks of one phase: what one of them sets holds for those behind it."""

    def execute(self, statement: str, relation: Relation) -> Sequence[str]:
        """One statement, judged once more with `{table}` filled in; answers what it says, line by line. A destination
        without SQL raises DestinationError."""
        ...
