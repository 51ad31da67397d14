"""JSON objects as rows of a table's columns, with the reason for each one that does not fit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hakiri_dagster.connectors.json.record_reader import RecordReader
from hakiri_dagster.connectors.json.typed_values import typed_values
from hakiri_dagster.planning.columns import Column

MALFORMED_TYPE: Final = pa.struct([("line", pa.string()), ("reason", pa.string()), ("readable", pa.bool_())])
"""What `MALFORMED_COLUMN` holds."""


@dataclass(frozen=True, slots=True)
class RecordRows:
    """`values`: of each column. `malformed`: `MALFORMED_COLUMN`."""

    values: list[pa.Array]
    malformed: pa.StructArray


class RowReader:
    """Reads blocks of records of one table, one after the other."""

    def __init__(
        self, columns: Iterable[Column], null_values: Sequence[str] = (), *, lenient_names: bool = False
    ) -> None:
        self._columns = tuple(columns)
        self._null_values = null_values
        self._records = RecordReader([column.name for column in self._columns], lenient_names=lenient_names)

    def read(self, records: Sequence[bytes], line_of: Callable[[int], str]) -> RecordRows:
        """`line_of`: the text that is reported of a record that does not fit, by its index."""
        found = self._records.read(records)
        values: list[pa.Array] = []
        marks = {index: (line_of(index), reason, False) for index, reason in found.reasons.items()}
        for column in self._columns:
            typed = typed_values(found.columns[column.name], column, self._null_values)
            values.append(typed.values)
            if typed.misfits is None:
                continue
            type_ = column.native_type or column.spark_type
            reason = f"`{column.name}` holds half of a surrogate pair" if type_ == "string" else ""
            for index in np.flatnonzero(np.asarray(typed.misfits)).tolist():
                marks.setdefault(index, (line_of(index), reason or f"`{column.name}` is no {type_}", True))
        return RecordRows(values, _malformed(found.count, marks))


def _malformed(count: int, marks: dict[int, tuple[str, str, bool]]) -> pa.StructArray:
    if not marks:
        return pa.nulls(count, MALFORMED_TYPE)
    fields = [field.name for field in MALFORMED_TYPE]
    rows = [dict(zip(fields, marks[index], strict=True)) if index in marks else None for index in range(count)]
    return pa.array(rows, MALFORMED_TYPE)
