from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.destinations.postgres.replacement import Earlier, replacement
from hakiri_dagster.planning.chunk_plan import plan_file_chunks
from hakiri_dagster.planning.chunks import SourceFile
from hakiri_dagster.planning.due_files import due_files
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState, Due, published
from tests.unit.planning.ledger_rows import PublishedSlice


class Folder:
    """Files by path, and a target that holds the content hashes of the files it was loaded from, by load."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.states: dict[str, ChunkState] = {}
        self.target: dict[int, str] = {}
        self.ledger: dict[int, PublishedSlice] = {}
        self.holder: dict[str, str] = {}  # the path that a plan last found a content at
        self._loads = 0
        self.dumped = self._dump()

    def write(self, path: str, content: str) -> None:
        self.files[path] = content.ljust(32, "0")

    def move(self, path: str, to: str) -> None:
        self.files[to] = self.files.pop(path)

    def due(self) -> Due:
        files = [SourceFile(path, content) for path, content in self.files.items()]
        chunks, _ = plan_file_chunks(files)
        states = after_ledger(tuple(self.states.values()), tuple(self.ledger.values()))
        return due_files(chunks, states, files)

    def apply(self, crashes: tuple[str, ...] = ()) -> None:
        due = self.due()
        self.holder |= {content: path for path, content in sorted(self.files.items(), reverse=True)}
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
            self._loads = load_id = self._loads + 1
            self._publish(PublishedSlice(owed.key, file, 1, None, load_id, attempt), file, owed.supersedes)
            if crash == "after publish":
                return
            self.states[owed.key] = published(
                state, bounds=file, cursor_committed=None, seen=None, rows=1, load_id=load_id
            )
            for key in owed.supersedes:
                self.states[key] = replace(self.states[key], status="superseded")

    def _publish(self, entry: PublishedSlice, file: SourceFile, supersedes: tuple[str, ...]) -> None:
        earlier = [Earlier(row.load_id, row.chunk_key, row.bounds, None) for row in self.ledger.values()]
        replaced = replacement(file, earlier, supersedes)
        for load_id in replaced.load_ids:
            del self.target[load_id]
        for load_id in replaced.superseded:
            del self.ledger[load_id]
        self.target[entry.load_id] = file.content_hash
        self.ledger[entry.load_id] = entry

    def _dump(self) -> tuple[dict[int, str], dict[int, PublishedSlice], int]:
        return dict(self.target), dict(self.ledger), self._loads

    def dump(self) -> None:
        self.dumped = self._dump()

    def restore(self) -> None:
        target, ledger, self._loads = self.dumped
        self.target, self.ledger = dict(target), dict(ledger)

    def contents(self) -> list[str]:
        return sorted(content.rstrip("0") for content in self.target.values())

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
    assert folder.contents() == ["1"]
    assert folder.states["a-200000000000"].status == "superseded"


def test_a_renamed_file_is_not_loaded_again() -> None:
    folder = _loaded({"a": "1"})
    folder.move("a", "b")
    due = folder.due()
    assert not due.slices
    assert due.carried_over == ("b-100000000000",)
    assert due.states[0].carried_from == (1,)


def test_a_rotated_log_keeps_the_rows_of_all_its_files() -> None:
    folder = _loaded({"latest": "1"})
    for day, content in (("2024-01-01", "2"), ("2024-01-02", "3")):
        folder.move("latest", day)
        folder.write("latest", content)
        folder.converge()
    assert folder.contents() == ["1", "2", "3"]


def test_a_rotated_log_keeps_the_rows_of_files_that_were_archived_since() -> None:
    folder = _loaded({"latest": "1"})
    folder.move("latest", "2024-01-01")
    folder.write("latest", "2")
    folder.converge()
    del folder.files["2024-01-01"]
    folder.converge()
    assert folder.contents() == ["1", "2"]


def test_a_file_that_was_renamed_and_then_rewritten_replaces_its_rows() -> None:
    folder = _loaded({"a": "1"})
    for path, to in (("a", "b"), ("b", "c")):
        folder.move(path, to)
        folder.converge()
    folder.write("c", "2")
    folder.converge()
    assert folder.contents() == ["2"]


def test_a_content_that_another_file_still_has_is_not_superseded() -> None:
    folder = _loaded({"a": "1", "b": "1"})
    folder.write("a", "2")
    folder.converge()
    assert folder.contents() == ["1", "2"]


def test_a_file_that_returns_to_a_content_which_never_left_the_target_still_replaces_its_rows() -> None:
    folder = _loaded({"a": "1", "b": "1"})
    for content in ("2", "1"):
        folder.write("a", content)
        folder.converge()
    assert folder.contents() == ["1"]


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


def test_what_a_restored_target_has_lost_is_loaded_again_and_what_it_got_back_is_replaced() -> None:
    folder = _loaded({"a": "1", "b": "2"})
    folder.dump()
    folder.write("a", "3")
    folder.write("c", "4")
    folder.converge()
    folder.restore()
    assert sorted(owed.key[0] for owed in folder.due().slices) == ["a", "c"]
    folder.converge()
    assert folder.contents() == ["2", "3", "4"]


PATHS = st.sampled_from("abc")
CHANGES = st.one_of(
    st.tuples(st.just("write"), PATHS, st.sampled_from("123")),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("remove"), PATHS, st.just("")),
    st.tuples(st.sampled_from(["dump", "restore"]), st.just(""), st.just("")),
)
CRASHES = st.lists(st.sampled_from(["no", "before publish", "after publish"]), max_size=2).map(tuple)


@given(st.lists(st.tuples(st.lists(CHANGES, min_size=1, max_size=3), CRASHES), max_size=6))
def test_whatever_happens_each_content_is_in_the_target_once(
    rounds: list[tuple[list[tuple[str, str, str]], tuple[str, ...]]],
) -> None:
    """What a missing file held stays, once."""
    folder = Folder()
    for changes, crashes in rounds:
        for change, path, other in changes:
            if change == "write":
                folder.write(path, other)
            elif change == "move" and path in folder.files:
                folder.move(path, other)
            elif change == "remove":
                folder.files.pop(path, None)
            elif change == "dump":
                folder.dump()
            elif change == "restore":
                folder.restore()
        folder.apply(crashes)
    left = {content for content in folder.target.values() if folder.holder[content] not in folder.files}
    folder.converge()
    assert Counter(folder.target.values()) == Counter({*folder.files.values(), *left})
    assert folder.due().states == ()
