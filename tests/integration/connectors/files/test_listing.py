from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hakiri_dagster.connectors.contract import FILE_COLUMN, Known
from hakiri_dagster.connectors.files import contents
from hakiri_dagster.errors import SourceError, SourceUnavailable
from hakiri_dagster.planning.chunks import SourceFile

HOSTILE = [
    *("a b.csv", "p%20q.csv", "h#x.csv", "q?z.csv", "g[1].csv", "s*t.csv", "{x,y}.csv", "b\\s.csv", "e=f.csv"),
    *("co,mma.csv", "pl+us.csv", "quo'te\".csv", "100%.csv", "&;@$!().csv", "~^`|<>.csv"),
    *("tab\tx.csv", "new\nline.csv", "del\x7f.csv", "nel\u0085.csv", "nb\u00a0sp.csv", "ls\u2028.csv"),
    *("ü漢😀.csv", "e\u0301.csv", "\u00c5\u2003.csv"),
]


def test_markers_match_what_spark_computes_for_every_file_name(source):
    for number, name in enumerate(HOSTILE):
        source.write(f"sub dir#1/dt=2024-01-0{number % 9 + 1}/{name}", f"id\n{number}\n")
    found = source.discover()
    reading = source.read(found)
    paths = {origin.marker: Path(origin.path).name for origin in reading.files}
    assert {paths[row[FILE_COLUMN]]: row.id for row in reading.frame.collect()} == {n: i for i, n in enumerate(HOSTILE)}


def test_a_colon_in_a_name_is_refused(source):
    source.write("c:d.csv", "id\n1\n")
    with pytest.raises(SourceError, match="colon"):
        source.discover()


def test_folders_are_searched_and_hidden_files_left_out(source):
    for name in ("a.csv", "deep/er/b.csv", "_SUCCESS", ".hidden.csv", "_tmp/c.csv", ".git/d.csv", "notes.txt"):
        source.write(name, "id\n1\n")
    found = source.discover()
    assert [Path(state.path).name for state in found.files] == ["a.csv", "b.csv"]
    assert any("notes.txt" in warning for warning in found.warnings)


def test_folders_named_like_values_become_no_columns_and_that_is_told(source):
    source.write("dt=2024-01-01/a.csv", "id\n1\n")
    found = source.discover()
    assert list(source.types(found)) == ["id"]
    assert source.rows(found)[0].id == 1
    assert any("dt=2024-01-01" in warning for warning in found.warnings)


def test_a_table_is_a_file_of_its_name_or_a_folder_or_the_path_itself(source, tmp_path):
    (tmp_path / "orders.csv.gz").write_bytes(b"")
    (tmp_path / "orders.csv.gz").unlink()
    (tmp_path / "orders.csv").write_text("id\n1\n")
    assert [Path(s.path).name for s in source.discover().files] == ["orders.csv"]
    source.config["path"] = str(tmp_path / "orders.csv")
    assert [Path(s.path).name for s in source.discover().files] == ["orders.csv"]
    source.config["path"] = str(tmp_path / "ord*.csv")
    assert [Path(s.path).name for s in source.discover().files] == ["orders.csv"]


