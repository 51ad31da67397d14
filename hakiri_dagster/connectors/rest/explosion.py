"""The elements of a list within a record, as records of a table of their own: each bears its parent's keys, and its
place in the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hakiri_dagster.connectors.json.raw_text import (
    Member,
    Record,
    elements_of,
    members_of,
    object_of,
    value_at,
    written,
)
from hakiri_dagster.connectors.json.strict import has_repeated_keys
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.connectors.rest.flattening import Flattening
from hakiri_dagster.connectors.rest.moments import Moments
from hakiri_dagster.errors import SourceError

VALUE: Final = "value"
"""The column of elements that are no objects."""
_NO_LIST: Final = "`{path}` is no list, so it has no elements"


@dataclass(frozen=True, slots=True)
class Continued:
    """Where a record shows only the beginning of its list: the paths of what says so, and of the URL of all of it."""

    more: tuple[str, ...]
    url: tuple[str, ...]
    params: Pairs = ()


@dataclass(frozen=True, slots=True)
class Explosion:
    """`kept`: columns of a child, by the members of its parent that they hold. `cursor`: the one of them that holds
    the parent's cursor."""

    path: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    position: str
    cursor: str | None = None
    continued: Continued | None = None
    flattening: Flattening = field(default_factory=Flattening)
    moments: Moments = field(default_factory=Moments)

    def __str__(self) -> str:
        """The same for the same, in every process."""
        return repr((self.path, self.kept, self.position, self.cursor, str(self.flattening), str(self.moments)))

    @property
    def cursor_member(self) -> str | None:
        """Of the parent."""
        return None if self.cursor is None else dict(self.kept)[self.cursor]

    def children(self, parent: Record, sent: Record) -> Iterator[Record]:
        """`sent`: the parent as it came, and not as a table has it."""
        if not isinstance(sent.value, Mapping):
            yield sent  # which is set aside, as it would be among the parents
            return
        found = _text_at(sent.text, self.path)
        if found is None or found.value is None:
            return
        if not isinstance(found.value, Sequence) or isinstance(found.value, str):
            yield self._no_list(parent, found)
            return
        yield from self.elements(parent, elements_of(found.text), 0)

    def elements(self, parent: Record, elements: Iterable[Record], first: int) -> Iterator[Record]:
        kept = self._kept(parent)
        for position, element in enumerate(elements, start=first):
            yield self._child(kept, position, element)

    def stub(self, parent: Record) -> Record:
        """What any child of it has: it tells the types of these columns though no parent may have a child."""
        return _joined([*self._kept(parent), Member(self.position, "0", 0)])

    def rest_of(self, sent: Record) -> str | None:
        """The URL of all elements, where the record holds only some."""
        if self.continued is None or value_at(sent.value, self.continued.more) is not True:
            return None
        url = value_at(sent.value, self.continued.url)
        if not isinstance(url, str) or not url:
            raise SourceError(
                f"`{'.'.join(self.continued.more)}` says that a list goes on, and nothing says where",
                hint="`continued.url` is the dotted path of a URL, within the parent's record",
            )
        return url

    def _kept(self, parent: Record) -> list[Member]:
        found = {member.name: member for member in members_of(parent.text)} if isinstance(parent.value, Mapping) else {}
        return [
            Member(column, member.text, member.value) if (member := found.get(name)) else Member(column, "null", None)
            for column, name in self.kept
        ]

    def _child(self, kept: Sequence[Member], position: int, element: Record) -> Record:
        if has_repeated_keys(element.text):
            return element  # which is quarantined, for that reason
        members = [*kept, Member(self.position, str(position), position)]
        if isinstance(element.value, Mapping):
            shaped = self.moments(self.flattening(element))
            members += members_of(shaped.text)
        elif element.value is not None:
            members.append(Member(VALUE, element.text, element.value))
        return _joined(members)

    def _no_list(self, parent: Record, found: Member) -> Record:
        """A list is no object, so it is set aside, with what it says."""
        told = written(_NO_LIST.format(path=".".join(self.path)))
        keys = _joined([*self._kept(parent), found]).text
        text = f"[{told},{keys}]"
        return Record(text, [told])


def _text_at(text: str, path: Sequence[str]) -> Member | None:
    """None where nothing is. What stands in the way is what is there instead."""
    found: Member | None = None
    for name in path:
        found = next((member for member in members_of(text) if member.name == name), None)
        if found is None or not isinstance(found.value, Mapping):
            return found
        text = found.text
    return found


def _joined(members: Sequence[Member]) -> Record:
    joined = object_of(members)
    if len(joined.value) < len(members):
        ((name, _),) = Counter(member.name for member in members).most_common(1)
        raise SourceError(
            f"elements have a member `{name}`, as is called what tells where they belong",
            hint='give that another name: `parent_keys = { other = "member" }`, or `position = "other"`',
        )
    return joined
