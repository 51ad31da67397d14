"""What validators ask of rows, as values, and what they are answered. Who asks does not matter: the workers while they
stage rows, or a destination of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np

from hakiri_dagster.manifest.rule_spec import FieldTypeName
from hakiri_dagster.manifest.rule_values import PlainValue
from hakiri_dagster.quality.comparable import microseconds_since_1970


@dataclass(frozen=True, slots=True)
class Rows:
    """How many there are."""


@dataclass(frozen=True, slots=True)
class Nulls:
    """How many have no value in the column."""

    column: str


@dataclass(frozen=True, slots=True)
class Lowest:
    """NaN only if there is nothing else; infinite dates are none."""

    column: str


@dataclass(frozen=True, slots=True)
class Highest:
    """NaN if there is one; infinite dates are none."""

    column: str


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of what is not NULL; NULL of nothing."""

    column: str


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many values there are. Up to `exact` the answer is, above it may be an estimate that is not below it. The
    more hashes it `keeps`, the better is the estimate; None leaves that to who counts."""

    column: str
    exact: int
    keeps: int | None = None


@dataclass(frozen=True, slots=True)
class Strangers:
    """Values that are none of these, NULL apart."""

    column: str
    values: tuple[PlainValue, ...]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Rows that share the columns with others. One with a NULL in them shares nothing."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Orphans:
    """Rows whose value does not occur in another table. `schema` is None for the target's own."""

    column: str
    schema: str | None
    table: str
    ref_column: str


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """The target's columns beside those named, and those named that it has not or of another type."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """One SELECT that was judged to be harmless. `{table}` in it are the rows that are asked."""

    statement: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Digest:
    """A checksum of the rows' values that does not depend on their order. `portable`: of texts that another engine
    writes alike, rather than of the destination's own values. Without columns: of all that can be compared."""

    columns: tuple[str, ...] | None
    portable: bool


@dataclass(frozen=True, slots=True)
class RowsSetAside:
    """Rows of the load that did not go on."""


@dataclass(frozen=True, slots=True)
class RowsAtSource:
    """How many the source holds within the bounds of the load, counted once more."""


@dataclass(frozen=True, slots=True)
class Checksums:
    """Of the load's rows and of the source's."""

    columns: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Texts:
    """How long a column's texts are, which come first and last, and what all of them can be read as."""

    column: str


@dataclass(frozen=True, slots=True)
class Frequent:
    """The values that occur, with their rows, as long as there are not more of them."""

    column: str
    most: int


ColumnMeasure = Nulls | Lowest | Highest | Total | Distinct | Strangers
InPassing = Rows | ColumnMeasure
"""One pass over the rows answers all of them, in any order and part by part."""

OfProfile = Texts | Frequent
"""Only a profile asks for them: the workers answer."""

Tallied = ColumnMeasure | OfProfile

AboutLoad = RowsSetAside | RowsAtSource | Checksums
"""Answered by whoever runs the load."""

Measure = InPassing | AboutLoad | Duplicates | Orphans | ColumnTypes | Probe | Digest
"""What validators ask."""


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A date or a time, whatever its type: microseconds since 1970 in UTC."""

    microseconds: int

    @classmethod
    def of(cls, moment: datetime) -> Instant:
        return cls(microseconds_since_1970(moment))

    def __str__(self) -> str:
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.microseconds)
        except OverflowError:
            return f"{self.microseconds} µs since 1970"
        return moment.isoformat().removesuffix("+00:00") + "Z"


class Single(float):
    """A number of 32 bits, as it is written: a tenth is 0.1, and not the number of 64 bits that is nearest to it."""

    def __new__(cls, value: float) -> Single:
        with np.errstate(over="ignore"):
            return super().__new__(cls, str(np.float32(value)))


FEW = 3
SHOWN_CHARACTERS = 60
"""Of each of the few values that are told."""


@dataclass(frozen=True, slots=True)
class Violations:
    """How many rows are in the way of what was asked, and a few of their values."""

    rows: int
    few: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join(self.few)


@dataclass(frozen=True, slots=True)
class TextsFound:
    """Lengths in characters. `first` and `last` by code points, cut where they are long."""

    shortest: int
    longest: int
    first: str
    last: str
    readable_as: frozenset[FieldTypeName]


@dataclass(frozen=True, slots=True)
class ValuesFound:
    """None: there are more than were asked for, or such as are too long to be listed."""

    rows: tuple[tuple[PlainValue | Decimal, int], ...] | None


@dataclass(frozen=True, slots=True)
class ColumnsFound:
    """Names with the types that were found; None: the target has no such column. `others`: what was not named."""

    differing: tuple[tuple[str, str | None], ...]
    others: tuple[str, ...]


Form = str
"""How a column's values go into a checksum: a type to cast to, or of a portable one the kind of its texts."""


@dataclass(frozen=True, slots=True)
class Digested:
    """`forms` by column; `left_out` are columns that cannot be compared."""

    value: int
    forms: tuple[tuple[str, Form], ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """Two checksums of the same columns."""

    here: int
    at_source: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no answer; a validator that asked it does not pass."""

    reason: str


Answer = (
    int | float | Decimal | Instant | Violations | TextsFound | ValuesFound | ColumnsFound | Digested | Compared
    | Unanswered | None
)  # fmt: skip
Answers = Mapping[Measure, Answer]
AnswersInPassing = Mapping[Tallied, Answer]
