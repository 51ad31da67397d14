"""sql: a SELECT of one's own finds nothing wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import SqlValidator
from hakiri_dagster.quality.measures import Answers, Measure, Probe, Violations
from hakiri_dagster.quality.validators.contract import Kind, Verdict


class Select(Kind[SqlValidator]):
    @override
    def asks(self, validator: SqlValidator) -> Sequence[Measure]:
        return (_probe(validator),)

    @override
    def verdict(self, validator: SqlValidator, answers: Answers, now: datetime) -> Verdict:
        found = answers[_probe(validator)]
        if not isinstance(found, Violations):
            raise TypeError(f"{found!r} is no answer of a SELECT")
        if not found.rows:
            return Verdict(True, "it found nothing", {"violations": 0})
        return Verdict(False, f"{found.rows:,} row(s): {found}", {"violations": found.rows})

    @override
    def shown(self, validator: SqlValidator) -> str:
        return f"no row, or one true value, of {validator.statement}"


def _probe(validator: SqlValidator) -> Probe:
    return Probe(validator.statement, validator.timeout_seconds)
