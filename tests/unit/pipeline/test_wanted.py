"""Which chunks a run is for, where it is tried again."""

from __future__ import annotations

import pytest

from hakiri_dagster.pipeline.wanted import Wanted


def asked(*keys: str, tries: tuple[str, ...] = ("run-1",)) -> Wanted:
    return Wanted(keys, due_only=False, partitions=frozenset(keys), published_by=tries)


def test_a_run_that_broke_off_behind_what_it_was_asked_for_goes_on_with_what_is_due() -> None:
    onward = asked("segment-000001").beyond({"segment-000001"}, ("segment-000002",))
    assert (onward.keys, onward.due_only) == (("segment-000001", "segment-000002"), True)
    assert onward.means("segment-000002", ())


@pytest.mark.parametrize(
    ("wanted", "published", "due"),
    [
        (asked("segment-000001", "segment-000002"), {"segment-000001"}, "segment-000002"),
        (asked("segment-000001"), set[str](), "segment-000001"),
        (asked("segment-000001"), {"segment-000001", "segment-000003"}, "segment-000003"),
        (asked("segment-000001", tries=()), {"segment-000001"}, "segment-000002"),
    ],
    ids=["its own are left", "none of its own was published", "the walk came to its end", "it is the first try"],
)
def test_other_runs_keep_to_what_they_were_asked_for(wanted: Wanted, published: set[str], due: str) -> None:
    assert wanted.beyond(published, (due,)) == wanted
