"""Partitions of two dimensions. Of a range Dagster makes each part with each window, so ranges are rectangles."""

from __future__ import annotations

from itertools import product

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.orchestration.part_partitions import event_key, in_parts, open_windows, rectangles
from hakiri_dagster.planning.backfill_hint import BackfillHint, PartitionKey

WINDOWS = ["2024-01", "2024-02", "2024-03", "2024-04"]
HINT = BackfillHint("partitioned-monotonic", (PartitionKey("repo", ("z/1", "b", "a")),))
PARTITIONS = in_parts(dg.StaticPartitionsDefinition(WINDOWS), HINT)


def covered(first: str, last: str) -> list[str]:
    return list(PARTITIONS.get_partition_keys_in_range(dg.PartitionKeyRange(first, last)))


def test_keys_are_those_of_the_chunks_in_the_order_of_the_manifest() -> None:
    keys = PARTITIONS.get_partition_keys()
    assert keys[:5] == ["z~2F1|2024-01", "z~2F1|2024-02", "z~2F1|2024-03", "z~2F1|2024-04", "b|2024-01"]
    assert open_windows(keys) == {"z~2F1": "z~2F1|2024-04", "b": "b|2024-04", "a": "a|2024-04"}


def test_parts_that_owe_the_same_windows_make_one_run() -> None:
    owed = ["z~2F1|2024-04", "b|2024-04", "a|2024-04", "a|2024-01"]
    found = rectangles(PARTITIONS.get_partition_keys(), owed, longest=100)
    assert ("z~2F1|2024-04", "a|2024-04", 3) in found
    assert len(found) == 2


def test_events_of_a_part_tell_both_dimensions() -> None:
    key = event_key(PARTITIONS, "z~2F1|2024-04")
    assert isinstance(key, dg.MultiPartitionKey)
    assert key.keys_by_dimension == {"key": "z~2F1", "window": "2024-04"}
    assert event_key(dg.StaticPartitionsDefinition(["full"]), "full") == "full"


@given(st.sets(st.sampled_from(list(product(["z~2F1", "b", "a"], WINDOWS)))), st.integers(1, 6))
def test_rectangles_are_what_is_wanted_each_once_and_none_is_too_long(
    wanted: set[tuple[str, str]], longest: int
) -> None:
    keys = ["|".join(pair) for pair in wanted]
    found = rectangles(PARTITIONS.get_partition_keys(), keys, longest)
    assert sorted(key for first, last, _ in found for key in covered(first, last)) == sorted(keys)
    for first, last, count in found:
        assert count == len(covered(first, last)) <= longest
