from __future__ import annotations

from hakiri_dagster.pipeline.hooks_run import occasion_of


def test_a_hook_that_is_told_of_other_loads_is_told_under_another_key() -> None:
    told_of = [(), (42,), (43,), (42, 43), (42, 43, 44)]
    assert len({occasion_of(load_ids) for load_ids in told_of}) == len(told_of)
    assert occasion_of((43, 42)) == occasion_of((42, 43))
    assert len(occasion_of(range(100_000))) < 20
