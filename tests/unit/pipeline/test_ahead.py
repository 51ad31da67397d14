from __future__ import annotations

from threading import Event

from hakiri_dagster.errors import SourceError
from hakiri_dagster.pipeline.ahead import in_order


def test_results_come_in_order_and_errors_as_values() -> None:
    failure = SourceError("gone")

    def work(item: int) -> int:
        if item == 2:
            raise failure
        return item * 10

    results = in_order([1, 2, 3], work, ahead=2, abandon=lambda _: None, hurry=lambda: None)
    assert list(results) == [(1, 10), (2, failure), (3, 30)]


def test_who_stops_asking_makes_running_work_hurry_and_its_results_are_abandoned() -> None:
    ended = Event()
    abandoned: list[str] = []

    def work(item: str) -> str:
        if item == "slow":
            ended.wait()
        return item

    results = in_order(["quick", "slow"], work, ahead=2, abandon=abandoned.append, hurry=ended.set)
    assert next(results) == ("quick", "quick")
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert abandoned == ["slow"]
