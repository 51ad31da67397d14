"""The workers' half, driven without Spark: Arrow batches in, files and a report out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    MALFORMED_COLUMN,
    RECORD_COLUMN,
    SLICE_COLUMN,
    SPLIT_COLUMN,
    FileOrigin,
)
from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, SOURCE_FILE_HASH_COLUMN, Refusal
from hakiri_dagster.manifest.rule_spec import OneOfRule, RangeRule
from hakiri_dagster.pipeline.slice_files import SliceFiles
from hakiri_dagster.pipeline.slices import Splitter
from hakiri_dagster.pipeline.staging import MOST_ROWS_OF_A_GATE, StagingPlan, _Task
from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor, SourceFile, WholeTable
from hakiri_dagster.quality.measures import Nulls


class JsonLines:
    """Encodes a row as a line, and keeps the last batch back until `finish`, as binary encoders do."""

    def __init__(self) -> None:
        self._kept = b""

    def write(self, batch: pa.RecordBatch) -> bytes:
        given, self._kept = (
            self._kept,
            "".join(f"{json.dumps(row, default=str)}\n" for row in batch.to_pylist()).encode(),
        )
        return given

    def finish(self) -> bytes:
        return self._kept


@dataclass(frozen=True)
class RefusesNegative:
    columns: tuple[str, ...]

    def prepare(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[Refusal]]:
        negative = pc.less(batch.column("n"), 0)
        return batch, [Refusal(negative, "positive", "n is negative")] if pc.any(negative).as_py() else []

    def encoder(self) -> JsonLines:
        return JsonLines()


def staging(directory: Path, bounds: Sequence[Bounds], **given: object) -> StagingPlan:
    files = given.pop("files", ())
    assert isinstance(files, tuple)
    settings: dict[str, object] = {
        "directory": str(directory),
        "encoder": RefusesNegative(columns=("n", LOAD_ID_COLUMN)),
        "source_columns": ("n",),
        "splitter": Splitter.of(bounds, {file.path: file.marker for file in files}),
        "load_ids": tuple(range(100, 100 + len(bounds))),
        "files": files,
        "cursor": None,
        "ingested_at": None,
    }
    return StagingPlan(**(settings | given))  # type: ignore[arg-type]  # a test's short hand


def run(plan: StagingPlan, *batches: pa.RecordBatch) -> dict[int, dict[str, object]]:
    (report,) = list(plan(iter(batches)))
    return {row["slice"]: row for row in report.to_pylist()}


def rows(directory: Path, report: dict[str, object]) -> list[dict[str, object]]:
    names = report["blocks"]
    assert isinstance(names, list)
    return [json.loads(line) for name in names for line in (directory / name).read_text().splitlines()]


def bad(directory: Path, report: dict[str, object]) -> list[dict[str, object]]:
    with (directory / str(report["bad_file"])).open(encoding="utf-8") as lines:
        return [asdict(row) for row in SliceFiles.kept_in(lines, lambda place: place.after)]


def test_rows_and_their_load_id_are_written_and_counted(tmp_path: Path) -> None:
    reports = run(staging(tmp_path, [WholeTable()]), pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]}))
    assert rows(tmp_path, reports[0]) == [{"n": n, LOAD_ID_COLUMN: 100} for n in (1, 2, 3)]
    assert reports[0]["rows"] == 3
    assert reports[0]["bytes"] == sum(f.stat().st_size for f in tmp_path.iterdir())


def test_each_slice_gets_its_own_files_load_id_and_highest_cursor(tmp_path: Path) -> None:
    bounds = [CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))]
    reports = run(staging(tmp_path, bounds, cursor="n"), pa.record_batch({"n": [12, 3, 11, 5, 99]}))
    assert rows(tmp_path, reports[0]) == [{"n": n, LOAD_ID_COLUMN: 100} for n in (3, 5)]
    assert rows(tmp_path, reports[1]) == [{"n": n, LOAD_ID_COLUMN: 101} for n in (12, 11)]
    assert [reports[0]["cursor_max"], reports[1]["cursor_max"]] == [5, 12]


def test_a_row_that_cannot_be_stored_is_set_aside_with_its_reason(tmp_path: Path) -> None:
    reports = run(staging(tmp_path, [WholeTable()]), pa.record_batch({"n": [1, -2, 3]}))
    assert [row["n"] for row in rows(tmp_path, reports[0])] == [1, 3]
    assert bad(tmp_path, reports[0]) == [
        {
            "rule": "positive",
            "message": "n is negative",
            "row": '{"n": -2}',
            "source_file": None,
            "source_line": None,
            "on_fail": "skip",
            "file_hash": None,
            "kept_id": None,
        }
    ]
    assert (reports[0]["rows"], reports[0]["bad_rows"], reports[0]["bad_sample"]) == (2, 1, "n is negative")


def test_a_row_that_is_set_aside_is_not_told_as_one_that_was_loaded(tmp_path: Path) -> None:
    """By a later rule, or because it cannot be stored; each rule counts it all the same."""
    small = RangeRule(type="range", id="small", field="n", max=5, on_fail="warn")
    odd = OneOfRule(type="one_of", id="odd", field="n", values=(-1, 1, 3, 7, 9), on_fail="skip")
    near = RangeRule(type="range", id="near", field="n", min=0, max=8, on_fail="warn")
    plan = staging(tmp_path, [WholeTable()], rules=(small, odd, near))
    reports = run(plan, pa.record_batch({"n": [1, 7, 8, -1, 9]}))
    assert [row["n"] for row in rows(tmp_path, reports[0])] == [1, 7, 9]
    assert sorted((row["row"], row["rule"], row["on_fail"]) for row in bad(tmp_path, reports[0])) == [
        ('{"n": -1}', "positive", "skip"),
        ('{"n": 7}', "small", "warn"),
        ('{"n": 8}', "odd", "skip"),
        ('{"n": 9}', "near", "warn"),
        ('{"n": 9}', "small", "warn"),
    ]
    assert reports[0]["broken"] == [3, 1, 2]


def test_of_rows_that_stop_a_load_each_task_shows_some(tmp_path: Path) -> None:
    """Of each rule, however many batches and slices there are; all are counted."""
    rules = tuple(RangeRule(type="range", id=name, field="n", max=-1, on_fail="abort") for name in ("one", "two"))
    bounds = [CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))]
    batches = [pa.record_batch({"n": [3, 13] * 40}) for _ in range(2)]
    reports = run(staging(tmp_path, bounds, cursor="n", rules=rules), *batches)
    shown = Counter(row["rule"] for report in reports.values() for row in bad(tmp_path, report))
    assert shown == {"one": MOST_ROWS_OF_A_GATE, "two": MOST_ROWS_OF_A_GATE}
    assert [report["broken"] for report in reports.values()] == [[80, 80], [80, 80]]
    assert sum(len(rows(tmp_path, report)) for report in reports.values()) == 160


def one_good_and_one_malformed(line: str) -> pa.RecordBatch:
    told = {"line": line, "reason": "`n` is no int"}
    return pa.record_batch({"n": pa.array([1, None], pa.int64()), MALFORMED_COLUMN: [None, told]})


def test_a_malformed_line_is_set_aside_with_its_text_and_file(tmp_path: Path) -> None:
    batch = one_good_and_one_malformed("x;\x00")
    origin = FileOrigin(marker=1, path="/data/a.csv", content_hash=b"h" * 16)
    reports = run(staging(tmp_path, [WholeTable()], files=(origin,)), batch)
    (entry,) = bad(tmp_path, reports[0])
    assert json.loads(str(entry["row"])) == {"line": "x;\\u0000"}
    assert (entry["message"], entry["source_file"]) == ("`n` is no int", "/data/a.csv")
    assert reports[0]["rows"] == 1


def test_a_malformed_line_goes_with_the_rows_that_have_no_cursor(tmp_path: Path) -> None:
    batch = one_good_and_one_malformed("x")
    bounds = [CursorRange(Interval(0, 10)), NullCursor()]
    reports = run(staging(tmp_path, bounds, cursor="n"), batch)
    assert [reports[0]["bad_rows"], reports[1]["bad_rows"]] == [0, 1]


def test_a_row_that_bears_its_slice_goes_there_read_or_not(tmp_path: Path) -> None:
    bounds = [CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))]
    batch = one_good_and_one_malformed("x").append_column(SLICE_COLUMN, pa.array([1, 1], pa.int32()))
    (report,) = run(staging(tmp_path, bounds, cursor="n"), batch).values()
    assert (report["slice"], report["rows"], report["bad_rows"], report["unplaced"]) == (1, 1, 1, 0)


def test_a_row_that_is_set_aside_tells_how_far_it_comes_after_the_first_of_its_split(tmp_path: Path) -> None:
    origins = (FileOrigin(5, "/a", b"a" * 16), FileOrigin(-6, "/b", b"b" * 16))
    told = {"line": "l", "reason": "r", "readable": False}
    batch = pa.record_batch(
        {
            "n": [0, 0, -1, -2, -3, 0, None],
            FILE_COLUMN: [5, 5, 5, 5, -6, -6, -6],
            SPLIT_COLUMN: [0, 0, 0, 90, 0, 0, 0],
            RECORD_COLUMN: [70, 71, 72, 73, 74, 75, 76],
            MALFORMED_COLUMN: [None] * 6 + [told],
        }
    )
    (report,) = run(
        staging(tmp_path, [WholeTable()], files=origins), batch.slice(0, 2), batch.slice(2, 3), batch.slice(5)
    ).values()
    assert [(row["source_file"], row["source_line"]) for row in bad(tmp_path, report)] == [
        ("/a", 2),
        ("/a", 0),
        ("/b", 0),
        ("/b", 2),
    ]


def test_rows_of_many_files_carry_the_hash_of_their_own(tmp_path: Path) -> None:
    origins = (FileOrigin(5, "/a", b"a" * 16), FileOrigin(-6, "/b", b"b" * 16))
    plan = staging(
        tmp_path,
        [SourceFile("/a", "61" * 16), SourceFile("/b", "62" * 16)],
        files=origins,
        encoder=RefusesNegative(columns=("n", SOURCE_FILE_HASH_COLUMN)),
    )
    reports = run(plan, pa.record_batch({"n": [1, 2], FILE_COLUMN: [-6, 5]}))
    assert rows(tmp_path, reports[0]) == [{"n": 2, SOURCE_FILE_HASH_COLUMN: str(b"a" * 16)}]
    assert rows(tmp_path, reports[1]) == [{"n": 1, SOURCE_FILE_HASH_COLUMN: str(b"b" * 16)}]


def test_what_json_in_postgresql_cannot_hold_is_set_aside_readably(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": [-1], "t": ["a\x00b"], "f": [float("nan")], "b": [b"\x01"], "l": [[float("inf")]]})
    plan = staging(tmp_path, [WholeTable()], source_columns=("n", "t", "f", "b", "l"))
    (entry,) = bad(tmp_path, run(plan, batch)[0])
    assert json.loads(str(entry["row"])) == {"n": -1, "t": "a\\u0000b", "f": "nan", "b": "01", "l": ["inf"]}


def test_two_tasks_never_write_to_the_same_file(tmp_path: Path) -> None:
    plan = staging(tmp_path, [WholeTable()])
    first, second = run(plan, pa.record_batch({"n": [1]})), run(plan, pa.record_batch({"n": [1]}))
    assert first[0]["blocks"] != second[0]["blocks"]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_empty_task_reports_nothing(tmp_path: Path) -> None:
    assert run(staging(tmp_path, [WholeTable()])) == {}


def test_a_row_that_holds_a_value_where_the_target_has_no_column_is_set_aside(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": [1, 2, -3], "w": [None, "x", "y"]})
    plan = staging(tmp_path, [WholeTable()], source_columns=("n", "w"), strangers=("w",))
    reports = run(plan, batch)
    assert [row["n"] for row in rows(tmp_path, reports[0])] == [1]
    first, second = bad(tmp_path, reports[0])
    assert (first["rule"], json.loads(str(first["row"]))) == ("unknown_column", {"n": 2, "w": "x"})
    assert second["rule"] == "unknown_column", "once, with the first reason"


def test_misfits_that_are_kept_are_counted_with_the_slice_of_their_row(tmp_path: Path) -> None:
    def marked(readable: bool) -> dict[str, object]:
        return {"line": "l", "reason": "`v` is no int", "readable": readable}

    batch = pa.record_batch({"n": [1, 12, 13, -4], MALFORMED_COLUMN: [None, marked(True), marked(False), marked(True)]})
    bounds = [CursorRange(Interval(None, 10)), CursorRange(Interval(10, 20))]
    reports = run(staging(tmp_path, bounds, cursor="n", keeps_misfits=True), batch)
    assert [row["n"] for row in rows(tmp_path, reports[1])] == [12]
    assert (reports[1]["discarded"], reports[1]["discard_sample"]) == (1, "`v` is no int")
    assert reports[0]["discarded"] == 0, "of a row that is set aside nothing is discarded"
    assert sum(int(str(report["bad_rows"])) for report in reports.values()) == 2


def test_rows_that_wait_to_be_measured_do_not_keep_their_batches(tmp_path: Path) -> None:
    """A slice that gets one row of each batch would have the whole table in memory before it has enough of them."""
    cursor = pa.array([*range(1, 5000), 9999], pa.int64())
    bounds = [CursorRange(Interval(0, 9000)), CursorRange(Interval(9000, 10_000))]
    files = SliceFiles(1, tmp_path, "s", JsonLines())
    task = _Task(staging(tmp_path, bounds, cursor="n", measures=(Nulls("n"),)))
    task._slices[1] = files
    for _ in range(20):
        task._take(pa.record_batch({"n": cursor}))
    kept = {buffer.address: buffer.size for part in files._unmeasured for buffer in part.column(0).buffers() if buffer}
    assert sum(kept.values()) < 20 * 1000
