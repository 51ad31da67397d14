from __future__ import annotations

from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.planning.plan import AdoptLoads, Limits, LoadChunks, ProjectPlan, StartedBy, TablePlan

WEBHOOK = "webhook: POST /hooks/shop, signed (github)"


def test_a_plan_tells_what_starts_a_pipeline_whether_anything_is_due_or_not() -> None:
    started_by = (StartedBy("shop", (WEBHOOK,)), StartedBy("other", ()))
    for stages in ((), (LoadChunks(("full",), None),)):
        table = TablePlan("shop", "orders", "raw.orders", "append", is_new=False, stages=stages)
        plan = ProjectPlan((table,), started_by=started_by)
        assert explain(plan).count(f"shop: started by {WEBHOOK}") == 1
        assert document(plan)["pipelines"][0]["triggers"] == [WEBHOOK]


def test_a_plan_tells_all_that_is_limited_before_rows_move() -> None:
    table = TablePlan("shop", "orders", "raw.orders", "append", is_new=False, stages=(LoadChunks(("full",), None),))
    limits = Limits("shop", rate_budget="60/min", destination_writes_per_sec=50, parallelism=3)
    plan = ProjectPlan((table,), limits=(limits,), max_parallel_chunks=4)
    assert explain(plan).splitlines()[:3] == [
        "at most 4 pass(es) at once, over all pipelines (max_parallel_chunks)",
        "shop: at most 60/min requests to the source, of all workers together (rate_budget)",
        "shop: at most 50/s blocks of rows to the destination, of all workers together (destination_writes_per_sec)",
    ]


def test_a_plan_that_adopts_tells_that_loads_may_follow() -> None:
    stages = (AdoptLoads("tea/orders", 12),)
    table = TablePlan("shop", "orders", "raw.orders", "append", is_new=False, stages=stages)
    assert explain(ProjectPlan((table,))).splitlines()[1:] == [
        "  = adopt 12 chunk(s) that were published as tea/orders (load.adopt)",
        "    then what is due is planned by what they hold, and loaded",
    ]
