from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.planning.chunk_plan import plan_file_chunks
from hakiri_dagster.planning.chunks import SourceFile
from hakiri_dagster.planning.due_files import due_files
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState, Due, published
from tests.unit.planning.ledger_rows import PublishedSlice


class Folder:
    """Files by path, and a target that holds the content hashes of the files it was loaded from, by chunk key."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.states: dict[str, ChunkState] = {}
        self.target: dict[str, str] = {}
        self.ledger: dict[str, PublishedSlice] = {}
        self._load_ids = count(1)

    def write(self, path: str, content: str) -> None:
        self.files[path] = content.ljust(32, "0")

    def due(self) -> Due:
        files = [SourceFile(path, content) for path, content in self.files.items()]
        chunks, _ = plan_file_chunks(files)
        return due_files(chunks, after_ledger(self.states.values(), tuple(self.ledger.values())), files)

    def apply(self, crashes: tuple[str, ...] = ()) -> None:
        due = self.due()
        self.states.update({state.key: state for state in due.states})
        fate = iter(crashes)
        for owed in (*due.busy, *due.slices):
            attempt = owed.attempts + 1
            state = replace(self.states[owed.key], status="running", attempts=attempt, supersedes=owed.supersedes)
            self.states[owed.key] = state
            crash = next(fate, "no")
            if crash == "before publish":
                return
            file = owed.slice.bounds
            assert isinstance(file, SourceFile)
            for key in owed.supersedes:
                self.target.pop(key, None)
                self.ledger.pop(key, None)
            self.target[owed.key] = file.content_hash
            load_id = next(self._load_ids)
            self.ledger[owed.key] = PublishedSlice(owed.key, file, 1, None, load_id, attempt)
            if crash == "after publish":
                return
            self.states[owed.key] = published(
                state, bounds=file, cursor_committed=None, seen=None, rows=1, load_id=load_id
            )
            for key in owed.supersedes:
                self.states[key] = replace(self.states[key], status="superseded")

    def converge(self) -> None:
        while self.due().slices:
            self.apply()
        self.apply()


def _loaded(files: dict[str, str]) -> Folder:
    folder = Folder()
    for path, content in files.items():
        folder.write(path, content)
    folder.converge()
    return folder


def test_a_rewritten_file_supersedes_its_earlier_content() -> None:
    folder = _loaded({"in/a.csv": "1", "in/b.csv": "2"})
    folder.write("in/a.csv", "3")
    (owed,) = folder.due().slices
    assert (owed.key, owed.supersedes) == ("a.csv-300000000000", ("a.csv-100000000000",))


def test_a_file_that_gets_its_old_content_back_is_loaded_again() -> None:
    folder = _loaded({"a": "1"})
    for content in ("2", "1"):
        folder.write("a", content)
        folder.converge()
    assert set(folder.target) == {"a-100000000000"}
    assert folder.states["a-200000000000"].status == "superseded"


def test_a_renamed_file_is_not_loaded_again() -> None:
    folder = _loaded({"a": "1"})
    del folder.files["a"]
    folder.write("b", "1")
    due = folder.due()
    assert not due.slices
    assert due.carried_over == ("b-100000000000",)
    assert due.states[0].carried_from == (1,)


def test_a_content_that_another_file_still_has_is_not_superseded() -> None:
    folder = _loaded({"a": "1", "b": "1"})
    folder.write("a", "2")
    folder.converge()
    assert sorted(folder.target.values()) == ["1".ljust(32, "0"), "2".ljust(32, "0")]


def test_a_file_that_returns_to_a_content_which_never_left_the_target_still_replaces_its_rows() -> None:
    folder = _loaded({"a": "1", "b": "1"})
    for content in ("2", "1"):
        folder.write("a", content)
        folder.converge()
    assert list(folder.target.values()) == ["1".ljust(32, "0")]


def test_a_missing_file_keeps_its_rows_and_its_state() -> None:
    folder = _loaded({"a": "1", "b": "2"})
    del folder.files["a"]
    assert folder.due() == Due(done=folder.due().done)
    assert folder.states["a-100000000000"].status == "done"


def test_a_version_that_was_published_just_before_a_crash_is_known_from_the_ledger() -> None:
    folder = _loaded({"a": "1"})
    folder.write("a", "2")
    folder.apply(("after publish",))
    folder.write("a", "3")
    assert folder.due().slices[0].supersedes == ("a-200000000000",)


def test_a_version_that_is_still_being_loaded_is_superseded_and_to_be_fenced() -> None:
    folder = _loaded({"a": "1"})
    folder.write("a", "2")
    folder.apply(("before publish",))
    folder.write("a", "3")
    due = folder.due()
    assert due.slices[0].supersedes == ("a-100000000000", "a-200000000000")
    assert due.overtaken == ("a-200000000000",)


@given(st.data())
def test_whatever_happens_each_content_is_in_the_target_once(data: st.DataObject) -> None:
    folder = Folder()
    crashes = st.lists(st.sampled_from(["no", "before publish", "after publish"]), max_size=3)
    for step in data.draw(st.lists(st.sampled_from(["write", "write", "apply"]), max_size=15)):
        if step == "write":
            folder.write(data.draw(st.sampled_from("abc")), data.draw(st.sampled_from("1234")))
        else:
            folder.apply(tuple(data.draw(crashes)))
    folder.converge()
    assert Counter(folder.target.values()) == Counter(set(folder.files.values()))
    assert folder.due().states == ()
