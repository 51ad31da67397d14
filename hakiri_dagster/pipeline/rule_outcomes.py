"""What became of a table's row rules in one slice."""

from __future__ import annotations

from dataclasses import dataclass

from hakiri_dagster.manifest.rule_spec import RowRule, id_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.candidate import SliceReport
from hakiri_dagster.quality.row_rules import shown


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """`broken` of `rows` broke the rule."""

    rule: RowRule
    rows: int
    broken: int

    @property
    def passed(self) -> bool:
        return self.broken == 0

    @property
    def stops(self) -> bool:
        return self.why_it_stops is not None

    @property
    def why_it_stops(self) -> str | None:
        rule = self.rule
        told = f"{id_of(rule)}: {self.broken} of {self.rows} row(s) break it ({shown(rule)})"
        if rule.on_fail == "abort":
            return None if self.passed else told
        if rule.max_failed_rows is not None and self.broken > rule.max_failed_rows:
            return f"{told}, and max_failed_rows is {rule.max_failed_rows}"
        if rule.max_failed_ratio is not None and self.broken > rule.max_failed_ratio * self.rows:
            return f"{told}, and max_failed_ratio is {rule.max_failed_ratio:g}"
        return None


def outcomes_of(table: Table, report: SliceReport) -> tuple[RuleOutcome, ...]:
    rules = table.validation.row_level
    broken = report.broken or (0,) * len(rules)
    rows = report.rows + report.bad_rows
    return tuple(RuleOutcome(rule, rows, count) for rule, count in zip(rules, broken, strict=True))
