"""The encoder plan: how the rows of one schema become COPY blocks for one target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hakiri_dagster.destinations.contract import Refusal, RowEncoder
from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.encode_binary import BinaryRowEncoder
from hakiri_dagster.destinations.postgres.encode_text import TextRowEncoder

_HIGHEST_BINARY_BYTE = 6  # of the column count, at most 1600, that begins each binary row


@dataclass(frozen=True, slots=True)
class PostgresEncoderPlan:
    plans: tuple[ColumnPlan, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(plan.name for plan in self.plans)

    @property
    def binary(self) -> bool:
        return all(plan.binary for plan in self.plans)

    def prepare(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[Refusal]]:
        """Refused values are NULL in the batch; the caller leaves their rows out before it encodes."""
        arrays: list[pa.Array] = []
        found: list[Refusal] = []
        for plan in self.plans:
            array, refused = plan.prepare(batch.column(plan.name))
            arrays.append(array)
            found.extend(refused)
        fields = pa.schema([(plan.name, plan.wire) for plan in self.plans])
        return pa.RecordBatch.from_arrays(arrays, schema=fields), found

    def encoder(self) -> RowEncoder:
        return BinaryRowEncoder(self.plans) if self.binary else TextRowEncoder(self.plans)


def is_binary(first_bytes: bytes) -> bool:
    return first_bytes[0] <= _HIGHEST_BINARY_BYTE
