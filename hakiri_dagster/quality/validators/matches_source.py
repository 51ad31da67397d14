"""row_count_matches_source: what was read is what the source holds, counted once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import RowCountMatchesSourceValidator
from hakiri_dagster.quality.measures import Answers, Checksums, Compared, Measure, Rows, RowsAtSource, RowsSetAside
from hakiri_dagster.quality.validators.contract import Kind, Verdict
from hakiri_dagster.quality.validators.numbers import whole


class MatchesSource(Kind[RowCountMatchesSourceValidator]):
    @override
    def asks(self, validator: RowCountMatchesSourceValidator) -> Sequence[Measure]:
        counts = (Rows(), RowsSetAside(), RowsAtSource())
        return (*counts, Checksums(validator.columns)) if validator.checksum else counts

    @override
    def verdict(self, validator: RowCountMatchesSourceValidator, answers: Answers, now: datetime) -> Verdict:
        rows, aside, source = (whole(answers[measure]) for measure in (Rows(), RowsSetAside(), RowsAtSource()))
        told = f" and {aside:,} set aside" if aside else ""
        counted = f"{rows:,} row(s) here{told}, {source:,} at the source"
        same, values = _values(validator, answers, aside)
        return Verdict(
            rows + aside == source and same,
            "; ".join([counted, *values]),
            {"rows": rows, "rows_set_aside": aside, "rows_at_source": source},
        )

    @override
    def shown(self, validator: RowCountMatchesSourceValidator) -> str:
        return f"as many rows as the source holds{', with the same values' if validator.checksum else ''}"


def _values(validator: RowCountMatchesSourceValidator, answers: Answers, aside: int) -> tuple[bool, Iterator[str]]:
    if not validator.checksum:
        return True, iter(())
    if aside:
        return True, iter(["values not compared, for rows were set aside"])
    compared = answers[Checksums(validator.columns)]
    if not isinstance(compared, Compared):
        raise TypeError(f"{compared!r} compares nothing")
    same = compared.here == compared.at_source
    asked_for = set(validator.columns or ()).intersection(compared.left_out)
    return same and not asked_for, _told(compared, same)


def _told(compared: Compared, same: bool) -> Iterator[str]:
    yield "the same values" if same else f"other values: checksum {compared.here} here, {compared.at_source} there"
    if compared.left_out:
        yield f"not compared: {', '.join(compared.left_out)}"
