"""Arrow batches as the driver gives them, made what the schema says; a value that would be lost is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.postgres.column_types import arrow_type
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column

# PostgreSQL's first and last instants; the driver lets `infinity` wrap around to values outside of them.
_MICROSECONDS = (-210_866_803_200_000_000, 9_223_371_331_199_999_999)
_DAYS = (-2_440_588, 2_145_031_948)


@dataclass(slots=True)
class RowShape:
    columns: tuple[Column, ...]
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        self.schema = pa.schema([(column.name, arrow_type(column.spark_type)) for column in self.columns])

    def fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            self._fit(array, column, wanted.type)
            for array, column, wanted in zip(batch.columns, self.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _fit(self, array: pa.Array, column: Column, wanted: pa.DataType) -> pa.Array:
        if pa.types.is_decimal(wanted):
            return self._decimals(array, column, wanted)
        if array.type != wanted:
            raise SourceError(
                f"column {column.name!r} arrives as {array.type}, not as {wanted}",
                hint="the table's columns have changed; the next plan reads them anew",
            )
        if pa.types.is_timestamp(wanted):
            self._refuse_outside(array.view(pa.int64()), _MICROSECONDS, column)
        elif pa.types.is_date(wanted):
            self._refuse_outside(array.view(pa.int32()), _DAYS, column)
        return array

    def _decimals(self, array: pa.Array, column: Column, wanted: pa.DataType) -> pa.Array:
        try:
            return array.cast(wanted)
        except pa.ArrowInvalid:
            raise self._lost("NaN", column) from None

    def _refuse_outside(self, numbers: pa.Array, limits: tuple[int, int], column: Column) -> None:
        seen = pc.min_max(numbers)
        low, high = seen["min"].as_py(), seen["max"].as_py()
        if low is not None and not limits[0] <= low <= high <= limits[1]:
            raise self._lost("infinity, or an instant after the year 294246", column)

    def _lost(self, value: str, column: Column) -> SourceError:
        return SourceError(
            f"column {column.name!r} of type {column.native_type} holds {value}, which {column.spark_type} cannot",
            hint=f'add text_columns = ["{column.name}"] to the source\'s config, and to the table '
            f'columns = {{ "{column.name}" = "text" }}: it then travels as text, exactly',
        )
