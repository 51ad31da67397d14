"""What becomes of each change of a source: it is followed, refused, or kept out, as the table's contract says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from shlex import quote
from typing import Literal, assert_never

from hakiri_dagster.manifest.contracts import Contract
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.schema_diff import Change, KnownSchema, Reading, after, changes_between, first_known
from hakiri_dagster.planning.source_types import SourceType, postgres_type

Verdict = Literal["applied", "refused", "discarded"]
Decision = Literal["applied", "refused", "discarded", "accepted"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides over a change, besides itself.

    `accepted`: identities of changes that somebody permitted. `held_key`: the target still keeps rows apart by the key
    that the source had. `needed`: columns that the manifest names, which no contract keeps out.
    """

    contract: Contract = "evolve"
    accepted: Collection[str] = ()
    held_key: bool = False
    needed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Widening:
    """A column whose values need more room than they had. `accepted`: somebody was asked, and said go on."""

    column: str
    before: SourceType
    after: SourceType
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Evolution:
    """`known` is None where nothing was accepted before, or nothing is there that it would matter to."""

    reading: Reading
    known: KnownSchema | None = None
    changes: tuple[Change, ...] = ()
    refused: tuple[Change, ...] = ()
    discarded: tuple[Change, ...] = ()
    accepted: frozenset[str] = frozenset()
    contract: Contract = "evolve"
    seen_version: int = 0

    @property
    def applied(self) -> tuple[Change, ...]:
        out = {change.identity for change in (*self.refused, *self.discarded)}
        return tuple(change for change in self.changes if change.identity not in out)

    @property
    def left_out(self) -> frozenset[str]:
        """Columns of the source that are not loaded."""
        return frozenset(change.column for change in self.discarded if change.kind == "added")

    @property
    def loaded(self) -> SourceSchema:
        """The source's columns that have a place in the target."""
        schema = self.reading.present
        return replace(schema, columns=tuple(c for c in schema.columns if c.name not in self.left_out))

    @property
    def read(self) -> SourceSchema:
        """The columns that a load looks at."""
        return self.reading.present if self.contract == "discard_row" else self.loaded

    @property
    def widenings(self) -> tuple[Widening, ...]:
        return tuple(
            Widening(
                change.column,
                postgres_type(change.before or ""),
                postgres_type(change.after or ""),
                change.identity in self.accepted,
            )
            for change in self.applied
            if change.kind == "widened"
        )

    def known_after(self) -> KnownSchema:
        if self.known is None:
            return first_known(self.reading, self.seen_version + 1)
        return after(self.known, self.applied, self.reading.key)

    def change_of(self, column: str) -> Change | None:
        """That of its type, if there is one."""
        kinds = ("widened", "narrowed", "changed")
        return next((c for c in self.changes if c.column == column and c.kind in kinds), None)


def evolution_of(known: KnownSchema | None, reading: Reading, terms: Terms, *, is_new: bool) -> Evolution:
    """`is_new`: there is no target yet, so nothing stands against the source as it is now."""
    version = 0 if known is None else known.version
    if known is None or is_new:
        return Evolution(reading, contract=terms.contract, seen_version=version)
    changes = changes_between(known, reading)
    verdicts = [(change, _verdict(change, terms)) for change in changes]
    return Evolution(
        reading,
        known,
        changes,
        refused=tuple(change for change, verdict in verdicts if verdict == "refused"),
        discarded=tuple(change for change, verdict in verdicts if verdict == "discarded"),
        accepted=frozenset(change.identity for change in changes if change.identity in terms.accepted),
        contract=terms.contract,
        seen_version=version,
    )


def _verdict(change: Change, terms: Terms) -> Verdict:
    if change.kind == "key_changed":
        return "refused" if terms.held_key else "applied"
    if change.declared or change.identity in terms.accepted:
        return "applied"
    if change.kind == "added" and change.column in terms.needed:
        return "applied"
    match terms.contract:
        case "evolve":
            return "refused" if change.kind in ("narrowed", "changed") else "applied"
        case "freeze":
            return "refused"
        case "discard_row" | "discard_value":
            return "discarded" if change.kind in ("added", "widened", "changed") else "applied"
        case _:
            assert_never(terms.contract)


def warnings_of(evolution: Evolution, unfilled: Collection[str] = ()) -> Iterator[str]:
    """`unfilled`: columns that the source has no more and that must not be NULL, of which more is told than this."""
    schema = evolution.reading.schema
    for new, old in evolution.reading.renamed.items():
        if schema.column(new) is None:
            yield f"`renamed` says that {old} is called {new} now, and the source has no column {new}"
    for change in evolution.applied:
        if change.kind == "dropped" and change.column not in unfilled:
            yield (
                f"column {change.column} is gone from the source: what is stored of it stays, "
                "and new rows have NULL there"
            )
    by_value = evolution.contract == "discard_value"
    kept_out = "its values are dropped" if by_value else "rows that hold a value there are set aside"
    unfit = "values that do not fit it become NULL" if by_value else "rows that do not fit it are set aside"
    for change in evolution.discarded:
        if change.kind == "added":
            yield (
                f"column {change.column} is new at the source and not loaded, "
                f'as contract = "{evolution.contract}"; {kept_out}'
            )
        else:
            yield (
                f"column {change.column} was {change.before} and is now {change.after}, and the target's type stays, "
                f'as contract = "{evolution.contract}"; {unfit}'
            )


def permission(table: Table, column: str) -> str:
    where = f"--table {quote(table.name)} --column {quote(column)}"
    return f"permit it: hakiri schema accept {table.pipeline_id} {where}"
