"""What a call of a function comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hakiri_dagster.expressions.alike import as_one_kind, comparable, moment, named, named_one_of, wider
from hakiri_dagster.expressions.functions import FITS_A_LONG, NUMBER, PLAIN, Kinds, Signature
from hakiri_dagster.expressions.written import Judged, Misfit, attempted, either, fails_of

_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def called(function: str, given: Sequence[Judged]) -> Judged:
    signature = PLAIN.get(function)
    return _ALIKE[function](function, given) if signature is None else _plain(function, given, signature)


def _plain(function: str, given: Sequence[Judged], signature: Signature) -> Judged:
    values = [_taken(function, value, kinds) for value, kinds in zip(given, signature.takes, strict=False)]
    gives = signature.gives or values[0].kind
    sql = _call(function, values)
    if signature.guard is None:
        return Judged(gives, sql, fails_of(values))
    return attempted(gives, _guarded(signature.guard, values[0], sql), values)


def _guarded(guard: str, first: Judged, sql: str) -> str:
    return f"CASE WHEN {guard.format(first.sql)} THEN {sql} END"


def _taken(function: str, value: Judged, kinds: Kinds) -> Judged:
    if value.text is not None and "date" in kinds:
        return moment(value.text, "date")
    if value.kind not in kinds:
        raise Misfit(f"{function} takes {named_one_of(kinds)} there, and not {named(value.kind)}; write CAST(… AS …)")
    return value


def _call(function: str, values: Sequence[Judged]) -> str:
    return f"{function}({', '.join(value.sql for value in values)})"


def numbers(function: str, values: Sequence[Judged]) -> None:
    for value in values:
        _taken(function, value, NUMBER)


def arithmetic(sign: str, left: Judged, right: Judged) -> Judged:
    numbers(sign, (left, right))
    kind = wider((left.kind, right.kind))
    if sign == "/" and kind in ("integer", "long"):
        kind = "float"
    return attempted(kind, f"{_TRIED[sign]}({left.sql}, {right.sql})", (left, right))


def chosen(branches: Sequence[tuple[Judged, Judged]], otherwise: Judged, where: str = "CASE") -> Judged:
    """A branch that is not taken fails nothing."""
    for condition, _ in branches:
        if condition.kind not in ("boolean", "null"):
            raise Misfit(f"a condition of {where} is {named(condition.kind)}, and not true or false")
    values, kind = as_one_kind([*(value for _, value in branches), otherwise], where)
    whens = " ".join(
        f"WHEN {condition.sql} THEN {value.sql}" for (condition, _), value in zip(branches, values[:-1], strict=True)
    )
    return Judged(kind, f"(CASE {whens} ELSE {values[-1].sql} END)", _failing_branch(branches, values))


def _failing_branch(branches: Sequence[tuple[Judged, Judged]], values: Sequence[Judged]) -> str | None:
    """As the branches themselves are chosen. A condition that fails is NULL, so its branch is not taken."""
    *taken, otherwise = values
    if either([*(condition.fails for condition, _ in branches), *(value.fails for value in values)]) is None:
        return None
    whens: list[str] = []
    for (condition, _), value in zip(branches, taken, strict=True):
        whens.append(f"WHEN {condition.sql} THEN {value.fails or 'FALSE'}")
        if condition.fails is not None:
            whens.append(f"WHEN {condition.fails} THEN TRUE")
    return f"(CASE {' '.join(whens)} ELSE {otherwise.fails or 'FALSE'} END)"


def _first_known(function: str, given: Sequence[Judged]) -> Judged:
    """What comes after the first that is known fails nothing."""
    values, kind = as_one_kind(given, function)
    fails = [
        f"({_call('coalesce', values[:place])} IS NULL AND {value.fails})" if place else value.fails
        for place, value in enumerate(values)
        if value.fails is not None
    ]
    return Judged(kind, _call("coalesce", values), either(fails))


def _unless(function: str, given: Sequence[Judged]) -> Judged:
    left, right = comparable(given[0], given[1], function, ordered=False)
    return Judged(left.kind, _call("nullif", (left, right)), fails_of((left, right)))


def _extreme(function: str, given: Sequence[Judged]) -> Judged:
    values, kind = as_one_kind(given, function)
    comparable(values[0], values[0], function, ordered=True)
    return Judged(kind, _call(function, values), fails_of(values))


def _joined(function: str, given: Sequence[Judged]) -> Judged:
    for value in given:
        _taken(function, value, frozenset({"text"}))
    return Judged("text", _call("concat", given), fails_of(given))


def _magnitude(function: str, given: Sequence[Judged]) -> Judged:
    """The least integer of a width has none of that width."""
    numbers(function, given)
    (value,) = given
    if value.kind in ("integer", "long"):
        return Judged("decimal", f"abs(CAST({value.sql} AS DECIMAL(20, 0)))", value.fails)
    return Judged(value.kind, f"abs({value.sql})", value.fails)


def _rounded(function: str, given: Sequence[Judged]) -> Judged:
    numbers(function, given)
    (value,) = given
    sql = _call(function, given)
    if value.kind == "float":
        return attempted("long", _guarded(FITS_A_LONG, value, sql), given)
    return Judged("decimal" if value.kind == "decimal" else "long", sql, value.fails)


def known(value: Judged) -> Judged:
    return Judged("boolean", f"({value.sql} IS NOT NULL)", value.fails)


_ALIKE: Mapping[str, Callable[[str, Sequence[Judged]], Judged]] = {
    "coalesce": _first_known,
    "ifnull": _first_known,
    "nvl": _first_known,
    "nullif": _unless,
    "greatest": _extreme,
    "least": _extreme,
    "if": lambda function, given: chosen([(given[0], given[1])], given[2], function),
    "nvl2": lambda function, given: chosen([(known(given[0]), given[1])], given[2], function),
    "concat": _joined,
    "mod": lambda _, given: arithmetic("%", given[0], given[1]),
    "abs": _magnitude,
    "isnull": lambda _, given: Judged("boolean", f"({given[0].sql} IS NULL)", given[0].fails),
    "isnotnull": lambda _, given: known(given[0]),
    "floor": _rounded,
    "ceil": _rounded,
    "ceiling": _rounded,
}
