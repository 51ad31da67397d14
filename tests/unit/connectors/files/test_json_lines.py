from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakiri_dagster.connectors.files import json_lines
from hakiri_dagster.connectors.files.charsets import charset
from hakiri_dagster.connectors.files.json_lines import LineRange, number_records, read_lines, records_of, split_files

UTF8 = charset("utf-8")
LINES = st.lists(st.sampled_from(["", " ", "\t", "{}", '{"a":"é"}', '{"a":1}\r', "x" * 30, "\u2028"]), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, ends=st.booleans(), size=st.integers(1, 40), block=st.integers(1, 20))
def test_each_record_is_in_one_part_and_its_line_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], ends: bool, size: int, block: int
) -> None:
    assert UTF8 is not None
    monkeypatch.setattr(json_lines, "PART_BYTES", size)
    monkeypatch.setattr(json_lines, "_BLOCK", block)
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(lines).encode() + b"\n" * ends)
    parts = split_files([(str(path), path.stat().st_size)])
    assert all(one.end is None or one.end - one.start <= size for part in parts for one in part)
    found = [
        record for part in parts for one in part for some in read_lines(one, UTF8, "") for record in records_of(some)
    ]
    assert found == [line.encode() for line in lines if line.strip(" \t\r")]
    numbers = [number for number, line in enumerate(lines, 1) if line.strip(" \t\r")]
    assert list(number_records(str(path), UTF8, "")) == numbers


def test_a_mark_of_the_byte_order_is_no_part_of_a_line(tmp_path: Path) -> None:
    """Also where two files that have one were put together."""
    assert UTF8 is not None
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress('\ufeff{}\n\ufeff{"a":"\ufeff"}'.encode()))
    lines = [line for some in read_lines(LineRange(str(path)), UTF8, "") for line in some]
    assert lines == [b"{}", '{"a":"\ufeff"}'.encode()]


def test_small_files_share_a_part_and_compressed_ones_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "PART_BYTES", 10)
    monkeypatch.setattr(json_lines, "OPENING_BYTES", 1)
    parts = split_files([("a.jsonl", 4), ("b.jsonl", 4), ("c.jsonl", 4), ("d.jsonl.gz", 99), ("e.jsonl", 25)])
    assert [[(one.path, one.start, one.end) for one in part] for part in parts] == [
        [("a.jsonl", 0, None), ("b.jsonl", 0, None)],
        [("c.jsonl", 0, None)],
        [("d.jsonl.gz", 0, None)],
        [("e.jsonl", 0, 10)],
        [("e.jsonl", 10, 20)],
        [("e.jsonl", 20, 25)],
    ]
