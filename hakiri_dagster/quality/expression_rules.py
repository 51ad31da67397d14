"""Rules that are expressions: judged by the columns' kinds at `plan`, and asked of the rows by Spark before these are
staged, as conditions of our own writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.expressions.judging import holds
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.tree import Kind
from hakiri_dagster.expressions.written import Judged, Misfit
from hakiri_dagster.manifest.rule_spec import ExpressionRule, RowRule
from hakiri_dagster.planning.arrow_types import is_bytes, is_text


def asked_of_spark(rules: Sequence[RowRule]) -> tuple[ExpressionRule, ...]:
    return tuple(rule for rule in rules if isinstance(rule, ExpressionRule))


def misfit(rule: ExpressionRule, kinds: Mapping[str, pa.DataType]) -> str | None:
    """Why it cannot be asked of these columns, all of which it has."""
    try:
        condition(rule, {name: (name, kind) for name, kind in kinds.items()})
    except Misfit as wrong:
        return str(wrong)
    return None


def condition(rule: ExpressionRule, columns: Mapping[str, tuple[str, pa.DataType]]) -> str:
    """In Spark's SQL, never NULL. `columns`: what each is called there, a plain name, and what it holds."""
    written = {name: Judged(_kind_of(held), called) for name, (called, held) in columns.items()}
    return holds(read_expression(rule.expression), written)


def _kind_of(held: pa.DataType) -> Kind:
    if is_text(held):
        return "text"
    if at.is_boolean(held):
        return "boolean"
    if at.is_integer(held):
        return "long" if held.bit_width == 64 else "integer"
    if at.is_decimal(held):
        return "decimal"
    if at.is_floating(held):
        return "float"
    if at.is_date(held):
        return "date"
    if at.is_timestamp(held):
        return "timestamp_ntz" if held.tz is None else "timestamp"
    return "bytes" if is_bytes(held) else "other"
