"""The functions that an expression may call: harmless, the same at each try, of bounded size and time.

Left out on purpose: all that reflects into Java, reads files, sleeps, draws lots or asks the clock or the session; all
that makes more of a value than was there (`repeat`, `lpad`, `space`, `sequence`); Java's regular expressions, which one
value can keep busy for ever; formats and patterns of dates, which fail in ways of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakiri_dagster.expressions.tree import Kind

Kinds = frozenset[Kind]

TEXT: Kinds = frozenset({"text"})
INTEGER: Kinds = frozenset({"integer"})
WHOLE: Kinds = frozenset({"integer", "long"})
NUMBER: Kinds = frozenset({"integer", "long", "decimal", "float"})
FLOAT: Kinds = frozenset({"float"})
DAY: Kinds = frozenset({"date", "timestamp", "timestamp_ntz"})
CLOCK: Kinds = frozenset({"timestamp", "timestamp_ntz"})
SIZED: Kinds = frozenset({"text", "bytes"})


@dataclass(frozen=True, slots=True)
class Signature:
    """`gives` None: what the first argument is. `guard`: Spark fails for values for which this does not hold of the
    first argument, and has no `try_…` of the function."""

    takes: tuple[Kinds, ...]
    gives: Kind | None
    needed: int | None = None
    guard: str | None = None

    @property
    def fewest(self) -> int:
        return len(self.takes) if self.needed is None else self.needed


_FOUR_DIGITS = "year({}) BETWEEN 1 AND 9999"

PLAIN: Mapping[str, Signature] = {
    **dict.fromkeys(("upper", "lower", "ucase", "lcase", "trim", "ltrim", "rtrim", "reverse", "initcap"),
                    Signature((TEXT,), "text")),
    "btrim": Signature((TEXT, TEXT), "text", needed=1),
    "substring": Signature((TEXT, INTEGER, INTEGER), "text", needed=2),
    "substr": Signature((TEXT, INTEGER, INTEGER), "text", needed=2),
    "left": Signature((TEXT, INTEGER), "text"),
    "right": Signature((TEXT, INTEGER), "text"),
    "translate": Signature((TEXT, TEXT, TEXT), "text"),
    "replace": Signature((TEXT, TEXT, TEXT), "text"),
    **dict.fromkeys(("length", "len", "octet_length", "bit_length"), Signature((SIZED,), "integer")),
    **dict.fromkeys(("char_length", "character_length", "ascii"), Signature((TEXT,), "integer")),
    "instr": Signature((TEXT, TEXT), "integer"),
    "locate": Signature((TEXT, TEXT, INTEGER), "integer", needed=2),
    "position": Signature((TEXT, TEXT, INTEGER), "integer", needed=2),
    **dict.fromkeys(("startswith", "endswith", "contains"), Signature((TEXT, TEXT), "boolean")),
    **dict.fromkeys(("sign", "signum", "sqrt", "cbrt", "exp", "ln", "log2", "log10"), Signature((NUMBER,), "float")),
    **dict.fromkeys(("power", "pow"), Signature((NUMBER, NUMBER), "float")),
    "round": Signature((NUMBER, INTEGER), None, needed=1),
    "isnan": Signature((FLOAT,), "boolean"),
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
                     "weekofyear"),
                    Signature((DAY,), "integer")),
    **dict.fromkeys(("hour", "minute", "second"), Signature((CLOCK,), "integer")),
    **dict.fromkeys(("datediff", "date_diff"), Signature((DAY, DAY), "integer")),
    **dict.fromkeys(("date_add", "dateadd", "date_sub", "add_months"),
                    Signature((DAY, INTEGER), "date", guard=_FOUR_DIGITS)),
    "last_day": Signature((DAY,), "date", guard=_FOUR_DIGITS),
}  # fmt: skip
"""Whose arguments are each of a kind of their own."""

ROUNDED = frozenset({"floor", "ceil", "ceiling"})
FITS_A_LONG = "abs({}) < 9.2E18D"
"""Beyond it Spark fails to round a float; so it does for NaN, which is greater than anything."""

ALIKE: Mapping[str, tuple[int, int | None]] = {
    "coalesce": (1, None), "ifnull": (2, 2), "nvl": (2, 2), "nullif": (2, 2), "greatest": (2, None), "least": (2, None),
    "if": (3, 3), "nvl2": (3, 3), "concat": (1, None), "mod": (2, 2), "abs": (1, 1),
    "isnull": (1, 1), "isnotnull": (1, 1), "floor": (1, 1), "ceil": (1, 1), "ceiling": (1, 1),
}  # fmt: skip
"""The others, with the fewest and the most of their arguments."""


def arity(function: str) -> tuple[int, int | None] | None:
    """None: there is no such function."""
    if function in ALIKE:
        return ALIKE[function]
    signature = PLAIN.get(function)
    return None if signature is None else (signature.fewest, len(signature.takes))
