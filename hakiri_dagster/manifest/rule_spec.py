"""`validate.row_level`: what each row must be, and what becomes of one that is not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hakiri_dagster.manifest.check_ids import CheckId, id_from
from hakiri_dagster.manifest.field_types import Flag, Model, Number, Text, Whole, quoted, wrong

RowOnFail = Literal["abort", "warn", "skip"]
FieldTypeName = Literal["string", "integer", "float", "boolean", "date", "timestamp", "json", "uuid"]
Comparison = Literal["<", "<=", "=", "!=", ">=", ">"]


def _bound(value: Any) -> Any:
    """Numbers keep their digits; a date or a time is written as text."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise wrong(
                f"{quoted(value)} is neither a number nor a date",
                'write numbers without quotes, dates like "2024-01-31" and times like "2024-01-31T06:00:00Z"',
            ) from None
    return value


Bound = Annotated[Whole | Number | Text, BeforeValidator(_bound)]
PlainValue = Whole | Number | Flag | Text


class Rule(Model):
    """What all row rules have in common."""

    id: CheckId | None = Field(
        default=None,
        description="Names the rule's asset check and its rows in quarantine. Default: its type and its field.",
    )
    field: Text = Field(description="The column.")
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


class NotNullRule(Rule):
    """The value is there."""

    type: Literal["not_null", "notNull"] = Field(description="The value must not be NULL.")


def _pattern(value: Any) -> Any:
    """Whoever uses it judges it: RE2, as Arrow has it, which takes a moment to import."""
    if isinstance(value, str) and value:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            pc.match_substring_regex(pa.array([""]), value)
        except pa.ArrowInvalid as error:
            raise wrong(
                f"{quoted(value)} is not a pattern: {str(error).removeprefix('Invalid regular expression: ')}",
                "patterns are RE2's: no backreferences, no lookaround, so that none can backtrack without end",
            ) from None
    return value


Pattern = Annotated[Text, BeforeValidator(_pattern)]


class RegexRule(Rule):
    """The value matches a pattern."""

    type: Literal["regex"] = Field(description="The value must match a pattern.")
    pattern: Pattern = Field(
        description="A regular expression in RE2's syntax, found anywhere in the value. It has neither backreferences "
        "nor lookaround, so that no value can keep it busy without end."
    )


class RangeRule(Rule):
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


class MaxLengthRule(Rule):
    """The text is not longer than this."""

    type: Literal["max_length", "maxLength"] = Field(description="The text must not be longer than `max`.")
    max: Whole = Field(ge=0, description="The most characters that pass.")


class MinLengthRule(Rule):
    """The text is not shorter than this."""

    type: Literal["min_length", "minLength"] = Field(description="The text must not be shorter than `min`.")
    min: Whole = Field(ge=0, description="The fewest characters that pass.")


class OneOfRule(Rule):
    """The value is one of a list."""

    type: Literal["one_of", "oneOf"] = Field(description="The value must be one of `values`.")
    values: Annotated[tuple[PlainValue, ...], Field(min_length=1)] = Field(description="The values that pass.")


class FieldTypeRule(Rule):
    """The value can be read as a type."""

    type: Literal["field_type", "fieldType"] = Field(description="The value must be readable as a type.")
    expected: FieldTypeName = Field(description="The type.")


class CompareRule(Rule):
    """Two fields of the row are as they should be to one another."""

    type: Literal["compare"] = Field(description="The value must compare to another field of its row.")
    op: Comparison = Field(description="What holds between `field` and `other`.")
    other: Text = Field(description="The column that `field` is compared to.")


RowRule = Annotated[
    NotNullRule | RegexRule | RangeRule | MaxLengthRule | MinLengthRule | OneOfRule | FieldTypeRule | CompareRule,
    Field(discriminator="type"),
]


def _told_apart(rules: tuple[RowRule, ...]) -> tuple[RowRule, ...]:
    seen: set[str] = set()
    for rule in rules:
        name = id_of(rule)
        if name in seen:
            raise wrong(f"two rules have the id {quoted(name)}", "give one of them an `id` of its own")
        seen.add(name)
    return rules


RowRules = Annotated[tuple[RowRule, ...], AfterValidator(_told_apart)]

_KINDS: Mapping[type[Rule], str] = {
    NotNullRule: "not_null", RegexRule: "regex", RangeRule: "range", MaxLengthRule: "max_length",
    MinLengthRule: "min_length", OneOfRule: "one_of", FieldTypeRule: "field_type", CompareRule: "compare",
}  # fmt: skip


def kind_of(rule: Rule) -> str:
    """In snake_case, however it is written."""
    return _KINDS[type(rule)]


def id_of(rule: Rule) -> str:
    """Says nothing of the rule's bounds, so that its history goes on when they are changed."""
    if rule.id is not None:
        return rule.id
    return id_from(kind_of(rule), rule.field)


def moment_of(bound: str) -> datetime:
    """Without a zone it is UTC, as everywhere."""
    moment = datetime.fromisoformat(bound)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def place_of(bound: float | str) -> Any:
    """Of bounds of one kind, as they are ordered."""
    return moment_of(bound) if isinstance(bound, str) else bound
