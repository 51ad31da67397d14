"""`validate.dataset_level`: what must hold of all rows of a load together, or of the table that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.manifest.check_ids import CheckId, id_from
from hakiri_dagster.manifest.field_types import (
    ColumnNames,
    ColumnType,
    Flag,
    Model,
    Number,
    QualifiedName,
    Text,
    Whole,
    wrong,
)
from hakiri_dagster.manifest.rule_values import Bound, PlainValue, place_of
from hakiri_dagster.security import sql_guard

OnFail = Literal["abort", "warn"]
Scope = Literal["candidate", "table"]
Aggregate = Literal["values", "min", "max", "mean", "sum"]

_SCOPE = "`candidate`: the rows of one load; `table`: the target as it would be after the publish."


class Validator(Model):
    """What all validators have in common."""

    id: CheckId | None = Field(
        default=None, description="Names the validator's asset check. Default: its kind and its columns."
    )
    on_fail: OnFail = Field(default="abort", description="`abort` stops the publish, `warn` is only recorded.")


class ScopedValidator(Validator):
    """One that can be asked of the rows of a load, or of the table."""

    scope: Scope = Field(default="candidate", description=_SCOPE)


def _bounded(low: Any, high: Any, names: tuple[str, str]) -> None:
    """`low` and `high` are places in one order."""
    if low is None and high is None:
        raise wrong(f"neither `{names[0]}` nor `{names[1]}` is given, so it would always pass", "give one, or both")
    if low is not None and high is not None and low > high:
        raise wrong(
            f"{names[0]} is {low} and {names[1]} {high}, so nothing would pass",
            f"{names[0]} must not be greater than {names[1]}",
        )


class RowCountValidator(ScopedValidator):
    """How many rows there are."""

    min: Whole | None = Field(default=None, ge=0, description="The fewest rows.")
    max: Whole | None = Field(default=None, ge=0, description="The most rows.")

    @model_validator(mode="after")
    def _in_order(self) -> RowCountValidator:
        _bounded(self.min, self.max, ("min", "max"))
        return self


class FreshnessValidator(ScopedValidator):
    """The newest row is not older than this."""

    within_hours: Number = Field(gt=0, description="The greatest age of the newest row.")
    column: Text = Field(description="The column that holds the row's time.")


class FkIntegrityValidator(ScopedValidator):
    """Every value occurs in another table."""

    column: Text = Field(description="The column that refers to the other table. NULL refers to nothing.")
    ref_table: QualifiedName = Field(
        description="`schema.table` in the same destination; `table` alone is in the target's schema."
    )
    ref_column: Text = Field(description="The column it refers to.")


class CardinalityValidator(ScopedValidator):
    """How many distinct values a column has."""

    column: Text = Field(description="The column that is counted. NULL is no value.")
    min_distinct: Whole | None = Field(default=None, ge=0, description="The fewest distinct values.")
    max_distinct: Whole | None = Field(default=None, ge=0, description="The most distinct values.")

    @model_validator(mode="after")
    def _in_order(self) -> CardinalityValidator:
        _bounded(self.min_distinct, self.max_distinct, ("min_distinct", "max_distinct"))
        return self


class DuplicateKeyValidator(ScopedValidator):
    """No two rows share these columns."""

    columns: ColumnNames = Field(
        description="The columns that tell rows apart. Rows with a NULL in one of them share nothing."
    )


class NullRatioValidator(ScopedValidator):
    """How many rows have no value in a column."""

    column: Text = Field(description="The column.")
    max: Number = Field(default=0, ge=0, le=1, description="The greatest share of NULLs that passes.")


class AcceptedValuesValidator(ScopedValidator):
    """A column holds no value but these."""

    column: Text = Field(description="The column. NULL passes.")
    values: Annotated[tuple[PlainValue, ...], Field(min_length=1)] = Field(description="The values that pass.")


class RangeValidator(ScopedValidator):
    """A column's values, or what is computed from them, lie between two bounds."""

    column: Text = Field(description="The column: numbers, dates or times.")
    of: Aggregate = Field(
        default="values",
        description="`values`: all of them lie between the bounds; or the one number that does: their `min`, `max`, "
        "`mean` or `sum`.",
    )
    min: Bound | None = Field(default=None, description="The lowest that passes: a number, a date or a time.")
    max: Bound | None = Field(default=None, description="The highest that passes.")

    @model_validator(mode="after")
    def _in_order(self) -> RangeValidator:
        given = [bound for bound in (self.min, self.max) if bound is not None]
        if len({isinstance(bound, str) for bound in given}) > 1:
            raise wrong("`min` and `max` must both be numbers, or both dates")
        if self.of in ("mean", "sum") and any(isinstance(bound, str) for bound in given):
            raise wrong(f"dates have no {self.of}", "bound their `values`, `min` or `max`")
        low, high = (None if bound is None else place_of(bound) for bound in (self.min, self.max))
        _bounded(low, high, ("min", "max"))
        return self


