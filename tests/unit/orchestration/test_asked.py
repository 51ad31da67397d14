"""What runs were asked for, by their tags: what is counted so, a batch of deliveries does not ask for again."""

from __future__ import annotations

import dagster as dg
import pytest

from hakiri_dagster.orchestration.asked import asked_for
from hakiri_dagster.orchestration.names import ALONG_TAG, LEFT_TAG, PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG
from hakiri_dagster.orchestration.part_partitions import in_parts
from hakiri_dagster.planning.backfill_hint import BackfillHint, PartitionKey

WINDOWS = dg.StaticPartitionsDefinition(["2024-01", "2024-02", "2024-03"])
IN_PARTS = in_parts(WINDOWS, BackfillHint("partitioned-monotonic", (PartitionKey("repo", ("a", "b")),)))
FILES = dg.DynamicPartitionsDefinition(name="shop/orders")


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def a_range(first: str, last: str, **more: str) -> dg.DagsterRun:
    return dg.DagsterRun("job", tags={RANGE_START_TAG: first, RANGE_END_TAG: last, **more})


def of_one(key: str, more: dict[str, str] | None = None) -> dg.DagsterRun:
    return dg.DagsterRun("job", tags={PARTITION_TAG: key, **(more or {})})


def test_a_range_of_parts_is_a_rectangle(instance: dg.DagsterInstance) -> None:
    due = IN_PARTS.get_partition_keys()
    asked = asked_for([a_range("a|2024-03", "b|2024-03")], due, IN_PARTS, instance)
    assert asked == {"a|2024-03", "b|2024-03"}


def test_what_has_no_partition_goes_with_the_last_one_of_its_part(instance: dg.DagsterInstance) -> None:
    due = ["a|null", "a|outside", "b|null", "b|outside"]
    assert asked_for([of_one("a|2024-03")], due, IN_PARTS, instance) == {"a|null", "a|outside"}
    assert asked_for([of_one("a|2024-02")], due, IN_PARTS, instance) == set()
    assert asked_for([a_range("a|2024-03", "b|2024-03")], due, IN_PARTS, instance) == set(due)
    assert asked_for([of_one("2024-03")], ["null", "outside"], WINDOWS, instance) == {"null", "outside"}


def test_of_a_part_that_is_no_longer_shown_it_goes_with_the_last_one_of_all(instance: dg.DagsterInstance) -> None:
    assert asked_for([of_one("b|2024-03")], ["gone|null"], IN_PARTS, instance) == {"gone|null"}


def test_what_was_loaded_along_counts_and_what_was_left_to_another_does_not(instance: dg.DagsterInstance) -> None:
    run = of_one("2024-01", {ALONG_TAG: "2023-11,2023-12", LEFT_TAG: "2024-01,2023-12"})
    assert asked_for([run], ["2023-11", "2023-12", "2024-01"], WINDOWS, instance) == {"2023-11"}


@pytest.mark.parametrize("gone", ["a", "c"])
def test_a_range_is_known_when_a_file_at_its_end_was_written_anew(instance: dg.DagsterInstance, gone: str) -> None:
    @dg.asset(partitions_def=FILES, backfill_policy=dg.BackfillPolicy.single_run())
    def orders() -> None: ...

    instance.add_dynamic_partitions("shop/orders", ["a", "b", "c", "d"])
    dg.materialize([orders], instance=instance, tags={RANGE_START_TAG: "a", RANGE_END_TAG: "c"})
    instance.delete_dynamic_partition("shop/orders", gone)
    instance.add_dynamic_partitions("shop/orders", [f"{gone}-anew"])
    left = [key for key in "abc" if key != gone]
    assert asked_for(instance.get_runs(), [*left, "d", f"{gone}-anew"], FILES, instance) == set(left)
