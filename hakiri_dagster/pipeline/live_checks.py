"""Rules and validators asked of a target as everybody sees it: no load, nothing changed.

Validators are answered by the destination. Rules are asked of all rows in Spark's workers, as in a load: the target is
read as a source is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hakiri_dagster.connectors.contract import Discovery, Known, SourceTable
from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, LoadAnswers, Target
from hakiri_dagster.destinations.quarantine_contract import KeptChoice
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.manifest import rule_spec, validator_spec
from hakiri_dagster.manifest.rule_spec import RowRule, UniqueRule, fields_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator
from hakiri_dagster.pipeline.direct import map_rows
from hakiri_dagster.pipeline.outcomes import Outcome, of_rule, of_validator
from hakiri_dagster.pipeline.projection import project, with_verdicts
from hakiri_dagster.pipeline.reconciliation import Reconciliation
from hakiri_dagster.pipeline.rule_counts import COUNTS_SCHEMA, RuleCounts
from hakiri_dagster.pipeline.slices import Splitter
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.arrow_types import kinds_of
from hakiri_dagster.planning.chunks import WHOLE, WholeTable
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality import row_rules
from hakiri_dagster.quality.expression_rules import judges
from hakiri_dagster.quality.measures import (
    AboutLoad,
    Answer,
    Checksums,
    Digest,
    Duplicates,
    Measure,
    Rows,
    RowsSetAside,
    Unanswered,
    Violations,
)
from hakiri_dagster.quality.numerics import numeric_texts
from hakiri_dagster.quality.validators.registry import digest_of, questions


@dataclass(frozen=True, slots=True)
class LiveTable:
    """`target` is the target, to be read like a source."""

    way: Way
    target: SourceTable

    @property
    def table(self) -> Table:
        return self.way.table


def live_outcomes(live: LiveTable, names: Collection[str]) -> Iterator[Outcome]:
    """Of the checks with these names."""
    validation = live.table.validation
    rules = [rule for rule in validation.row_level if rule_spec.id_of(rule) in names]
    validators = [one for one in validation.dataset_level.validators if validator_spec.id_of(one) in names]
    if rules:
        yield from _of_rules(live, rules)
    if validators:
        yield from _of_validators(live, validators)


def rows_in_quarantine(live: LiveTable) -> int:
    """Those that are missing from the target."""
    kept = live.way.destination.quarantined(live.table, KeptChoice(), limit=0)
    return sum(count.rows for count in kept.counts if count.on_fail in ("skip", None))


def _of_validators(live: LiveTable, validators: Sequence[DatasetValidator]) -> Iterator[Outcome]:
    way, asked = live.way, questions(validators)
    portable = not way.source.tallies_itself
    of_destination = [one for one in asked if not isinstance(one, AboutLoad)]
    answers: dict[Measure, Answer] = dict(way.destination.ask(live.table, of_destination))
    if len(of_destination) < len(asked):
        with translate_spark_errors(live.table.label):
            found = way.source.discover(cursor=None, known=_known(way), spark=way.spark)
        held = () if found.schema is None else tuple(column.name for column in found.schema.columns)
        for one in (one for one in asked if isinstance(one, Checksums)):
            digest = Digest(one.columns or held, portable)
            answers[digest_of(one, portable=portable)] = way.destination.ask(live.table, [digest])[digest]
        answers[RowsSetAside()] = rows_in_quarantine(live)
        answers.update(_at_source(live, found, validators, LoadAnswers(of_candidate=answers)))
    yield from (of_validator(one, answers) for one in validators)


def _at_source(
    live: LiveTable, found: Discovery, validators: Sequence[DatasetValidator], answered: LoadAnswers
) -> Mapping[Measure, Answer]:
    """The whole source as it is now."""
    way = live.way
    with translate_spark_errors(live.table.label):
        files = {file.path: file for file in found.files}
        schema = found.schema or SourceSchema((), ())
        reading = way.source.read(way.spark(), schema, None, [WHOLE], files, tallied=True)
        try:
            frame = project(reading, schema, empty_as_null=way.empty_as_null, with_row_hash=False)
            splitter = Splitter.of([WholeTable()], {})
            return Reconciliation(reading, frame, splitter, None, [WHOLE], validators, way.empty_as_null).answers(
                0, answered
            )
        finally:
            reading.close()


def _known(way: Way) -> Known:
    table = way.table
    return Known(
        schema=way.audit.tables.schema(table.pipeline_id, table.name, way.source.read_as),
        files=way.audit.files.known(table.pipeline_id, table.name),
    )


def _of_rules(live: LiveTable, rules: Sequence[RowRule]) -> Iterator[Outcome]:
    target = live.way.destination.describe(live.table)
    if target is None:
        yield from map(_without_target, rules)
    else:
        yield from _of_rules_in(target, live, rules)


def _without_target(rule: RowRule) -> Outcome:
    """As validators tell it."""
    name, told = rule_spec.id_of(rule), "the target does not exist yet"
    return Outcome(name, False, row_rules.shown(rule), told, f"{name}: {told}" if rule.on_fail == "abort" else None)


def _of_rules_in(target: Target, live: LiveTable, rules: Sequence[RowRule]) -> Iterator[Outcome]:
    with translate_spark_errors(live.table.label):
        found = live.target.discover(cursor=None, known=Known(), spark=live.way.spark).schema
    columns = () if found is None else found.columns
    kinds = kinds_of(columns)
    unfit = {rule_spec.id_of(rule): list(row_rules.objections([rule], kinds, whose="the target")) for rule in rules}
    fit = [rule for rule in rules if not unfit[rule_spec.id_of(rule)]]
    yield from (_of_keys(target, live, rule) for rule in fit if isinstance(rule, UniqueRule))
    asked = [rule for rule in fit if not isinstance(rule, UniqueRule)]
    wanted = {name for rule in asked for name in fields_of(rule)}
    schema = SourceSchema(tuple(column for column in columns if column.name in wanted), ())
    rows, broken = _counted(live, asked, schema) if asked else (0, [])
    yield from (of_rule(rule, rows, count) for rule, count in zip(asked, broken, strict=True))
    for rule in rules:
        if reasons := unfit[rule_spec.id_of(rule)]:
            yield _not_asked(rule, reasons)


def _of_keys(target: Target, live: LiveTable, rule: UniqueRule) -> Outcome:
    """The destination has all rows together, and of most targets each row's load."""
    of_loads = any(column.name == LOAD_ID_COLUMN for column in target.columns)
    duplicates = Duplicates((LOAD_ID_COLUMN, *fields_of(rule)) if of_loads else fields_of(rule))
    answers = live.way.destination.ask(live.table, (Rows(), duplicates))
    rows, found = answers[Rows()], answers[duplicates]
    if not isinstance(rows, int) or not isinstance(found, Violations):
        return _not_asked(rule, [answer.reason for answer in answers.values() if isinstance(answer, Unanswered)])
    outcome = of_rule(rule, rows, found.rows)
    if of_loads:
        return outcome
    whole = f"of the whole table, for it has no {LOAD_ID_COLUMN} to tell loads apart by"
    return replace(outcome, observed=f"{outcome.observed}, {whole}")


def _not_asked(rule: RowRule, reasons: Sequence[str]) -> Outcome:
    """What a row was when it was read, the target need not hold any more."""
    told = f"it cannot be asked of the target: {'; '.join(reasons)}"
    return Outcome(rule_spec.id_of(rule), False, row_rules.shown(rule), told, None, warning=told)


def _counted(live: LiveTable, rules: Sequence[RowRule], schema: SourceSchema) -> tuple[int, list[int]]:
    with translate_spark_errors(live.table.label):
        reading = live.target.read(live.way.spark(), schema, None, [WHOLE], {})
        try:
            frame = project(reading, schema, empty_as_null=False, with_row_hash=False)
            asked = judges(rules, kinds_of(schema.columns))
            frame = with_verdicts(frame, asked.spark, schema)
            direct = None if asked.spark else reading.direct
            counts = RuleCounts(tuple(rules), asked.workers, numeric_texts(schema.columns))
            found = map_rows(frame, direct, counts, COUNTS_SCHEMA).collect()
        finally:
            reading.close()
    broken = [sum(counts) for counts in zip(*(row["broken"] for row in found), strict=True)]
    return sum(row["rows"] for row in found), broken or [0] * len(rules)