class SchemaMatchesValidator(Validator):
    """The target has these columns."""

    columns: Annotated[dict[Text, ColumnType], Field(min_length=1)] = Field(
        description="PostgreSQL types by column, as the target must have them."
    )
    others: Literal["refuse", "allow"] = Field(
        default="refuse", description="What a column does that is not named here. Our own are never meant."
    )


class RowCountMatchesSourceValidator(Validator):
    """No row was lost or doubled on the way: the source is counted once more, by itself."""

    checksum: Flag = Field(
        default=False,
        description="Compares the values too, by a checksum that does not depend on the order of rows.",
    )
    columns: ColumnNames | None = Field(
        default=None, description="What the checksum is made of. Default: every column that can be compared."
    )

    @model_validator(mode="after")
    def _columns_of_a_checksum(self) -> RowCountMatchesSourceValidator:
        if self.columns is not None and not self.checksum:
            raise wrong("`columns` are those of the checksum, and there is none", "set `checksum = true`")
        return self


def _select(value: Any) -> Any:
    if isinstance(value, str) and value:
        try:
            sql_guard.judge_probe_template(value)
        except UnsafeSql as error:
            raise wrong(error.what, error.hint) from None
    return value


class SqlValidator(ScopedValidator):
    """A SELECT that finds nothing wrong."""

    statement: Annotated[Text, BeforeValidator(_select)] = Field(
        description="One SELECT that returns no row, or one true value. `{table}` are the rows that are asked."
    )
    timeout_seconds: Number = Field(default=600, gt=0, le=86_400, description="How long it may take.")


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _one_or_more(kind: type[Validator]) -> BeforeValidator:
    return BeforeValidator(_listed, json_schema_input_type=kind | tuple[kind, ...])  # type: ignore[valid-type]  # a type that is a value


RowCountValidators = Annotated[tuple[RowCountValidator, ...], _one_or_more(RowCountValidator)]
FreshnessValidators = Annotated[tuple[FreshnessValidator, ...], _one_or_more(FreshnessValidator)]
FkIntegrityValidators = Annotated[tuple[FkIntegrityValidator, ...], _one_or_more(FkIntegrityValidator)]
CardinalityValidators = Annotated[tuple[CardinalityValidator, ...], _one_or_more(CardinalityValidator)]
DuplicateKeyValidators = Annotated[tuple[DuplicateKeyValidator, ...], _one_or_more(DuplicateKeyValidator)]
NullRatioValidators = Annotated[tuple[NullRatioValidator, ...], _one_or_more(NullRatioValidator)]
AcceptedValuesValidators = Annotated[tuple[AcceptedValuesValidator, ...], _one_or_more(AcceptedValuesValidator)]
RangeValidators = Annotated[tuple[RangeValidator, ...], _one_or_more(RangeValidator)]
SchemaMatchesValidators = Annotated[tuple[SchemaMatchesValidator, ...], _one_or_more(SchemaMatchesValidator)]
RowCountMatchesSourceValidators = Annotated[
    tuple[RowCountMatchesSourceValidator, ...], _one_or_more(RowCountMatchesSourceValidator)
]
SqlValidators = Annotated[tuple[SqlValidator, ...], _one_or_more(SqlValidator)]


