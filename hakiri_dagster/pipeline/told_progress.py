"""How far a table is after each publish of a run, without counting its chunks each time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from hakiri_dagster.audit.progress import TableProgress
from hakiri_dagster.audit.rate_budgets import BudgetOf
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.pipeline.way import Way

_COUNTED_AGAIN_SECONDS: Final = 5.0
"""Meanwhile other runs publish, too."""


@dataclass(frozen=True, slots=True)
class ToldProgress:
    table: TableProgress
    rate_budget: Rate | None
    rate_budget_used_pct: int | None


class RunProgress:
    """Asks the audit DB now and then, and at the end of what was running; in between it adds up itself."""

    def __init__(self, way: Way, rate_budget: Rate | None) -> None:
        self._way = way
        self._rate_budget = rate_budget
        self._counted: ToldProgress | None = None
        self._counted_at = 0.0
        self._since = 0

    def after_a_publish(self) -> ToldProgress | None:
        """None where the audit DB does not answer: that it says so is the affair of who loads."""
        self._since += 1
        now, last = time.monotonic(), self._counted
        if last is not None and last.table.running > self._since and now - self._counted_at < _COUNTED_AGAIN_SECONDS:
            table = last.table.after_publishing(self._since)
            return ToldProgress(table, last.rate_budget, last.rate_budget_used_pct)
        try:
            self._counted = self._count()
        except HakiriError:
            return None
        self._counted_at, self._since = now, 0
        return self._counted

    def _count(self) -> ToldProgress:
        audit, of, rate = self._way.audit, self._way.table, self._rate_budget
        used = None if rate is None else audit.rate_budgets.consumed_pct(BudgetOf(of.pipeline_id), rate)
        return ToldProgress(audit.progress(of.pipeline_id, of.name), rate, used)
