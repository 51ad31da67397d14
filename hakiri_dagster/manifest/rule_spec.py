"""`validate.row_level`: what each row must be, and what becomes of one that is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hakiri_dagster.manifest.check_ids import CheckId, digest_of, id_from
from hakiri_dagster.manifest.field_types import ColumnNames, Model, Number, Text, Whole, wrong
from hakiri_dagster.manifest.rule_values import Bound, Expression, Pattern, PlainValue, place_of

RowOnFail = Literal["abort", "warn", "skip"]
FieldTypeName = Literal["string", "integer", "float", "boolean", "date", "timestamp", "json", "uuid"]
Comparison = Literal["<", "<=", "=", "!=", ">=", ">"]


class Rule(Model):
    """What all row rules have in common."""

    id: CheckId | None = Field(
        default=None,
        description="Names the rule's asset check and its rows in quarantine. Default: its type and its field.",
    )
    on_fail: RowOnFail = Field(
        default="abort",
        description="`abort` stops the publish, `skip` sets the row aside, `warn` lets it pass and records it.",
    )
    max_failed_rows: Whole | None = Field(
        default=None, ge=0, description="`skip`: more such rows than this stop the publish of their chunk."
    )
    max_failed_ratio: Number | None = Field(
        default=None, ge=0, le=1, description="`skip`: a greater share of the chunk's rows stops the publish."
    )

    @model_validator(mode="after")
    def _thresholds_of_skip(self) -> Rule:
        if self.on_fail != "skip" and (self.max_failed_rows is not None or self.max_failed_ratio is not None):
            raise wrong(
                f'`max_failed_rows` and `max_failed_ratio` are for on_fail = "skip", and this one is "{self.on_fail}"',
                'set on_fail = "skip", or take them out',
            )
        return self


class FieldRule(Rule):
    """About one column."""

    field: Text = Field(description="The column.")


class NotNullRule(FieldRule):
    """The value is there."""

    type: Literal["not_null", "notNull"] = Field(description="The value must not be NULL.")


class RegexRule(FieldRule):
    """The value matches a pattern."""

    type: Literal["regex"] = Field(description="The value must match a pattern.")
    pattern: Pattern = Field(
        description="A regular expression in RE2's syntax, found anywhere in the value. It has neither backreferences "
        "nor lookaround, so that no value can keep it busy without end."
    )


class RangeRule(FieldRule):
    """The value lies between two bounds, which belong to it."""

    type: Literal["range"] = Field(description="The value must lie between two bounds.")
    min: Bound | None = Field(default=None, description="The lowest value that passes: a number, a date or a time.")
    max: Bound | None = Field(default=None, description="The highest value that passes.")

    @model_validator(mode="after")
    def _in_order(self) -> RangeRule:
        low, high = self.min, self.max
        if low is None and high is None:
            raise wrong("a range needs `min`, `max` or both")
        if low is None or high is None:
            return self
        if isinstance(low, str) is not isinstance(high, str):
            raise wrong("`min` and `max` must both be numbers, or both dates")
        if place_of(low) > place_of(high):
            raise wrong(f"min is {low} and max {high}, so no value would pass", "min must not be greater than max")
        return self


class MaxLengthRule(FieldRule):
    """The text is not longer than this."""

    type: Literal["max_length", "maxLength"] = Field(description="The text must not be longer than `max`.")
    max: Whole = Field(ge=0, description="The most characters that pass.")


class MinLengthRule(FieldRule):
    """The text is not shorter than this."""

    type: Literal["min_length", "minLength"] = Field(description="The text must not be shorter than `min`.")
    min: Whole = Field(ge=0, description="The fewest characters that pass.")


class OneOfRule(FieldRule):
    """The value is one of a list."""

    type: Literal["one_of", "oneOf"] = Field(description="The value must be one of `values`.")
    values: Annotated[tuple[PlainValue, ...], Field(min_length=1)] = Field(description="The values that pass.")


class FieldTypeRule(FieldRule):
    """The value can be read as a type."""

    type: Literal["field_type", "fieldType"] = Field(description="The value must be readable as a type.")
    expected: FieldTypeName = Field(description="The type.")


class CompareRule(FieldRule):
    """Two fields of the row are as they should be to one another."""

    type: Literal["compare"] = Field(description="The value must compare to another field of its row.")
    op: Comparison = Field(description="What holds between `field` and `other`.")
    other: Text = Field(description="The column that `field` is compared to.")


class ExpressionRule(Rule):
    """An expression over the row is true, or NULL."""

    type: Literal["expression"] = Field(description="A condition over the row's columns must not be false.")
    expression: Expression = Field(
        examples=["l_shipdate <= l_receiptdate AND upper(status) IN ('A', 'B')"],
        description="In Spark's SQL: columns, values, operators, CASE, CAST and harmless functions of the row alone. "
        "A row for which it cannot be computed (a division by zero, a text that is no number) breaks the rule. "
        "Give the rule an `id`: without one it is another rule when its text changes.",
    )


class UniqueRule(Rule):
    """No other row of the load has the same values."""

    type: Literal["unique_within_load", "uniqueWithinLoad"] = Field(
        description="No other row of the same load may have the value, or the values of all the fields."
    )
    field: Text | None = Field(default=None, description="The column.")
    fields: ColumnNames | None = Field(default=None, description="The columns, instead of `field`.")

    @model_validator(mode="after")
    def _about_something(self) -> UniqueRule:
        if (self.field is None) is (self.fields is None):
            raise wrong("the rule needs either `field` or `fields`", "name the column, or all columns, that are unique")
        return self


RowRule = Annotated[
    NotNullRule
    | RegexRule
    | RangeRule
    | MaxLengthRule
    | MinLengthRule
    | OneOfRule
    | FieldTypeRule
    | CompareRule
    | ExpressionRule
    | UniqueRule,
    Field(discriminator="type"),
]


RowRules = tuple[RowRule, ...]

_KINDS: Mapping[type[Rule], str] = {
    NotNullRule: "not_null", RegexRule: "regex", RangeRule: "range", MaxLengthRule: "max_length",
    MinLengthRule: "min_length", OneOfRule: "one_of", FieldTypeRule: "field_type", CompareRule: "compare",
    ExpressionRule: "expression", UniqueRule: "unique_within_load",
}  # fmt: skip


def kind_of(rule: Rule) -> str:
    """In snake_case, however it is written."""
    return _KINDS[type(rule)]


def fields_of(rule: RowRule) -> tuple[str, ...]:
    """The columns that it looks at."""
    match rule:
        case CompareRule():
            return rule.field, rule.other
        case ExpressionRule():
            from hakiri_dagster.expressions.reading import read_expression
            from hakiri_dagster.expressions.tree import columns_of

            return columns_of(read_expression(rule.expression))
        case UniqueRule(field=field, fields=fields):
            return fields or ((field,) if field else ())
        case _:
            return (rule.field,)


def id_of(rule: RowRule) -> str:
    """Says nothing of the rule's bounds, so that its history goes on when they are changed. Of an expression there is
    nothing else to say: in other words it is another rule, unless it has an `id`."""
    if rule.id is not None:
        return rule.id
    if isinstance(rule, ExpressionRule):
        return f"{kind_of(rule)}_{digest_of(rule.expression)}"
    return id_from(kind_of(rule), *(fields_of(rule) if isinstance(rule, UniqueRule) else [rule.field]))
