from __future__ import annotations

from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.planning.plan import LoadChunks, ProjectPlan, StartedBy, TablePlan

WEBHOOK = "webhook: POST /hooks/shop, signed (github)"


def test_a_plan_tells_what_starts_a_pipeline_whether_anything_is_due_or_not() -> None:
    started_by = (StartedBy("shop", (WEBHOOK,)), StartedBy("other", ()))
    for stages in ((), (LoadChunks(("full",), None),)):
        table = TablePlan("shop", "orders", "raw.orders", "append", is_new=False, stages=stages)
        plan = ProjectPlan((table,), started_by=started_by)
        assert explain(plan).count(f"shop: started by {WEBHOOK}") == 1
        assert document(plan)["pipelines"][0]["triggers"] == [WEBHOOK]
