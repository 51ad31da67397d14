"""What became of a table's rules and validators in one slice, in the words that checks, warnings and errors share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hakiri_dagster.destinations.contract import LoadAnswers
from hakiri_dagster.manifest import rule_spec, validator_spec
from hakiri_dagster.manifest.rule_spec import RowRule
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator, FreshnessValidator, scope_of
from hakiri_dagster.pipeline.candidate import SliceReport
from hakiri_dagster.pipeline.passes import StagedSlice
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.quality import row_rules
from hakiri_dagster.quality.measures import Answers, ColumnMeasure, Rows, RowsSetAside
from hakiri_dagster.quality.tallies import answers_of
from hakiri_dagster.quality.validators import registry


@dataclass(frozen=True, slots=True)
class Outcome:
    """`why_it_stops`: the load may not be published. `numbers` plot over time."""

    check: str
    passed: bool
    expected: str
    observed: str
    why_it_stops: str | None
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    keeps_rows: bool = False
    """Rows that are in its way are in the quarantine table."""

    warning: str | None = None
    """What somebody should hear, though the load goes on."""

    @property
    def stops(self) -> bool:
        return self.why_it_stops is not None


def of_rules(table: Table, report: SliceReport) -> tuple[Outcome, ...]:
    rules = table.validation.row_level
    broken = report.broken or (0,) * len(rules)
    rows = report.rows + report.bad_rows
    return tuple(of_rule(rule, rows, count) for rule, count in zip(rules, broken, strict=True))


def of_rule(rule: RowRule, rows: int, broken: int) -> Outcome:
    told = f"rule {rule_spec.id_of(rule)}: {broken} of {rows} row(s) break it"
    return Outcome(
        check=rule_spec.id_of(rule),
        passed=broken == 0,
        expected=row_rules.shown(rule),
        observed=f"{broken} of {rows} row(s) break it",
        why_it_stops=_why_a_rule_stops(rule, rows, broken),
        numbers={"violations": broken, "rows": rows},
        keeps_rows=True,
        warning=f"{told}, and it sets none of them aside" if broken and rule.on_fail == "warn" else None,
    )


def _why_a_rule_stops(rule: RowRule, rows: int, broken: int) -> str | None:
    told = f"{rule_spec.id_of(rule)}: {broken} of {rows} row(s) break it ({row_rules.shown(rule)})"
    if rule.on_fail == "abort":
        return told if broken else None
    if rule.max_failed_rows is not None and broken > rule.max_failed_rows:
        return f"{told}, and max_failed_rows is {rule.max_failed_rows}"
    if rule.max_failed_ratio is not None and broken > rule.max_failed_ratio * rows:
        return f"{told}, and max_failed_ratio is {rule.max_failed_ratio:g}"
    return None


def of_validators(
    slice_: StagedSlice, aside: SetAside, answered: LoadAnswers, at_source: Answers, *, is_newest: Callable[[], bool]
) -> tuple[Outcome, ...]:
    """`is_newest`: no chunk of the table comes after this one. To find that out takes a walk over all of its chunks, so
    only those are asked for it who care."""
    validators = slice_.load.table.validation.dataset_level.validators
    if not validators:
        return ()
    of_load = {**_counted(slice_), **at_source}
    counts: Answers = {Rows(): aside.of - aside.rows, RowsSetAside(): aside.rows}
    answers: Mapping[str, Answers] = {
        "candidate": {**of_load, **answered.of_candidate, **counts},
        "table": {**of_load, **answered.of_table},
    }
    return tuple(_of_load(one, answers[scope_of(one)], is_newest=is_newest) for one in validators)


def _counted(slice_: StagedSlice) -> Answers:
    """By the workers, in passing."""
    columns = [one for one in slice_.load.asked.in_passing if isinstance(one, ColumnMeasure)]
    found = answers_of(columns, slice_.report.tallies)
    return {measure: answer for measure, answer in found.items() if isinstance(measure, ColumnMeasure)}


def _of_load(validator: DatasetValidator, answers: Answers, *, is_newest: Callable[[], bool]) -> Outcome:
    if isinstance(validator, FreshnessValidator) and validator.scope == "candidate" and not is_newest():
        name, expected = validator_spec.id_of(validator), registry.shown(validator)
        return Outcome(name, True, expected, "not asked: newer chunks come after this one", None)
    return of_validator(validator, answers)


def of_validator(validator: DatasetValidator, answers: Answers) -> Outcome:
    name, expected = validator_spec.id_of(validator), registry.shown(validator)
    verdict = registry.verdict(validator, answers, datetime.now(UTC))
    stops = not verdict.passed and validator.on_fail == "abort"
    told = f"{name}: {verdict.observed} (expected: {expected})"
    return Outcome(
        check=name,
        passed=verdict.passed,
        expected=expected,
        observed=verdict.observed,
        why_it_stops=told if stops else None,
        numbers=verdict.numbers,
        warning=None if verdict.passed or stops else f"validator {told}; it stops nothing",
    )
