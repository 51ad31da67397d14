"""What row rules mean, in plain Python: an opinion of its own, to hold the product's against."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

Values = Mapping[str, Any]
"""A row as it was read: None where there is nothing."""

Rule = Mapping[str, Any]
"""As a manifest writes it."""

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip

EXPRESSIONS: Mapping[str, Callable[[Any, Any, Any], bool | None]] = {
    "n > m": lambda n, m, t: None if n is None or m is None else n > m,
    "n / m >= 1": lambda n, m, t: None if n is None or m is None else Decimal(n) / m >= 1,
    "m = 0 OR n / m >= 1": lambda n, m, t: m == 0 or (None if n is None or m is None else Decimal(n) / m >= 1),
    "coalesce(n, 0) < 3": lambda n, m, t: (n or 0) < 3,
    "n IS NOT NULL AND t IS NOT NULL": lambda n, m, t: n is not None and t is not None,
    "length(t) <= 2 OR t LIKE 'a%'": lambda n, m, t: None if t is None else len(t) <= 2 or t.startswith("a"),
    "upper(t) IN ('A', 'B', '12')": lambda n, m, t: None if t is None else t.upper() in ("A", "B", "12"),
    "NOT (n = 1 AND m = 1)": lambda n, m, t: not_(and_(same(n, 1), same(m, 1))),
    "CASE WHEN n > 2 THEN t = 'a' ELSE TRUE END": lambda n, m, t: same(t, "a") if n is not None and n > 2 else True,
}
"""Of n, m and t; NULL passes, and what cannot be computed does not."""


def same(one: Any, other: Any) -> bool | None:
    return None if one is None else one == other


def and_(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def not_(one: bool | None) -> bool | None:
    return None if one is None else not one


def breaks(rule: Rule, row: Values) -> bool:
    if rule["type"] == "expression":
        return _expression_is_broken(rule["expression"], row)
    value = row[rule["field"]]
    if rule["type"] == "not_null":
        return value is None
    return value is not None and not _passes(rule, value, row)


def _expression_is_broken(text: str, row: Values) -> bool:
    try:
        return EXPRESSIONS[text](row["n"], row["m"], row["t"]) is False
    except ArithmeticError:
        return True


def _passes(rule: Rule, value: Any, row: Values) -> bool:
    match rule["type"]:
        case "regex":
            return re.search(rule["pattern"], value) is not None
        case "range":
            return _within(value, rule.get("min"), rule.get("max"))
        case "min_length":
            return len(value) >= rule["min"]
        case "max_length":
            return len(value) <= rule["max"]
        case "one_of":
            return value in rule["values"]
        case "field_type":
            return _readable(value, rule["expected"])
        case "compare":
            other = row[rule["other"]]
            return other is None or OPERATORS[rule["op"]](value, other)
    raise ValueError(rule["type"])


def _within(value: Any, low: Any, high: Any) -> bool:
    if isinstance(value, date):
        low, high = (None if bound is None else date.fromisoformat(bound) for bound in (low, high))
    if isinstance(value, Decimal):
        low, high = (None if bound is None else Decimal(str(bound)) for bound in (low, high))
    return (low is None or low <= value) and (high is None or value <= high)


def _readable(text: str, expected: str) -> bool:
    readers: Mapping[str, Callable[[str], object]] = {
        "string": str, "integer": int, "float": float, "uuid": UUID, "json": json.loads,
        "boolean": lambda said: {"true": True, "t": True, "1": True, "f": False, "n": False}[said.strip().lower()],
        "date": lambda said: date.fromisoformat(said.strip()), "timestamp": lambda said: date.fromisoformat(said),
    }  # fmt: skip
    try:
        readers[expected](text)
    except (ValueError, KeyError):
        return False
    return True
