"""Rules that are expressions: judged by the columns' kinds at `plan`, and asked of the rows by the workers that stage
them, or, where Arrow does not compute what Spark does, by Spark before, as conditions of our own writing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.expressions.judging import holds
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.tree import Kind, columns_of, uncast
from hakiri_dagster.expressions.written import Judged, Misfit
from hakiri_dagster.manifest.rule_spec import ExpressionRule, RowRule
from hakiri_dagster.planning.arrow_types import NativeText, has_texts, is_bytes, is_numeric_text, type_told
from hakiri_dagster.quality.columnar.conditions import Condition
from hakiri_dagster.quality.columnar.evaluating import Kinds, is_in_arrow
from hakiri_dagster.quality.verdicts import verdict_of

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Judges:
    """Who is asked about each rule that is an expression."""

    workers: tuple[Condition, ...]
    spark: tuple[ExpressionRule, ...]


def judges(rules: Sequence[RowRule], kinds: Kinds) -> Judges:
    """By the expression and the kinds of its columns alone, so that no other source, and no other row, brings another
    judge. `kinds`: of all columns."""
    workers, spark = [], []
    for rule in rules:
        if isinstance(rule, ExpressionRule):
            node = read_expression(rule.expression)
            named = {name: kinds[name] for name in columns_of(node)}
            if is_in_arrow(node, named):
                workers.append(Condition(node, tuple(named.items()), verdict_of(rule)))
            else:
                spark.append(rule)
    return Judges(tuple(workers), tuple(spark))


def misfit(rule: ExpressionRule, kinds: Kinds) -> str | None:
    """Why it cannot be asked of these columns, all of which it has."""
    for name in uncast(read_expression(rule.expression)):
        if isinstance(kind := kinds[name], NativeText):
            return _without_type(name, kind)
    try:
        condition(rule, {name: (name, kind) for name, kind in kinds.items()})
    except Misfit as wrong:
        return str(wrong)
    return None


def _without_type(name: str, kind: NativeText) -> str:
    quoted = name if _PLAIN_NAME.match(name) else f"`{name}`"
    as_text = f"CAST({quoted} AS STRING) to ask about its text"
    as_number = f"CAST({quoted} AS DECIMAL(38, 9)), or " if is_numeric_text(kind) else ""
    return f"{name} is {type_told(kind)}, a type that Spark lacks; write {as_number}{as_text}"


def condition(rule: ExpressionRule, columns: Mapping[str, tuple[str, pa.DataType]]) -> str:
    """In Spark's SQL, never NULL. `columns`: what each is called there, a plain name, and what it holds."""
    written = {name: Judged(kind_of(held), called) for name, (called, held) in columns.items()}
    return holds(read_expression(rule.expression), written)


def kind_of(held: pa.DataType) -> Kind:
    if has_texts(held):
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
