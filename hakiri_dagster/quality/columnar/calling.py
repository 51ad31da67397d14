"""Calls of functions, of those that Arrow computes as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.quality.columnar import moments, texts
from hakiri_dagster.quality.columnar.arithmetic import computed, magnitude, rounded
from hakiri_dagster.quality.columnar.choosing import chosen, extreme, first_known, known, unknown, unless
from hakiri_dagster.quality.columnar.comparing import with_moment
from hakiri_dagster.quality.columnar.types import DATE, INTEGER
from hakiri_dagster.quality.columnar.values import Cells, NotInArrow, Numbers, Value, attempted, failed_of

Arguments = Sequence[Value]


def called(function: str, given: Arguments) -> Value:
    known_function = FUNCTIONS.get(function)
    if known_function is None:
        raise NotInArrow(f"the function {function}")
    return known_function(given)


def _plain(work: Callable[..., Cells]) -> Callable[[Arguments], Value]:
    """Of a function that is NULL where an argument is, and never fails."""
    return lambda given: Value(work(*(value.cells for value in given)), failed_of(given))


def _of_days(work: Callable[..., Cells]) -> Callable[[Arguments], Value]:
    return lambda given: _plain(work)([with_moment(value, DATE) for value in given])


def _searched(function: str) -> Callable[[Arguments], Value]:
    return lambda given: Value(texts.searched(function, given[0].cells, given[1]), failed_of(given))


def _trimmed(function: str) -> Callable[[Arguments], Value]:
    def trimmed(given: Arguments) -> Value:
        if len(given) > 1:
            raise NotInArrow(f"{function} of other characters")
        return Value(texts.trimmed(function, given[0].cells), given[0].failed)

    return trimmed


def _cut(work: Callable[..., Cells]) -> Callable[[Arguments], Value]:
    """By places that are written out."""
    return lambda given: Value(work(given[0].cells, *map(texts.written_number, given[1:])), failed_of(given))


def _moved(to: Callable[..., Numbers]) -> Callable[[Arguments], Value]:
    def moved(given: Arguments) -> Value:
        start, *by = with_moment(given[0], DATE), *map(texts.written_number, given[1:])
        return attempted(moments.moved(start.cells, lambda days: to(days, *by)), given)

    return moved


def _is_nan(cells: Cells) -> Cells:
    return pc.fill_null(pc.is_nan(cells), False)


def _bits(cells: Cells) -> Cells:
    return pc.multiply(texts.octets(cells), pa.scalar(8, INTEGER))


FUNCTIONS: Mapping[str, Callable[[Arguments], Value]] = {
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), first_known),
    "nullif": lambda given: unless(given[0], given[1]),
    "if": lambda given: chosen([(given[0], given[1])], given[2]),
    "nvl2": lambda given: chosen([(known(given[0]), given[1])], given[2]),
    "greatest": partial(extreme, greatest=True),
    "least": partial(extreme, greatest=False),
    "isnull": lambda given: unknown(given[0]),
    "isnotnull": lambda given: known(given[0]),
    "mod": lambda given: computed("%", given[0], given[1]),
    "abs": lambda given: magnitude(given[0]),
    "floor": lambda given: rounded(given[0], up=False),
    **dict.fromkeys(("ceil", "ceiling"), lambda given: rounded(given[0], up=True)),
    "isnan": _plain(_is_nan),
    "concat": _plain(texts.joined),
    **{name: _trimmed(name) for name in texts.TRIMS},
    **{name: _searched(name) for name in texts.SEARCHES},
    **dict.fromkeys(("length", "len", "char_length", "character_length"), _plain(texts.characters)),
    "octet_length": _plain(texts.octets),
    "bit_length": _plain(_bits),
    **dict.fromkeys(("substring", "substr"), _cut(texts.substring)),
    "left": _cut(texts.first_characters),
    "right": _cut(texts.last_characters),
    **{name: _of_days(partial(moments.part, name)) for name in moments.PARTS},
    **dict.fromkeys(("datediff", "date_diff"), _of_days(moments.days_between)),
    **dict.fromkeys(("date_add", "dateadd"), _moved(lambda days, by: days + by)),
    "date_sub": _moved(lambda days, by: days - by),
    "add_months": _moved(moments.months_later),
    "last_day": _moved(moments.last_of_month),
}
