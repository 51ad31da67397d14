"""Expressions as the workers get them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.quality.columnar.conditions import Condition, with_answers


def condition(text: str, **kinds: pa.DataType) -> Condition:
    return Condition(read_expression(text), tuple(kinds.items()), f"says {text}")


def test_rows_go_on_with_the_answers() -> None:
    batch = pa.record_batch({"v": [1, 2, None]})
    asked = [condition("v > 1", v=pa.int64()), condition("v IS NOT NULL", v=pa.int64())]
    found = with_answers(batch, pickle.loads(pickle.dumps(asked)))
    assert found.to_pydict() == {
        "v": [1, 2, None],
        "says v > 1": [False, True, True],
        "says v IS NOT NULL": [True, True, False],
    }


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.string(), pa.array(["a", "b", None]).dictionary_encode()),
        (pa.string(), pa.array(["a", "b", None], pa.large_string())),
        (pa.string(), pa.array(["x", "a", "b", None])[1:]),
    ],
)
def test_a_column_is_of_the_kind_that_the_source_has_told_whatever_it_comes_as(kind: Any, column: Any) -> None:
    batch = pa.record_batch({"v": column})
    assert condition("v = 'a'", v=kind).passes(batch).to_pylist() == [True, False, True]


def test_lists_and_structs_come_as_they_are() -> None:
    batch = pa.record_batch({"v": pa.array([{"a": 1}, None])})
    assert condition("v IS NOT NULL", v=pa.struct([])).passes(batch).to_pylist() == [True, False]


def test_workers_never_import_the_parser() -> None:
    modules = "hakiri_dagster.pipeline.staging, hakiri_dagster.pipeline.rule_counts"
    said = [sys.executable, "-c", f"import sys, {modules}; print('sqlglot' in sys.modules)"]
    assert subprocess.run(said, capture_output=True, text=True, check=True).stdout == "False\n"
