"""Tables made up by hypothesis: rows, rules and settings that meet one another in all ways."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st

from tests.integration.orchestration.model_of_loads import COLUMNS, FAR_AWAY, Line, Scenario, outcome
from tests.integration.orchestration.model_of_rules import EXPRESSIONS, OPERATORS

MODES = ("append", "truncate", "upsert", "delete_missing", "blue_green", "incremental_watermark", "scd2")
CURSORS: dict[str, list[str | None]] = {
    "append": ["day", "pos", None], "upsert": ["day", "pos", None], "delete_missing": ["pos", None],
    "truncate": [None], "blue_green": [None], "incremental_watermark": ["day", "pos"], "scd2": ["day", None],
}  # fmt: skip
TEXTS = ["a", "b", "abc", "B", "ä", " 7", "12", "1.5", "true", "2024-02-03", "2024-02-31", "x,y", 'say "hi"',
         "two\nlines", "[1]", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "nul\0byte"]  # fmt: skip
DAYS = [date(2021, 1, 5), date(2021, 12, 31), date(2022, 1, 1), date(2022, 3, 9), FAR_AWAY]
UNREADABLE = {"n": "x", "price": "1.255", "day": "2024-13-45", "pos": "99999999999999999999"}

GATE = {"id": "gate", "type": "range", "field": "m", "max": 50, "on_fail": "abort"}
POISONED = Line(
    {
        "row": 901, "k": 1, "n": 1, "m": 99, "t": "a", "u": "b", "price": Decimal("1.50"), "day": date(2023, 4, 2),
        "pos": 45,
    }
)  # fmt: skip
"""It comes after all windows of a first load, in which no row breaks GATE."""


def or_nothing(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([*values, *values, None])


VALUES = st.fixed_dictionaries(
    {
        "k": or_nothing([1, 1, 2, 3, 4]),
        "n": or_nothing([0, 1, 2, 3, -1]),
        "m": or_nothing([0, 1, 2]),
        "t": or_nothing(TEXTS),
        "u": or_nothing(["a", "b", "ab"]),
        "price": or_nothing([Decimal("0.10"), Decimal("1.50"), Decimal("-2.00")]),
        "day": or_nothing(DAYS),
        "pos": or_nothing([1, 2, 9, 10, 31]),
    }
)


def _said(type_: str, **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(type_), **{k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in more.items()}}
    )


SAYINGS = st.one_of(
    _said("expression", expression=st.sampled_from(list(EXPRESSIONS))),
    _said("compare", field="n", op=st.sampled_from(list(OPERATORS)), other=st.sampled_from(["m", "price"])),
    _said("compare", field="t", op=st.sampled_from(list(OPERATORS)), other="u"),
    _said("field_type", field="t", expected=st.sampled_from(["integer", "float", "boolean", "date", "json", "uuid"])),
    _said("one_of", field="t", values=st.lists(st.sampled_from(TEXTS[:-1]), min_size=10, unique=True)),
    _said("one_of", field="n", values=st.lists(st.sampled_from([0, 1, 2, 3, -1]), min_size=3, unique=True)),
    _said("max_length", field="t", max=st.integers(2, 5)),
    _said("min_length", field="t", min=st.integers(0, 2)),
    _said("range", field="n", min=st.integers(-1, 1), max=st.integers(2, 3)),
    _said("range", field="price", min=st.sampled_from([-2, 0.1]), max=st.sampled_from([1.49, 1.5])),
    _said("range", field="day", min=st.sampled_from(["2021-01-06", "2022-01-01"])),
    _said("regex", field="t", pattern=st.sampled_from(["^[^a]", "[^c]$", "^[^,]*$", "."])),
    _said("not_null", field=st.sampled_from(["n", "t", "day", "k"])),
)
FATES = st.sampled_from(
    [
        *[{"on_fail": "warn"}] * 4, *[{"on_fail": "skip"}] * 4, {"on_fail": "skip", "max_failed_ratio": 0.5},
        {"on_fail": "skip", "max_failed_rows": 2}, {"on_fail": "abort"},
    ]
)  # fmt: skip
VALIDATORS = st.fixed_dictionaries(
    {},
    optional={
        "row_count": st.builds(lambda most, how: {"max": most, "on_fail": how}, st.integers(1, 8), st.sampled_from(
            ["warn", "abort"])),
        "null_ratio": st.builds(lambda most, how: {"column": "n", "max": most, "on_fail": how}, st.sampled_from(
            [0.25, 0.5]), st.sampled_from(["warn", "abort"])),
        "row_count_matches_source": st.just({"on_fail": "abort"}),
    },
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn, numbers: Iterator[int], *, of_text: bool) -> tuple[Line, ...]:
    return tuple(draw(line(next(numbers), of_text=of_text)) for _ in range(draw(st.integers(1, 8))))


@st.composite
def line(draw: st.DrawFn, number: int, *, of_text: bool) -> Line:
    drawn = {"row": number, **draw(VALUES)}
    values = {column: drawn[column] for column in COLUMNS}
    if not of_text:
        return Line({**values, "t": draw(st.sampled_from([values["t"], ""]))})
    flaw = draw(st.sampled_from([*([None] * 12), "too long", *UNREADABLE]))
    if flaw is None:
        return Line(values)
    plain = {**values, "t": None} | ({} if flaw == "too long" else {flaw: UNREADABLE[flaw]})
    return Line({}, as_csv([*plain.values(), *(["more"] if flaw == "too long" else [])]).removesuffix("\n"))


@st.composite
def scenarios(draw: st.DrawFn, mode: str) -> Scenario:
    format_ = draw(st.sampled_from(["csv", "csv", "parquet"]))
    numbers = count(1)
    sayings = draw(st.lists(st.tuples(SAYINGS, FATES), min_size=2, max_size=5))
    names = [f"{name}.{format_}" for name in ("a", "b", "c")[: draw(st.integers(1, 3))]]
    return Scenario(
        mode=mode,
        format=format_,
        cursor=draw(st.sampled_from(CURSORS[mode])),
        rules=(*({"id": f"r{i}", **said, **fate} for i, (said, fate) in enumerate(sayings)), GATE),
        files={name: draw(lines(numbers, of_text=format_ == "csv")) for name in names},
        bad_rows=draw(st.sampled_from([*["quarantine"] * 7, "abort"])),
        allow_all=draw(st.booleans()),
        fail_on_empty_source=draw(st.booleans()),
        validators=draw(VALIDATORS),
    )


def tells_something(scenario: Scenario) -> bool:
    found = outcome(scenario)
    return any(judged.rows and judged.aside for judged in found.published.values())


def poisoned(scenario: Scenario) -> Scenario:
    """With one more file, whose rows are of one chunk, one of which no gate lets pass."""
    another = Line({**POISONED.values, "row": 902, "m": 1, "t": "abc"})
    return scenario.with_file(poison_of(scenario), (POISONED, another))


def poison_of(scenario: Scenario) -> str:
    return f"z.{scenario.format}"


def as_csv(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
