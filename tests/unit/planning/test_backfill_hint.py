from __future__ import annotations

import pytest

from hakiri_dagster.planning.backfill_hint import BackfillHint, PartitionKey, SafetyKind, objections

STREAMS = (PartitionKey("stream", ("one", "two")),)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("monotonic", None), ("partitioned-monotonic", None), ("opaque-token", 1), ("snapshot-id", 2)],
)
def test_a_kind_bears_so_many_passes_at_once_and_no_more(kind: SafetyKind, most: int | None) -> None:
    hint = BackfillHint(kind, STREAMS)
    assert hint.most_parallel == most
    if most is None:
        assert list(objections(hint, 64)) == []
    else:
        assert list(objections(hint, most)) == []
        (told,) = objections(hint, most + 1)
        assert f"backfill.parallelism = {most + 1}" in told
        assert kind in told
        assert f"set backfill.parallelism to {most}" in told


def test_parts_are_in_the_order_of_their_declaration() -> None:
    assert [part.value for part in BackfillHint("partitioned-monotonic", STREAMS).parts] == ["one", "two"]