@pytest.mark.parametrize("path", ["x/*.csv", "x/a.csv", "x", "**/a.csv"])
def test_a_tables_own_path_is_relative_to_the_sources(source, tmp_path, path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.csv").write_text("id\n1\n")
    found = source.table(path).discover(cursor=None, known=Known(), spark=source._start)
    assert [state.path for state in found.files] == [str(tmp_path / "x" / "a.csv")]


def test_a_file_and_a_folder_of_one_name_are_ambiguous(source, tmp_path):
    (tmp_path / "orders.csv").write_text("id\n1\n")
    source.write("a.csv", "id\n1\n")
    with pytest.raises(SourceError, match=r"both the folder .* and the file"):
        source.discover()


def test_two_formats_in_one_folder_are_refused(source):
    source.write("a.csv", "id\n1\n")
    source.write("b.jsonl", '{"id":1}\n')
    with pytest.raises(SourceError, match="several formats"):
        source.discover()


def test_what_is_not_there_is_told_with_what_was_expected(source, tmp_path):
    with pytest.raises(SourceError, match=r"orders does not exist(.|\n)*orders\.csv"):
        source.discover()
    (tmp_path / "orders").mkdir()
    with pytest.raises(SourceError, match="orders holds no files"):
        source.discover()


def test_a_file_that_may_not_be_read_is_named(source, tmp_path, monkeypatch):
    path = source.write("a.csv", "id\n1\n")
    if os.geteuid() != 0:
        path.chmod(0)
    else:  # root may read anything but a file on a file system that says no
        path.unlink()
        path.symlink_to("/proc/self/mem")
    with pytest.raises(SourceError, match=r"a\.csv cannot be read"):
        source.discover()


def test_touching_a_file_changes_nothing_and_rewriting_it_does(source, remember):
    path = source.write("a.csv", "id\n1\n")
    first = source.discover()
    os.utime(path, ns=(1, 1))
    touched = source.discover(known=remember(first))
    assert (touched.fingerprint, touched.source_files) == (first.fingerprint, first.source_files)
    assert touched.files[0].fingerprint != first.files[0].fingerprint
    source.write("a.csv", "id\n2\n")
    assert source.discover(known=remember(touched)).fingerprint != first.fingerprint


def test_contents_are_hashed_only_when_size_or_time_changed(source, remember, monkeypatch):
    source.write("a.csv", "id\n1\n")
    first = source.discover()
    source.write("b.csv", "id\n2\n")
    hashed = []
    digest = contents._digest
    monkeypatch.setattr(
        contents, "_digest", lambda stream, path, *rest: hashed.append(path) or digest(stream, path, *rest)
    )
    source.discover(known=remember(first))
    assert [Path(path).name for path in hashed] == ["b.csv"]


def test_the_hash_is_that_of_the_file_as_it_lies_on_the_disk(source):
    path = source.write("a.csv", "id\n1\n")
    told = subprocess.run(["b2sum", "-l", "128", str(path)], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]
    assert source.discover().files[0].content_hash == told


def test_a_file_that_grows_while_it_is_read_is_not_loaded_in_half(source, monkeypatch):
    path = source.write("a.csv", "id\n1\n")
    digest = contents._digest

    def growing(stream, name, *rest):
        found = digest(stream, name, *rest)
        with path.open("a") as writer:
            writer.write("2\n")
        return found

    monkeypatch.setattr(contents, "_digest", growing)
    with pytest.raises(SourceUnavailable, match=r"a\.csv is being written"):
        source.discover()


def test_a_file_that_vanishes_while_it_is_looked_at_is_told(source, monkeypatch):
    path = source.write("a.csv", "id\n1\n")
    source.write("b.csv", "id\n2\n")
    look = contents._content_hash

    def vanishing(file, text, label):
        path.unlink(missing_ok=True)
        return look(file, text, label)

    monkeypatch.setattr(contents, "_content_hash", vanishing)
    found = source.discover()
    assert [Path(state.path).name for state in found.files] == ["b.csv"]
    assert any("a.csv vanished" in warning for warning in found.warnings)


def test_a_file_that_changed_since_discovery_is_not_read(source):
    path = source.write("a.csv", "id\n1\n")
    found = source.discover()
    source.write("a.csv", "id\n22\n")
    with pytest.raises(SourceError, match=r"a\.csv has changed since it was looked at"):
        source.read(found)
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.csv has vanished"):
        source.read(found)


def test_only_the_files_of_the_slices_are_read(source):
    for number in range(3):
        source.write(f"{number}.csv", f"id\n{number}\n")
    found = source.discover()
    wanted = found.source_files[1]
    reading = source.read(found, None, wanted)
    assert [row.id for row in reading.frame.collect()] == [1]
    assert FILE_COLUMN not in reading.frame.columns
    with pytest.raises(SourceError, match="other contents than planned"):
        source.read(found, None, SourceFile(wanted.path, "0" * 32))
    with pytest.raises(SourceError, match="no longer there"):
        source.read(found, None, SourceFile("/gone.csv", "0" * 32))
