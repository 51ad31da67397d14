"""JSON objects as rows of a table's columns, with the reason for each one that does not fit them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.json.record_reader import RecordReader
from hakiri_dagster.connectors.json.typed_values import TypedValues, typed_values
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrow_types import declares_precision
from hakiri_dagster.planning.columns import Column

MALFORMED_TYPE: Final = pa.struct([("line", pa.string()), ("reason", pa.string()), ("readable", pa.bool_())])
"""What `MALFORMED_COLUMN` holds."""

TRUNCATED_TYPE: Final = pa.list_(pa.string())
"""What `TRUNCATED_COLUMN` holds."""


@dataclass(frozen=True, slots=True)
class RecordRows:
    """`values`: of each column. `malformed`: `MALFORMED_COLUMN`. `truncated`: `TRUNCATED_COLUMN`."""

    values: list[pa.Array]
    malformed: pa.StructArray
    truncated: pa.ListArray


class RowReader:
    """Reads blocks of records of one table, one after the other."""

    def __init__(
        self,
        columns: Iterable[Column],
        null_values: Sequence[str] = (),
        *,
        lenient_names: bool = False,
        sub_microseconds: SubMicroseconds = "warn",
        declared: Collection[str] = (),
    ) -> None:
        self._columns = tuple(columns)
        self._null_values = null_values
        self._sub_microseconds = sub_microseconds
        self._declared = frozenset(declared)
        self._records = RecordReader([column.name for column in self._columns], lenient_names=lenient_names)

    def read(self, records: Sequence[bytes], line_of: Callable[[int], str]) -> RecordRows:
        """`line_of`: the text that is reported of a record that does not fit, by its index."""
        found = self._records.read(records)
        values: list[pa.Array] = []
        marks = {index: (line_of(index), reason, False) for index, reason in found.reasons.items()}
        truncated: dict[int, list[str]] = {}
        for column in self._columns:
            raw, is_declared = found.columns[column.name], column.name in self._declared
            typed = typed_values(raw, column, self._null_values, is_declared=is_declared)
            if typed.truncated is not None and not declares_precision(column):
                typed = self._judge_truncated(column, typed, truncated, marks, line_of)
            values.append(typed.values)
            if typed.misfits is None:
                continue
            type_ = column.native_type or column.spark_type
            reason = f"`{column.name}` holds half of a surrogate pair" if type_ == "string" else ""
            for index in np.flatnonzero(np.asarray(typed.misfits)).tolist():
                marks.setdefault(index, (line_of(index), reason or f"`{column.name}` is no {type_}", True))
        cut = pa.array([truncated.get(index) for index in range(found.count)], TRUNCATED_TYPE) if truncated else None
        return RecordRows(values, _malformed(found.count, marks), cut or pa.nulls(found.count, TRUNCATED_TYPE))

    def _judge_truncated(
        self,
        column: Column,
        typed: TypedValues,
        truncated: dict[int, list[str]],
        marks: dict[int, tuple[str, str, bool]],
        line_of: Callable[[int], str],
    ) -> TypedValues:
        """Note which values were cut; where they are quarantined, their rows do not fit."""
        quarantines = self._sub_microseconds == "quarantine"
        for index in np.flatnonzero(np.asarray(typed.truncated)).tolist():
            if quarantines:
                marks.setdefault(index, (line_of(index), f"`{column.name}` has digits beyond microseconds", True))
            else:
                truncated.setdefault(index, []).append(column.name)
        if not quarantines:
            return typed
        nothing = pa.scalar(None, typed.values.type)
        return replace(typed, values=pc.if_else(typed.truncated, nothing, typed.values))


def _malformed(count: int, marks: dict[int, tuple[str, str, bool]]) -> pa.StructArray:
    if not marks:
        return pa.nulls(count, MALFORMED_TYPE)
    fields = [field.name for field in MALFORMED_TYPE]
    rows = [dict(zip(fields, marks[index], strict=True)) if index in marks else None for index in range(count)]
    return pa.array(rows, MALFORMED_TYPE)
