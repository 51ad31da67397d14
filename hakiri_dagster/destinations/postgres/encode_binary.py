"""Rows as blocks of binary COPY, through pgpq."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pgpq
import pyarrow as pa
from pgpq import encoders, schema

from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"


@dataclass(slots=True)
class BinaryRowEncoder:
    """pgpq's own encoder is made in the worker: it cannot be pickled."""

    plans: tuple[ColumnPlan, ...]
    _encoder: pgpq.ArrowToPostgresBinaryEncoder | None = field(default=None, repr=False)
    _header_left: int = len(HEADER)

    def write(self, batch: pa.RecordBatch) -> bytes:
        encoder = self._started()
        return self._rows(encoder.write_batch(batch))

    def finish(self) -> bytes:
        """pgpq keeps up to 1 MiB of rows back until here."""
        if self._encoder is None:
            return b""
        rest = self._rows(self._encoder.finish())
        self._encoder, self._header_left = None, len(HEADER)
        return rest[: -len(TRAILER)]

    def _started(self) -> pgpq.ArrowToPostgresBinaryEncoder:
        if self._encoder is None:
            fields = pa.schema([(plan.name, plan.wire) for plan in self.plans])
            builders = {field.name: _builder(field, plan) for field, plan in zip(fields, self.plans, strict=True)}
            self._encoder = pgpq.ArrowToPostgresBinaryEncoder.new_with_encoders(fields, builders)
            self._header_left -= len(self._encoder.write_header())
        return self._encoder

    def _rows(self, encoded: bytes) -> bytes:
        """Without the header, which pgpq may hand out late: blocks of several encoders follow each other."""
        dropped = min(self._header_left, len(encoded))
        self._header_left -= dropped
        return encoded[dropped:] if dropped else encoded


def _builder(wire: pa.Field, plan: ColumnPlan) -> Any:
    if plan.target.name == "jsonb" and not plan.target.dimensions:
        return encoders.StringEncoderBuilder.new_with_output(wire, schema.Jsonb())
    return pgpq.ArrowToPostgresBinaryEncoder.infer_encoder(wire)
