"""range: a column's values, or what is computed from them, lie between two bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import assert_never

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import RangeValidator
from hakiri_dagster.planning.arrow_types import is_number, is_time, type_told
from hakiri_dagster.quality.measures import Answers, Highest, Instant, Lowest, Measure, Nulls, Rows, Total
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.numbers import Measured, bounds_shown, measured, plotted, whole, within


class ValueRange(Kind[RangeValidator]):
    @override
    def asks(self, validator: RangeValidator) -> Sequence[Measure]:
        column = validator.column
        match validator.of:
            case "values":
                return Lowest(column), Highest(column)
            case "min":
                return (Lowest(column),)
            case "max":
                return (Highest(column),)
            case "sum":
                return (Total(column),)
            case "mean":
                return Rows(), Nulls(column), Total(column)
            case other:
                assert_never(other)

    @override
    def verdict(self, validator: RangeValidator, answers: Answers, now: datetime) -> Verdict:
        """Of no values there is nothing that could lie outside."""
        found = _found(validator, answers)
        if not found:
            return Verdict(True, f"no row has a value in {validator.column}")
        passed = all(within(value, validator.min, validator.max) for value in found.values())
        observed = ", ".join(f"{name} {_told(name, value)}" for name, value in found.items())
        numbers = {name: number for name, value in found.items() if (number := plotted(value)) is not None}
        return Verdict(passed, f"{observed} of {validator.column}", numbers)

    @override
    def shown(self, validator: RangeValidator) -> str:
        what = validator.column if validator.of == "values" else f"the {validator.of} of {validator.column}"
        return f"{what} is {bounds_shown(validator.min, validator.max)}"

    @override
    def misfits(self, validator: RangeValidator, kinds: Kinds) -> Iterator[str]:
        kind = kinds[validator.column]
        dates = isinstance(validator.min if validator.min is not None else validator.max, str)
        if dates and not is_time(kind):
            yield f"{validator.column} is {type_told(kind)}, and the bounds are dates"
        elif not dates and not is_number(kind):
            yield f"{validator.column} is {type_told(kind)}, and the bounds are numbers"


def _told(name: str, value: Measured) -> str:
    """A mean has more digits than anybody wants to read."""
    return f"{value:.10g}" if name == "mean" and not isinstance(value, Instant) else str(value)


def _found(validator: RangeValidator, answers: Answers) -> dict[str, Measured]:
    column = validator.column
    match validator.of:
        case "values":
            named = {"min": answers[Lowest(column)], "max": answers[Highest(column)]}
        case "min":
            named = {"min": answers[Lowest(column)]}
        case "max":
            named = {"max": answers[Highest(column)]}
        case "sum":
            named = {"sum": answers[Total(column)]}
        case "mean":
            named = {"mean": _mean(column, answers)}
        case other:
            assert_never(other)
    return {name: value for name, answer in named.items() if (value := measured(answer)) is not None}


def _mean(column: str, answers: Answers) -> float | Decimal | None:
    total, count = answers[Total(column)], whole(answers[Rows()]) - whole(answers[Nulls(column)])
    if not count or not isinstance(total, int | float | Decimal):
        return None
    return total / count