class DatasetLevelSpec(Model):
    """Questions asked before a load is published: one of a kind, or a list."""

    row_count: RowCountValidators = Field(default=(), description="How many rows there are.")
    freshness: FreshnessValidators = Field(default=(), description="How old the newest row is.")
    fk_integrity: FkIntegrityValidators = Field(default=(), description="Whether values occur in another table.")
    cardinality: CardinalityValidators = Field(default=(), description="How many distinct values a column has.")
    duplicate_key: DuplicateKeyValidators = Field(default=(), description="Whether two rows share a key.")
    null_ratio: NullRatioValidators = Field(default=(), description="How many rows have no value.")
    accepted_values: AcceptedValuesValidators = Field(default=(), description="Whether a column holds other values.")
    range: RangeValidators = Field(
        default=(), description="Whether values, or their min, max, mean or sum, are within bounds."
    )
    schema_matches: SchemaMatchesValidators = Field(
        default=(), description="Whether the target has the columns that it should."
    )
    row_count_matches_source: RowCountMatchesSourceValidators = Field(
        default=(), description="Whether the source holds as many rows, and the same."
    )
    sql: SqlValidators = Field(default=(), description="Whether a SELECT finds something wrong.")

    @property
    def validators(self) -> tuple[DatasetValidator, ...]:
        """In the order of their kinds."""
        return tuple(one for kind in _KINDS.values() for one in getattr(self, kind))


class LateSpec(Model):
    """When Dagster's UI shows a table as late: nothing was published into it for so long."""

    after_hours: Number = Field(gt=0, description="It is late after so many hours.")
    warn_after_hours: Number | None = Field(default=None, gt=0, description="It is shown as soon to be late.")

    @model_validator(mode="after")
    def _in_order(self) -> LateSpec:
        if self.after_hours * 60 < 1 or (self.warn_after_hours is not None and self.warn_after_hours * 60 < 1):
            raise wrong("Dagster counts in minutes, and this is less than one")
        if self.warn_after_hours is not None and self.warn_after_hours >= self.after_hours:
            raise wrong("`warn_after_hours` must be less than `after_hours`")
        return self


DatasetValidator = (
    RowCountValidator | FreshnessValidator | FkIntegrityValidator | CardinalityValidator | DuplicateKeyValidator
    | NullRatioValidator | AcceptedValuesValidator | RangeValidator | SchemaMatchesValidator
    | RowCountMatchesSourceValidator | SqlValidator
)  # fmt: skip

_KINDS: Mapping[type[Validator], str] = {
    RowCountValidator: "row_count", FreshnessValidator: "freshness", FkIntegrityValidator: "fk_integrity",
    CardinalityValidator: "cardinality", DuplicateKeyValidator: "duplicate_key", NullRatioValidator: "null_ratio",
    AcceptedValuesValidator: "accepted_values", RangeValidator: "range", SchemaMatchesValidator: "schema_matches",
    RowCountMatchesSourceValidator: "row_count_matches_source", SqlValidator: "sql",
}  # fmt: skip


def kind_of(validator: Validator) -> str:
    return _KINDS[type(validator)]


def scope_of(validator: Validator) -> Scope:
    """What a schema is asked of is the table, and what is compared with the source a load."""
    if isinstance(validator, ScopedValidator):
        return validator.scope
    return "table" if isinstance(validator, SchemaMatchesValidator) else "candidate"


def columns_of(validator: DatasetValidator) -> tuple[str, ...]:
    """Those of the rows that it asks about."""
    match validator:
        case DuplicateKeyValidator(columns=columns):
            return columns
        case RowCountMatchesSourceValidator(columns=columns):
            return columns or ()
        case RowCountValidator() | SqlValidator() | SchemaMatchesValidator():
            return ()
        case _:
            return (validator.column,)


def id_of(validator: DatasetValidator) -> str:
    """Says nothing of bounds, so that a check's history goes on when they are changed; of the scope it does."""
    if validator.id is not None:
        return validator.id
    named = () if isinstance(validator, RowCountMatchesSourceValidator) else columns_of(validator)
    own = isinstance(validator, ScopedValidator) and validator.scope == "table"
    return id_from(f"{'table_' if own else ''}{_called(validator)}", *named)


def _called(validator: DatasetValidator) -> str:
    """Apart from the row rule of the same name, which is `range_<field>`."""
    return f"{validator.of}_range" if isinstance(validator, RangeValidator) else kind_of(validator)
