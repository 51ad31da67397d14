"""Parts of an expression that must be written out, because what they hold decides how much work they make."""

from __future__ import annotations

import math
import re
from datetime import datetime

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.tree import Call, Kind, Like, Moment, Node, Number, Text, TimeKind

_NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MOST_DIGITS = 38
_ZONE = r"Z|[+-](?:0\d|1[0-7]):[0-5]\d"
_MOMENT = re.compile(
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?P<clock>[T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,6}})?(?P<zone>{_ZONE})?)?)?"
)
_FARTHEST = 100_000
_MOST_DECIMALS = 18


def number_of(digits: str) -> Number:
    found = _NUMBER.fullmatch(digits)
    if found is None:
        raise UnsafeExpression(f"{digits} is not a number")
    if found[3] is None and sum(digit.isdigit() for digit in digits) > _MOST_DIGITS:
        raise UnsafeExpression(f"{digits} has more than {_MOST_DIGITS} digits")
    if found[3] is not None and not math.isfinite(float(digits)):
        raise UnsafeExpression(f"{digits} is beyond all numbers")
    return Number(digits)


def kind_of_number(digits: str) -> Kind:
    """What Spark takes a number for that is written so."""
    if "e" in digits.lower():
        return "float"
    if "." in digits:
        return "decimal"
    size = int(digits)
    return "integer" if -(2**31) <= size < 2**31 else "long" if -(2**63) <= size < 2**63 else "decimal"


def moment_of(text: str, kind: TimeKind) -> Moment:
    """Of those forms that every cast to the type takes, the common ones."""
    found = _MOMENT.fullmatch(text)
    fits = found is not None and not (
        (kind == "date" and found["clock"]) or (kind == "timestamp_ntz" and found["zone"])
    )
    if not fits or not _on_a_calendar(text):
        form = {"date": "2024-01-31", "timestamp": "2024-01-31 06:00:00Z", "timestamp_ntz": "2024-01-31 06:00:00"}[kind]
        raise UnsafeExpression(f"'{text}' is not a {kind}", hint=f"write it like '{form}'")
    return Moment(text, kind)


def _on_a_calendar(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def like_of(value: Node, pattern: str, escape: str | None, *, any_case: bool) -> Like:
    """Java looks for `%a%b` by going back and forth, so of such gaps there is one, or one more at the end."""
    made: list[str] = []
    marks = iter(pattern)
    for mark in marks:
        if mark == escape:
            mark = next(marks, "")
            if mark not in ("%", "_", escape):
                raise UnsafeExpression(f"in '{pattern}' {escape} stands before what needs none", hint="leave it out")
            made.append(f"\\{mark}" if mark in "%_" else mark)
        else:
            made.append(mark)
    gaps = re.sub("%+$", "", re.sub(r"\\.", "x", "".join(made))).split("%")
    if len(gaps) > 2:
        raise UnsafeExpression(
            f"LIKE '{pattern}' has more than one % before its end, and Java may look for that for ever",
            hint='a rule of `type = "regex"` takes such patterns',
        )
    return Like(value, "".join(made), any_case)


def call_of(name: str, arguments: tuple[Node, ...], fewest: int, most: int | None) -> Call:
    given = len(arguments)
    if given < fewest or (most is not None and given > most):
        wanted = str(fewest) if most == fewest else f"{fewest} or more" if most is None else f"{fewest} to {most}"
        raise UnsafeExpression(f"{name} takes {wanted} argument(s), and here it has {given}")
    match name, arguments:
        case "replace", (_, Text(old), Text(new)) if old and len(new) <= len(old):
            pass
        case "replace", _:
            raise UnsafeExpression(
                "replace takes two texts that are written out, of which the second is not the longer one",
                hint="replace(a, 'xx', 'y'); else one value could become gigabytes",
            )
        case (("date_add" | "dateadd" | "date_sub" | "add_months"), (_, days)) if not _whole(
            days, -_FARTHEST, _FARTHEST
        ):
            raise UnsafeExpression(f"the second argument of {name} is not a whole number up to {_FARTHEST}")
        case "round", (_, decimals) if not _whole(decimals, 0, _MOST_DECIMALS):
            raise UnsafeExpression(f"the second argument of round is not a whole number from 0 to {_MOST_DECIMALS}")
        case _:
            pass
    return Call(name, arguments)


def _whole(node: Node, least: int, most: int) -> bool:
    return (
        isinstance(node, Number)
        and re.fullmatch(r"-?\d+", node.digits) is not None
        and least <= int(node.digits) <= most
    )
