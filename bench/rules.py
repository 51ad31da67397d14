"""Twenty row rules for lineitem, of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rule = dict[str, Any]

_MODES = ["AIR", "REG AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]

TWENTY: Sequence[Rule] = (
    {"type": "not_null", "field": "l_orderkey"},
    {"type": "not_null", "field": "l_partkey"},
    {"type": "not_null", "field": "l_suppkey"},
    {"type": "not_null", "field": "l_comment"},
    {"type": "range", "field": "l_quantity", "min": 1, "max": 50},
    {"type": "range", "field": "l_discount", "min": 0, "max": 0.1},
    {"type": "range", "field": "l_tax", "min": 0, "max": 0.08},
    {"type": "range", "field": "l_extendedprice", "min": 0},
    {"type": "range", "field": "l_shipdate", "min": "1992-01-01", "max": "1998-12-31"},
    {"type": "max_length", "field": "l_comment", "max": 44},
    {"type": "max_length", "field": "l_shipinstruct", "max": 25},
    {"type": "min_length", "field": "l_comment", "min": 2},
    {"type": "one_of", "field": "l_returnflag", "values": ["A", "N", "R"]},
    {"type": "one_of", "field": "l_linestatus", "values": ["O", "F"]},
    {"type": "one_of", "field": "l_shipmode", "values": _MODES},
    {"type": "regex", "field": "l_comment", "pattern": "^[A-Za-z ,.;:!?'-]+"},
    {"type": "regex", "field": "l_shipinstruct", "pattern": "^[A-Z ]+$"},
    {"type": "compare", "field": "l_shipdate", "op": "<=", "other": "l_receiptdate"},
    {"type": "field_type", "field": "l_linenumber", "expected": "integer"},
    {"type": "range", "field": "l_linenumber", "min": 1, "max": 7},
)
"""No row of TPC-H breaks any of them."""

ONE_IN_A_HUNDRED: Rule = {"type": "range", "field": "l_partkey", "min": 2000, "on_fail": "skip"}
"""SF 1 has 200,000 parts, each as often as the others: 1% of the rows break it."""

EXPRESSION: Rule = {"type": "expression", "expression": "l_extendedprice * (1 - l_discount) >= 0 AND l_shipmode <> ''"}
"""As most are, one that workers compute where they stage the rows."""

SPARKS_EXPRESSION: Rule = {"type": "expression", "expression": "upper(l_shipmode) <> ''"}
"""Only Spark computes it."""

UNIQUE: Rule = {"type": "unique_within_load", "fields": ["l_orderkey", "l_linenumber"]}
"""Of a kind that needs a second, narrow reading."""

IN_ONE_PASS: dict[str, list[dict[str, Any]]] = {
    "row_count": [{"min": 1}],
    "freshness": [{"column": "l_shipdate", "within_hours": 1_000_000}],
    "cardinality": [
        {"column": "l_shipmode", "min_distinct": 7, "max_distinct": 7},
        {"column": "l_suppkey", "min_distinct": 5},
    ],
    "null_ratio": [{"column": "l_comment"}, {"column": "l_tax", "max": 0.1}],
    "accepted_values": [{"column": "l_returnflag", "values": ["A", "N", "R"]}],
    "range": [
        {"column": "l_quantity", "of": "mean", "min": 20, "max": 30},
        {"column": "l_discount", "min": 0, "max": 0.1},
        {"column": "l_extendedprice", "of": "sum", "min": 0},
    ],
}
"""Validators that one pass over the rows can answer: all six kinds of them."""

EVERY_ROW: Rule = {"type": "range", "field": "l_quantity", "max": 0}
"""Quantities are from 1 to 50: every row breaks it."""
