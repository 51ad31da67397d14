"""freshness: the newest row is recent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import FreshnessValidator
from hakiri_dagster.planning.arrow_types import is_time, type_told
from hakiri_dagster.quality.measures import Answers, Highest, Instant, Measure
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict

_HOUR = 3_600_000_000


class Freshness(Kind[FreshnessValidator]):
    @override
    def asks(self, validator: FreshnessValidator) -> Sequence[Measure]:
        return (Highest(validator.column),)

    @override
    def verdict(self, validator: FreshnessValidator, answers: Answers, now: datetime) -> Verdict:
        newest = answers[Highest(validator.column)]
        if not isinstance(newest, Instant):
            return Verdict(False, f"no row has a time in {validator.column}")
        hours = (Instant.of(now).microseconds - newest.microseconds) / _HOUR
        observed = f"the newest is of {newest}, {hours:,.1f} hours ago"
        return Verdict(hours <= validator.within_hours, observed, {"hours": round(hours, 3)})

    @override
    def shown(self, validator: FreshnessValidator) -> str:
        return f"the newest {validator.column} is at most {validator.within_hours:g} hours old"

    @override
    def misfits(self, validator: FreshnessValidator, kinds: Kinds) -> Iterator[str]:
        kind = kinds[validator.column]
        if not is_time(kind):
            yield f"{validator.column} is {type_told(kind)}, which is no time"
