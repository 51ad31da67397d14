from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.files import lines
from hakiri_dagster.connectors.files.options import FilesOptions


def tidy(folder, text, block=8):
    path = folder / "a.csv"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_BLOCK", block)
        return lines.quotes_are_tidy(str(path), ",", '"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", True),
        ('a,b\n"1","2, ""x"""\n', True),
        ('\ufeff"a",b\n', True),
        ('a,b\n1,"x\ny"\n', False),
        ('a,b\n1,"x\r\ny"\n', False),
        ('a,b\n1,5" pipe\n2,6" pipe\n', False),
        ('a,b\n1,"x\n', False),
        ('a,b\n1,"x" y\n', False),
    ],
)
def test_a_file_is_cut_at_any_line_only_if_its_quotes_are_tidy(tmp_path, text, expected):
    assert tidy(tmp_path, text) is expected


@given(text=st.text(alphabet='ab,"\n', max_size=60), block=st.integers(1, 9))
def test_whatever_passes_for_tidy_has_a_record_on_each_line(tmp_path_factory, text, block):
    if tidy(tmp_path_factory.getbasetemp(), text, block):
        whole = list(csv.reader(io.StringIO(text)))
        assert [record for line in text.splitlines(keepends=True) for record in csv.reader([line])] == whole


def test_only_big_plain_files_are_looked_through(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    options = FilesOptions.model_validate({"path": str(tmp_path)})
    assert not lines.records_are_lines(str(path), ",", options)
    monkeypatch.setattr(lines, "WORTH_SPLITTING", 1)
    assert lines.records_are_lines(str(path), ",", options)
    assert not lines.records_are_lines(str(path), ",", options.model_copy(update={"escape": "\\"}))
    assert not lines.records_are_lines(str(path), ",", options.model_copy(update={"encoding": "utf-16"}))
    assert lines.records_are_lines(
        str(path.rename(tmp_path / "b.csv")), ",", options.model_copy(update={"multiline": False})
    )
