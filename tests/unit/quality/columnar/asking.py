"""Expressions, asked of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.quality.columnar.evaluating import evaluated
from hakiri_dagster.quality.columnar.types import settled
from hakiri_dagster.quality.columnar.values import Value, spread


def value_of(text: str, **columns: Any) -> Value:
    given = {name: pa.array(column) if isinstance(column, list) else column for name, column in columns.items()}
    return evaluated(read_expression(text), {name: column.cast(settled(column.type)) for name, column in given.items()})


def cells_of(text: str, **columns: Any) -> list[Any]:
    return list(spread(value_of(text, **columns).cells, _rows(columns)).to_pylist())


def failing(text: str, **columns: Any) -> list[int]:
    """The rows for which it cannot be computed."""
    failed = value_of(text, **columns).failed
    if failed is None:
        return []
    return [place for place, one in enumerate(spread(failed, _rows(columns)).to_pylist()) if one]


def _rows(columns: dict[str, Any]) -> int:
    return len(next(iter(columns.values())))
