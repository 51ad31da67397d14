"""Values that are kept as the text that was sent, as Spark is to find them: as texts.

Its parser would write an object or a fraction anew, and `1.10`, or the digits that a double does not hold, would be
gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hakiri_dagster.connectors.rest.json_text import Member, Record, members_of, object_of, written
from hakiri_dagster.planning.columns import Column

_JSON = ("json", "jsonb")


@dataclass(frozen=True, slots=True)
class Verbatim:
    """`documents`: columns of JSON, whatever is in them. `texts`: columns of text, in which a number may be, too."""

    documents: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Verbatim:
        strings = [column for column in columns if column.spark_type == "string"]
        documents = frozenset(column.name for column in strings if column.native_type in _JSON)
        return cls(documents, frozenset(column.name for column in strings) - documents)

    def __call__(self, record: Record) -> str:
        """The record's text, with these values as texts."""
        if not isinstance(record.value, Mapping) or not any(
            self._means(name, value) for name, value in record.value.items()
        ):
            return record.text
        return object_of(map(self._written, members_of(record.text))).text

    def _written(self, member: Member) -> Member:
        return replace(member, text=written(member.text)) if self._means(member.name, member.value) else member

    def _means(self, name: str, value: Any) -> bool:
        return value is not None and (name in self.documents or (name in self.texts and not isinstance(value, str)))
