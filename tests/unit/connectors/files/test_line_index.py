from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.files import line_index
from hakiri_dagster.connectors.files.line_index import LineIndex, Spool
from hakiri_dagster.connectors.files.record_lines import Unclear


def test_records_find_their_lines(tmp_path):
    index = LineIndex(iter([2, 3, 4, 7, 8, 20]), Spool(tmp_path))
    assert [index.line(record) for record in range(-1, 7)] == [None, 2, 3, 4, 7, 8, 20, None]
    assert (index.records, index.whole) == (6, True)


def test_what_is_known_before_the_rest_is_unclear_is_kept(tmp_path):
    def lines() -> Iterator[int]:
        yield 2
        yield 5
        raise Unclear

    index = LineIndex(lines(), Spool(tmp_path))
    assert [index.line(record) for record in range(3)] == [2, 5, None]
    assert not index.whole


def test_an_empty_file_has_no_records(tmp_path):
    assert LineIndex(iter([]), Spool(tmp_path)).line(0) is None


@given(st.lists(st.lists(st.integers(1, 3), max_size=40), max_size=4), st.randoms())
def test_many_files_share_one_spool_and_are_asked_in_any_order(tmp_path_factory, files, random):
    spool = Spool(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "_BLOCK", 3)
        lines = [[sum(steps[: i + 1]) for i in range(len(steps))] for steps in files]
        indexes = [LineIndex(iter(each), spool) for each in lines]
        asked = [(file, record) for file, each in enumerate(lines) for record in range(len(each))]
        random.shuffle(asked)
        assert all(indexes[file].line(record) == lines[file][record] for file, record in asked)


def test_nothing_is_left_on_disk(tmp_path):
    LineIndex(iter(range(1, 100, 2)), Spool(tmp_path))
    assert list(tmp_path.iterdir()) == []
