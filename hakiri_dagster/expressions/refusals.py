"""Why a part of an expression is refused, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.functions import ALIKE, PLAIN

ALLOWED = (
    "columns, values, comparisons, arithmetic, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE, CAST, and functions of "
    "texts, numbers and dates"
)
_REGEX = 'a rule of `type = "regex"` takes patterns that no value can keep busy for ever'
_GROWS = "it can make gigabytes of one value"
_CLOCK = "its result would change when a chunk is loaded again"
_SESSION = "it tells of the session, and not of the row"
_OUTSIDE = "it reaches out of the row"

_CALLS: Mapping[str, str] = {
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "regexp_extract", "regexp_extract_all", "regexp_replace",
                     "regexp_count", "regexp_instr", "regexp_substr", "split"), _REGEX),
    **dict.fromkeys(("repeat", "lpad", "rpad", "space", "sequence", "array_repeat", "format_string", "printf",
                     "concat_ws", "format_number"), _GROWS),
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "curdate", "localtimestamp",
                     "unix_timestamp", "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle",
                     "monotonically_increasing_id"), _CLOCK),
    **dict.fromkeys(("current_user", "user", "session_user", "current_database", "current_schema", "current_catalog",
                     "current_timezone", "version", "typeof", "spark_partition_id"), _SESSION),
    **dict.fromkeys(("reflect", "try_reflect", "java_method", "input_file_name", "input_file_block_start",
                     "input_file_block_length", "sleep", "load_file"), _OUTSIDE),
}  # fmt: skip

_WORDS = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp", "current_user", "user",
                    "session_user"})  # fmt: skip

_NODES: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Alias: ("it gives a name", "leave AS out"),
    exp.Subquery: ("it holds a subquery", "an expression is about one row"),
    exp.Select: ("it holds a subquery", "an expression is about one row"),
    exp.Exists: ("it holds a subquery", "an expression is about one row"),
    exp.Window: ("it looks at other rows", "an expression is about one row"),
    exp.Distinct: ("it looks at other rows", "an expression is about one row"),
    exp.RegexpLike: ("RLIKE is not allowed", _REGEX),
    exp.Lambda: ("it holds a lambda", ALLOWED),
    exp.IntDiv: ("DIV is not allowed", "write floor(a / b)"),
    exp.Concat: ("two texts stand next to one another", "write a quote within a text twice: 'it''s'; or use ||"),
    exp.Interval: ("it holds an interval", "write date_add(day, 7), date_sub or add_months"),
    exp.Placeholder: ("it holds a parameter", "nothing is filled in; write the value"),
    exp.Parameter: ("it holds a parameter", "nothing is filled in; write the value"),
    exp.Star: ("* is not a column", "name the columns"),
    exp.Dot: ("it looks into a struct", "only columns can be named"),
    exp.Bracket: ("it looks into a list or a map", "only columns can be named"),
    exp.JSONExtract: ("it looks into JSON, or holds a lambda", ALLOWED),
}


def refusal_of_node(found: exp.Expr) -> UnsafeExpression:
    if isinstance(found, exp.In):
        return UnsafeExpression(
            "IN has no list", hint="write the values: IN ('A', 'B'); an expression is about one row"
        )
    what, hint = _NODES.get(type(found), (f"{_shown(found)} is not allowed", ALLOWED))
    return UnsafeExpression(what, hint=hint)


def _shown(found: exp.Expr) -> str:
    text = found.sql("spark")
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"


def refusal_of_call(name: str) -> UnsafeExpression:
    if not name:
        return UnsafeExpression("a function is called in a way that is not allowed", hint=ALLOWED)
    why = _CALLS.get(name.lower(), f"these are allowed: {', '.join(sorted((*PLAIN, *ALIKE)))}")
    return UnsafeExpression(f"the function {name[:60]} is not allowed", hint=why)


def refuse_word(name: str) -> None:
    """Spark takes these for functions; a column of that name stands in backticks."""
    if name.lower() in _WORDS:
        raise UnsafeExpression(
            f"{name} is not allowed: {_CALLS[name.lower()]}", hint=f"a column of that name is written `{name}`"
        )
