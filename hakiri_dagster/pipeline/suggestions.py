"""What could be asked of a table, by what its target holds: what its source allows and its manifest has not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.manifest import rule_spec, validator_spec
from hakiri_dagster.manifest.rule_spec import Rule
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.arrow_types import kinds_of
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality import row_rules
from hakiri_dagster.quality.measures import Duplicates, Violations
from hakiri_dagster.quality.profile import TableProfile
from hakiri_dagster.quality.proposals import Proposal, maybe_unique, proposals
from hakiri_dagster.quality.validators import registry
from hakiri_dagster.quality.validators.contract import Kinds

_MOST_ASKED = 3
"""Columns of which only the whole table tells whether they are unique."""


def suggestions(
    table: Table, profile: TableProfile, destination: Destination, source: SourceSchema | None, now: datetime
) -> list[Proposal]:
    """`source`: rules are asked of its rows, whose types need not be the target's; None: it cannot be asked."""
    kinds = None if source is None else kinds_of(source.columns)
    unique = tuple(_unique(table, profile, destination))
    told, found = set(table.validation.check_ids), []
    for proposal in proposals(table, profile, unique, now):
        if _id(proposal) not in told and (kinds is None or not _objections(proposal, kinds)):
            told.add(_id(proposal))  # columns of odd names may ask for one id
            found.append(proposal)
    return found


def _unique(table: Table, profile: TableProfile, destination: Destination) -> Iterator[str]:
    estimated = 0
    for column in maybe_unique(profile):
        if column.distinct_is_exact:
            if column.distinct == profile.rows:
                yield column.name
        elif estimated < _MOST_ASKED:
            estimated += 1
            asked = Duplicates((column.name,))
            found = destination.ask(table, [asked])[asked]
            if isinstance(found, Violations) and not found.rows:
                yield column.name


def _id(proposal: Proposal) -> str:
    check = proposal.check
    return rule_spec.id_of(check) if isinstance(check, Rule) else validator_spec.id_of(check)


def _objections(proposal: Proposal, kinds: Kinds) -> Sequence[str]:
    check = proposal.check
    if isinstance(check, Rule):
        return list(row_rules.objections([check], kinds))
    return list(registry.objections([check], kinds))
