"""Rules and validators that a table passes as it is, derived from its profile. None of them stops a load."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from hakiri_dagster.manifest import validator_spec as spec
from hakiri_dagster.manifest.rule_spec import RowRule
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator
from hakiri_dagster.quality.headroom import (
    day_bounds,
    longest_text,
    null_share,
    number_bounds,
    oldest_hours,
    row_band,
)
from hakiri_dagster.quality.measures import Instant
from hakiri_dagster.quality.profile import ColumnProfile, TableProfile
from hakiri_dagster.quality.values_told import ASKED_TYPES

ROWS_A_VALUE = 5
"""A list of values is closed only where each of them comes again and again."""

FEWEST_ROWS_OF_A_KEY = 20
"""Among fewer, anything may be different in each by chance."""

_IDS = re.compile(r"(^|_)id$|[a-z]I[dD]$", re.ASCII)
_RULE: TypeAdapter[RowRule] = TypeAdapter(RowRule)


@dataclass(frozen=True, slots=True)
class Proposal:
    """`why`: from what it was derived."""

    check: RowRule | DatasetValidator
    why: str


def proposals(table: Table, profile: TableProfile, unique: Collection[str], now: datetime) -> Iterator[Proposal]:
    """`unique`: columns that tell all rows apart."""
    if not profile.rows:
        return
    for column in profile.columns:
        yield from _of_rows(table, column, unique, now)
    yield _row_count(table, profile)
    yield from _freshness(table, profile, now)
    yield from _duplicate_keys(table, profile, unique)
    for column in profile.columns:
        yield from _null_ratio(column)


def maybe_unique(profile: TableProfile) -> Iterator[ColumnProfile]:
    """Columns that may tell all rows apart, by an estimate."""
    if profile.rows < FEWEST_ROWS_OF_A_KEY:
        return
    for column in profile.columns:
        may_be_a_key = column.texts is not None or column.type == "uuid" or isinstance(column.lowest, int)
        if may_be_a_key and not column.nulls and (column.distinct or 0) >= 0.9 * profile.rows:
            yield column


def _of_rows(table: Table, column: ColumnProfile, unique: Collection[str], now: datetime) -> Iterator[Proposal]:
    if not column.nulls:
        yield _rule(column, "no NULL", type="not_null")
    is_key = column.name in unique or column.name in table.primary_key
    values = None if is_key else _closed_list(column)
    if values is not None:
        yield _rule(column, f"{len(values)} value(s)", type="one_of", values=values)
        return
    if column.texts is not None:
        yield from _of_texts(column)
    elif isinstance(column.lowest, Instant) and isinstance(column.highest, Instant):
        if (days := day_bounds(column.lowest, column.highest, now)) is not None:
            yield _range(column, days)
    elif not is_key and column.name != table.cursor and not _IDS.search(column.name):  # those grow
        yield from _of_numbers(column)


def _closed_list(column: ColumnProfile) -> list[Any] | None:
    if not column.values or (column.texts is None and not isinstance(column.lowest, int)):
        return None
    values = [value for value, _ in column.values]
    if "" in values or column.rows - column.nulls < ROWS_A_VALUE * len(values):
        return None
    return sorted(values)


def _of_texts(column: ColumnProfile) -> Iterator[Proposal]:
    readable = next((expected for expected in ASKED_TYPES if expected in column.readable_as), None)
    if readable is not None:
        yield _rule(column, f"every text is one of type {readable}", type="field_type", expected=readable)
    if column.texts is not None and readable in (None, "integer", "float") and "(" not in column.type:
        longest = column.texts.longest
        yield _rule(column, f"the longest has {longest:,} character(s)", type="max_length", max=longest_text(longest))


def _of_numbers(column: ColumnProfile) -> Iterator[Proposal]:
    low, high = column.lowest, column.highest
    if low is None or high is None or isinstance(low, Instant) or isinstance(high, Instant):
        return
    if (bounds := number_bounds(low, high)) is not None:
        yield _range(column, bounds)


def _range(column: ColumnProfile, bounds: tuple[float, float] | tuple[str, str]) -> Proposal:
    return _rule(column, f"from {column.lowest} to {column.highest}", type="range", min=bounds[0], max=bounds[1])


def _rule(column: ColumnProfile, found: str, **settings: Any) -> Proposal:
    rule = _RULE.validate_python({**settings, "field": column.name, "on_fail": "warn"})
    return Proposal(rule, f"{found} in {column.rows:,} row(s)")


def _row_count(table: Table, profile: TableProfile) -> Proposal:
    low, high = row_band(profile.rows, replaced=table.whole_table)
    scope = {} if table.whole_table else {"scope": "table"}
    bounds = {"min": low, "max": high, **scope, "on_fail": "warn"}
    return Proposal(spec.RowCountValidator.model_validate(bounds), f"{profile.rows:,} row(s)")


def _freshness(table: Table, profile: TableProfile, now: datetime) -> Iterator[Proposal]:
    cursor = next((column for column in profile.columns if column.name == table.cursor), None)
    if cursor is None or not isinstance(cursor.highest, Instant):
        return
    hours = oldest_hours(cursor.highest, now)
    if hours is not None:
        age = {"within_hours": float(hours), "column": cursor.name, "on_fail": "warn"}
        why = f"the newest of {profile.rows:,} row(s) is of {cursor.highest}"
        yield Proposal(spec.FreshnessValidator.model_validate(age), why)


def _duplicate_keys(table: Table, profile: TableProfile, unique: Collection[str]) -> Iterator[Proposal]:
    """A history has several rows of one key."""
    there = {column.name for column in profile.columns}
    keys: list[Sequence[str]] = [[name] for name in unique if (name,) != table.primary_key]
    if table.primary_key and there.issuperset(table.primary_key) and table.mode != "scd2":
        keys.insert(0, table.primary_key)
    for key in keys:
        what = "the primary key" if tuple(key) == table.primary_key else "each has another value"
        why = f"{what}, of {profile.rows:,} row(s)"
        settings: Mapping[str, Any] = {"columns": list(key), "on_fail": "warn"}
        yield Proposal(spec.DuplicateKeyValidator.model_validate(settings), why)


def _null_ratio(column: ColumnProfile) -> Iterator[Proposal]:
    if 0 < column.nulls < column.rows and (share := null_share(column.null_ratio)) is not None:
        settings = {"column": column.name, "max": share, "on_fail": "warn"}
        why = f"{column.nulls:,} of {column.rows:,} row(s) are NULL"
        yield Proposal(spec.NullRatioValidator.model_validate(settings), why)
