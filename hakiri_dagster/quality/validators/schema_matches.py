"""schema_matches: the target has the columns that it should, of the types that they should be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import SchemaMatchesValidator
from hakiri_dagster.quality.measures import Answers, ColumnsFound, ColumnTypes, Measure
from hakiri_dagster.quality.validators.contract import Kind, Verdict


class SchemaMatches(Kind[SchemaMatchesValidator]):
    @override
    def asks(self, validator: SchemaMatchesValidator) -> Sequence[Measure]:
        return (_types(validator),)

    @override
    def verdict(self, validator: SchemaMatchesValidator, answers: Answers, now: datetime) -> Verdict:
        found = answers[_types(validator)]
        if not isinstance(found, ColumnsFound):
            raise TypeError(f"{found!r} says nothing of columns")
        wrong = [_told(name, validator.columns[name], type_) for name, type_ in found.differing]
        if validator.others == "refuse":
            wrong += [f"{name} is not expected" for name in found.others]
        numbers = {"differing_columns": len(wrong)}
        return Verdict(not wrong, "; ".join(wrong) or "all columns are as they should be", numbers)

    @override
    def shown(self, validator: SchemaMatchesValidator) -> str:
        columns = ", ".join(f"{name} {type_}" for name, type_ in validator.columns.items())
        return f"the target has {columns}{' and nothing else' if validator.others == 'refuse' else ''}"


def _told(name: str, wanted: str, found: str | None) -> str:
    return f"there is no {name}" if found is None else f"{name} is {found}, not {wanted}"


def _types(validator: SchemaMatchesValidator) -> ColumnTypes:
    return ColumnTypes(tuple(validator.columns.items()))
