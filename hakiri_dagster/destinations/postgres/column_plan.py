"""One column on its way to the target: cast, then judged. Runs in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.destinations.contract import Refusal
from hakiri_dagster.destinations.postgres.casting import Convert, convert_each, null_where
from hakiri_dagster.destinations.postgres.conversion import INTEGER_AS_DECIMAL, Kind, kind_of
from hakiri_dagster.destinations.postgres.judgement import refusals
from hakiri_dagster.destinations.postgres.text_form import json_of, text_of
from hakiri_dagster.destinations.postgres.types import PgType
from hakiri_dagster.planning.arrow_types import is_list, is_text

_DAY = 86_400_000_000
_ZONED = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)$"
_DATE_ONLY = r"^\d{4}-\d\d-\d\d$"


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """`target` is the type below any domain; `labels` are an enum's; `required` says why NULL is refused. `lenient`: a
    value that does not fit is left out, and its row is not."""

    name: str
    target: PgType
    wire: pa.DataType
    binary: bool
    labels: tuple[str, ...] = ()
    required: str | None = None
    lenient: bool = False

    def prepare(self, array: pa.Array) -> tuple[pa.Array, list[Refusal]]:
        """The column as the encoder takes it, NULL where a value is refused."""
        converted, found = self._prepared(array)
        if self.lenient and self.required is None:
            found = [replace(refusal, value_only=True) for refusal in found]
        return converted, found

    def _prepared(self, array: pa.Array) -> tuple[pa.Array, list[Refusal]]:
        found: list[Refusal] = []
        if self.required and array.null_count:
            found.append(Refusal(array.is_null(), "not_null", f"{self.name} is NULL, and {self.required}"))
        if at.is_dictionary(array.type):
            array = array.dictionary_decode()
        converted, misfits = self._converted(array)
        if misfits is not None:
            found.append(Refusal(misfits, "type", f"{self.name}: the value does not fit {self._shown}"))
        for refusal in self._judged(converted):
            converted = null_where(converted, refusal.mask)
            found.append(refusal)
        return converted, found

    @property
    def _shown(self) -> str:
        return "the enum" if self.target.name == "enum" else str(self.target)

    def _converted(self, array: pa.Array) -> tuple[pa.Array, pa.BooleanArray | None]:
        if is_list(array.type) and is_list(self.wire):
            return self._converted_list(array)
        if array.type == self.wire:
            return array, None
        convert = _conversion(kind_of(self.target), array.type, self.wire, listed=bool(self.target.dimensions))
        return convert_each(array, self.wire, convert)

    def _converted_list(self, array: pa.Array) -> tuple[pa.Array, pa.BooleanArray | None]:
        """A list is refused as a whole when one of its values is."""
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        inner_plan = ColumnPlan(self.name, self._inner_target, self.wire.value_type, self.binary)
        inner, found = inner_plan.prepare(array.flatten())
        offsets = pa.array(np.concatenate(([0], np.cumsum(np.asarray(lengths)))).astype(np.int32))
        rebuilt = pa.ListArray.from_arrays(offsets, inner, type=self.wire, mask=array.is_null())
        if not found:
            return rebuilt, None
        owners = np.repeat(np.arange(len(array)), np.asarray(lengths))
        bad = np.zeros(len(array), dtype=bool)
        for refusal in found:
            bad[owners[np.asarray(refusal.mask)]] = True
        return null_where(rebuilt, pa.array(bad)), pa.array(bad)

    @property
    def _inner_target(self) -> PgType:
        return self.target if is_list(self.wire.value_type) else self.target.element

    def _judged(self, array: pa.Array) -> Iterator[Refusal]:
        if self.labels and at.is_string(array.type):
            strange = pc.and_(array.is_valid(), pc.invert(pc.is_in(array, pa.array(self.labels, pa.string()))))
            if pc.any(strange).as_py():
                yield Refusal(strange, "type", f"{self.name}: not one of the enum's labels")
        yield from refusals(array, self.target, self.name)


def _conversion(kind: Kind, source: pa.DataType, wire: pa.DataType, *, listed: bool) -> Convert:
    if listed:
        return text_of if not is_text(source) else lambda array: array.cast(pa.string())
    match kind:
        case "numeric" if at.is_integer(source):
            return lambda array: array.cast(INTEGER_AS_DECIMAL).cast(wire)
        case "uuid" if is_text(source):
            return _uuids
        case "json" if not is_text(source):
            return json_of
        case "timestamptz" if is_text(source):
            return lambda array: _with_zone(array).cast(wire)
        case "date" if at.is_timestamp(source):
            return _days
        case "timestamp" if at.is_timestamp(source) and source.tz is not None:
            return lambda array: array.cast(pa.timestamp("us", "UTC")).cast(wire)
        case "float" if wire == pa.float32() and not at.is_float32(source):
            return _reals
        case _ if at.is_string(wire):
            return lambda array: text_of(array) if not is_text(array.type) else array.cast(pa.string())
        case _:
            return lambda array: array.cast(wire)


def _uuids(array: pa.Array) -> pa.Array:
    try:
        return pa.array([None if text is None else UUID(text).bytes for text in array.to_pylist()], pa.binary(16))
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None


def _with_zone(array: pa.Array) -> pa.Array:
    """Times without a zone are UTC, as everywhere."""
    texts = array.cast(pa.string())
    timed = pc.if_else(
        pc.match_substring_regex(texts, _DATE_ONLY), pc.binary_join_element_wise(texts, "00:00:00", " "), texts
    )
    zoned = pc.match_substring_regex(timed, _ZONED)
    return pc.if_else(zoned, timed, pc.binary_join_element_wise(timed, "Z", ""))


def _days(array: pa.Array) -> pa.Array:
    """Arrow would drop a time of day without a word."""
    moments = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    days = moments.cast(pa.timestamp("us")).cast(pa.date32())
    back = days.cast(pa.timestamp("us")).cast(pa.int64())
    if not pc.all(pc.equal(moments, back)).as_py() and array.null_count < len(array):
        raise pa.ArrowInvalid("the time has a time of day")
    return days


def _reals(array: pa.Array) -> pa.Array:
    """Arrow would turn what is too large into infinity."""
    doubles = array.cast(pa.float64())
    reals = doubles.cast(pa.float32())
    if pc.any(pc.and_(pc.is_inf(reals), pc.invert(pc.is_inf(doubles)))).as_py():
        raise pa.ArrowInvalid("out of range for real")
    return reals
