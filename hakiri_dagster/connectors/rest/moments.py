"""Members that hold seconds since 1970, as the times that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hakiri_dagster.connectors.json.raw_text import Member, Record, members_of, object_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moments:
    """`names`: of members of a record, once it is flattened."""

    names: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """The same for the same, in every process."""
        return ",".join(sorted(self.names))

    def __call__(self, record: Record) -> Record:
        """What is no whole number stays as it is, and is judged as any value is."""
        if not isinstance(record.value, Mapping) or not self.names & record.value.keys():
            return record
        members = {member.name: self._written(member) for member in members_of(record.text)}
        return object_of(members.values())

    def _written(self, member: Member) -> Member:
        if member.name not in self.names or type(member.value) is not int:
            return member
        try:
            moment = (_EPOCH + timedelta(seconds=member.value)).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
        except OverflowError:
            return member
        return replace(member, text=f'"{moment}"', value=moment)
