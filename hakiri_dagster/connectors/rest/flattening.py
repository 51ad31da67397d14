"""Members of nested objects as members of the record itself: `user.login` becomes `user_login`, with the very text that
the API sent. Lists stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hakiri_dagster.connectors.json.raw_text import Member, Record, members_of, object_of
from hakiri_dagster.errors import SourceError


@dataclass(frozen=True, slots=True)
class Flattening:
    """`every`: all objects, however deep. `objects`: those with these paths, and what they are in."""

    every: bool = False
    objects: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def of(cls, said: bool | tuple[str, ...]) -> Flattening:
        if isinstance(said, bool):
            return cls(every=said)
        paths = (tuple(dotted.split(".")) for dotted in said)
        return cls(objects=frozenset(path[: length + 1] for path in paths for length in range(len(path))))

    def __str__(self) -> str:
        """The same for the same, in every process."""
        return "all" if self.every else ",".join(sorted(".".join(path) for path in self.objects))

    @property
    def does_nothing(self) -> bool:
        return not self.every and not self.objects

    def __call__(self, record: Record) -> Record:
        if self.does_nothing or not isinstance(record.value, Mapping):
            return record
        found: dict[str, Member] = {}
        for path, member in self._members(record.text, ()):
            name = "_".join((*path, member.name))
            if name in found:
                raise SourceError(
                    f"two members of a record both become `{name}` where objects are flattened",
                    hint='name the objects that are to be flattened, like `flatten = ["user"]`; others stay `jsonb`',
                )
            found[name] = Member(name, member.text, member.value)
        return object_of(found.values())

    def _members(self, text: str, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Member]]:
        for member in members_of(text):
            inside = (*path, member.name)
            if isinstance(member.value, Mapping) and (self.every or inside in self.objects):
                yield from self._members(member.text, inside)
            else:
                yield path, member
