"""What becomes of rows, in plain Python: which are published, which are set aside and why, and when nothing changes.

It knows the promises of docs/concepts.md and nothing of how they are kept: no Arrow, no Spark, no chunks' names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from tests.integration.orchestration.model_of_rules import Rule, Values, breaks

COLUMNS = {
    "row": "int", "k": "int", "n": "int", "m": "int", "t": "text", "u": "text", "price": "numeric(6,2)",
    "day": "date", "pos": "bigint",
}  # fmt: skip
"""`row` tells the rows of a table apart."""

Chunk = tuple[int, Any]
"""Sorts as chunks are loaded."""

FULL: Chunk = (0, 0)
NULL: Chunk = (2, 0)

FAR_AWAY = date(2990, 1, 1)


@dataclass(frozen=True)
class Line:
    """A record of a file. `broken`: the text of a line that cannot be read, whose values nobody knows."""

    values: Values
    broken: str | None = None


@dataclass(frozen=True, repr=False)
class Scenario:
    """One table: what its manifest says, and the records of its files by their names."""

    mode: str
    format: str
    cursor: str | None
    rules: tuple[Rule, ...]
    files: Mapping[str, tuple[Line, ...]]
    bad_rows: str = "quarantine"
    allow_all: bool = False
    fail_on_empty_source: bool = True
    validators: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in vars(self).items() if name not in ("rules", "files"))
        rows = (
            f"{name}: {list(line.values.values()) or line.broken}" for name, of in self.files.items() for line in of
        )
        return "\n  ".join([f"Scenario({', '.join(said)})", *map(repr, self.rules), *rows])

    @property
    def keyed(self) -> bool:
        return self.mode in ("upsert", "delete_missing", "scd2")

    @property
    def whole(self) -> bool:
        return self.mode in ("truncate", "blue_green", "delete_missing") or (self.mode == "scd2" and not self.cursor)

    @property
    def in_windows(self) -> bool:
        return self.cursor is not None and not self.whole

    def with_file(self, name: str, lines: tuple[Line, ...]) -> Scenario:
        return replace(self, files={**self.files, name: lines})

    def without_file(self, name: str) -> Scenario:
        return replace(self, files={known: lines for known, lines in self.files.items() if known != name})


@dataclass(frozen=True)
class Kept:
    """A row of the quarantine table."""

    rule: str
    on_fail: str
    row: str
    file: str


@dataclass
class Judged:
    """What became of the rows of one chunk."""

    rows: list[tuple[str, Values]] = field(default_factory=list)
    """Those that are left, with their files, as they were read."""
    aside: list[Kept] = field(default_factory=list)
    noted: list[Kept] = field(default_factory=list)
    """Rows that a rule only tells of: `warn` and `abort`."""
    broken: dict[str, int] = field(default_factory=dict)
    unfit: int = 0
    unplaced: int = 0

    @property
    def read(self) -> int:
        return len(self.rows) + len(self.aside)


@dataclass
class Outcome:
    """Of one apply."""

    published: dict[Chunk, Judged]
    failed: dict[Chunk, Judged]
    waiting: set[Chunk]

    @property
    def tried(self) -> dict[Chunk, Judged]:
        return self.published | self.failed


def outcome(scenario: Scenario, wanted: set[Chunk] | None = None) -> Outcome:
    """Of loading these chunks, by default all."""
    judged = {chunk: _judge(scenario, lines) for chunk, lines in chunks_of(scenario).items()}
    found = Outcome({}, {}, set())
    for chunk in sorted(judged if wanted is None else wanted & set(judged)):
        if scenario.mode == "incremental_watermark" and found.failed:
            found.waiting.add(chunk)
        elif _fails(scenario, judged[chunk], only_chunk=len(judged) == 1):
            found.failed[chunk] = judged[chunk]
        else:
            found.published[chunk] = judged[chunk]
    return found


def chunks_of(scenario: Scenario) -> dict[Chunk, list[tuple[str, Line]]]:
    found: dict[Chunk, list[tuple[str, Line]]] = {}
    for name, lines in sorted(scenario.files.items()):
        for line in lines:
            found.setdefault(chunk_of(scenario, name, line), []).append((name, line))
    return found


def chunk_of(scenario: Scenario, file: str, line: Line) -> Chunk:
    if scenario.whole:
        return FULL
    if scenario.cursor is None:
        return 0, file
    value = None if line.broken is not None else line.values[scenario.cursor]
    match value:
        case None:
            return NULL
        case date():
            return (1, 0) if value >= FAR_AWAY else (0, value.year)
        case _:
            return 0, value // 10


def _judge(scenario: Scenario, lines: Sequence[tuple[str, Line]]) -> Judged:
    judged = Judged(broken={rule["id"]: 0 for rule in scenario.rules})
    for file, line in lines:
        if line.broken is not None:
            judged.aside.append(Kept("malformed", "skip", f"line {line.broken}", file))
            judged.unfit += 1
            judged.unplaced += scenario.in_windows
        else:
            _judge_row(scenario, judged, line.values, file)
    return judged


def _judge_row(scenario: Scenario, judged: Judged, row: Values, file: str) -> None:
    """Every rule is asked; the first that says so sets the row aside, and later ones only count it. Of one that is set
    aside nobody is warned."""
    aside, why = None, _cannot_be_stored(scenario, row)
    for rule in scenario.rules:
        if not breaks(rule, row):
            continue
        judged.broken[rule["id"]] += 1
        kept = Kept(rule["id"], rule["on_fail"], shown(row), file)
        if aside is None and rule["on_fail"] == "skip":
            aside = kept
        elif aside is None and rule["on_fail"] == "abort":
            judged.noted.append(kept)
    if aside is not None:
        judged.aside.append(aside)
    elif why is not None:
        judged.aside.append(Kept(why, "skip", shown(row), file))
        judged.unfit += 1
    else:
        judged.rows.append((file, row))
        warning = [rule for rule in scenario.rules if rule["on_fail"] == "warn" and breaks(rule, row)]
        judged.noted += [Kept(rule["id"], "warn", shown(row), file) for rule in warning]


def _cannot_be_stored(scenario: Scenario, row: Values) -> str | None:
    for name, value in row.items():
        needed = (scenario.keyed and name == "k") or (scenario.mode == "scd2" and name == scenario.cursor)
        if needed and value is None:
            return "not_null"
        if isinstance(value, str) and "\0" in value:
            return "nul_byte"
    return None


def shown(row: Values) -> str:
    """As the quarantine table keeps it: dates and decimals are texts in JSON, which has no U+0000 in PostgreSQL."""
    plain = {
        name: str(value) if isinstance(value, date | Decimal)
        else value.replace("\0", "\\u0000") if isinstance(value, str)
        else value
        for name, value in row.items()
    }  # fmt: skip
    return f"row {sorted(plain.items())}"


def _fails(scenario: Scenario, judged: Judged, *, only_chunk: bool) -> bool:
    return (
        any(_stops(rule, judged) for rule in scenario.rules)
        or any(_objects(kind, said, judged) for kind, said in scenario.validators.items())
        or bool(scenario.bad_rows == "abort" and judged.unfit)
        or _is_left_without_rows(scenario, judged, only_chunk=only_chunk)
    )


def _stops(rule: Rule, judged: Judged) -> bool:
    broken = judged.broken[rule["id"]]
    if rule["on_fail"] == "abort":
        return broken > 0
    return broken > rule.get("max_failed_rows", broken) or broken > rule.get("max_failed_ratio", 1) * judged.read


def _objects(kind: str, said: Mapping[str, Any], judged: Judged) -> bool:
    if said["on_fail"] != "abort":
        return False
    match kind:
        case "row_count":
            return len(judged.rows) > said["max"]
        case "null_ratio":
            nulls = sum(row[said["column"]] is None for _, row in judged.rows)
            return nulls > said["max"] * len(judged.rows)
        case "row_count_matches_source":
            return False
    raise ValueError(kind)


def _is_left_without_rows(scenario: Scenario, judged: Judged, *, only_chunk: bool) -> bool:
    counted = len(judged.aside) - (0 if only_chunk else judged.unplaced)
    if judged.rows or not counted:
        return False
    return not scenario.allow_all or (scenario.whole and scenario.fail_on_empty_source)


def target_of(scenario: Scenario, published: Mapping[Chunk, Judged], seen: Collection[int]) -> list[Values]:
    """What the target holds when these chunks are in, one after the other. Which of several files is read last nobody
    promises: there the row counts that is `seen`."""
    if not scenario.keyed:
        return [row for judged in published.values() for _, row in judged.rows]
    stored: dict[Any, Values] = {}
    for _, judged in sorted(published.items()):
        for key, row in _one_row_a_key(scenario, judged, seen).items():
            if key not in stored or not _is_older(row, stored[key], scenario.cursor):
                stored[key] = row
    return list(stored.values())


def _one_row_a_key(scenario: Scenario, judged: Judged, seen: Collection[int]) -> dict[Any, Values]:
    last: dict[Any, dict[str, Values]] = {}
    for file, row in judged.rows:
        key = (row["k"], row[scenario.cursor]) if scenario.mode == "scd2" and scenario.cursor else row["k"]
        of_files = last.setdefault(key, {})
        if any(_is_older(row, other, scenario.cursor) for other in of_files.values()):
            continue
        if any(_is_older(other, row, scenario.cursor) for other in of_files.values()):
            of_files.clear()
        of_files[file] = row
    return {key: _counting(list(rows.values()), seen) for key, rows in last.items()}


def _counting(rows: Sequence[Values], seen: Collection[int]) -> Values:
    return next((row for row in rows if row["row"] in seen), rows[-1])


def _is_older(row: Values, stored: Values, cursor: str | None) -> bool:
    """A row without a cursor is older than any other."""
    if cursor is None or stored[cursor] is None:
        return False
    return row[cursor] is None or row[cursor] < stored[cursor]


def quarantined(*judged: Judged) -> Iterator[Kept]:
    for one in judged:
        yield from (*one.aside, *one.noted)
