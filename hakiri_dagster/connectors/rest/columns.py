"""The columns of a table, from what is declared, what is known, and a sample of its records.

Types are those that JSON lines in files get. A sample does not show every value that a column may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from hakiri_dagster.connectors.files.schemas import alike_names
from hakiri_dagster.connectors.json.raw_text import Record, is_whole, written
from hakiri_dagster.connectors.json.record_reader import RecordReader
from hakiri_dagster.connectors.json.type_inference import (
    ObservedValues,
    declared_json_column,
    inferred_column,
    observe,
)
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out

Shown = Mapping[str, ObservedValues]
"""The columns that some records have, in the order in which they were first seen."""


def shown_by(records: Iterable[Record], settled: frozenset[str]) -> Shown:
    """What is no object has no columns: reading sets it aside. `settled`: columns that have a type whatever values they
    have, so that nobody looks at these."""
    block = RecordReader(lenient_names=True).read([record.text.encode() for record in records])
    found = {name: ObservedValues() if name in settled else observe(texts) for name, texts in block.columns.items()}
    return found | dict.fromkeys(chain.from_iterable(block.unmapped.values()), ObservedValues())


def columns_of(
    shown: Iterable[Shown], known: SourceSchema | None, declared: Mapping[str, str]
) -> tuple[SourceSchema, tuple[str, ...]]:
    """And warnings. Columns keep the order in which they were first seen."""
    values = _united(shown)
    remembered = [column.name for column in known.columns] if known else []
    names = dict.fromkeys([*remembered, *values, *declared])
    columns = tuple(_column(name, known, declared, values) for name in names if not is_ours(name) and is_whole(name))
    return SourceSchema(columns), (*alike_names(column.name for column in columns), *left_out(names), *_halves(names))


def _halves(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if not is_whole(name):
            yield f"the member {written(name)} is not loaded: there is half of a character in its name"


def _united(shown: Iterable[Shown]) -> Shown:
    values: dict[str, ObservedValues] = {}
    for some in shown:
        for name, observed in some.items():
            values[name] = values.get(name, ObservedValues()) | observed
    return values


def _column(name: str, known: SourceSchema | None, declared: Mapping[str, str], values: Shown) -> Column:
    if name in declared:
        return declared_json_column(name, declared[name])
    remembered = known.column(name) if known else None
    return remembered or inferred_column(name, values[name])
