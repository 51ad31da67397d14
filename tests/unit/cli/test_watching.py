"""`--watch`: what has changed is told, what passes is waited for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hakiri_dagster.cli.watching import watch
from hakiri_dagster.errors import AuditError, AuditUnavailable, HakiriError


def looking(*found: str | HakiriError) -> Callable[[], str]:
    """Ends as it does for people, by Ctrl-C."""
    left = iter(found)

    def look() -> str:
        one = next(left, None)
        if one is None:
            raise KeyboardInterrupt
        if isinstance(one, HakiriError):
            raise one
        return one

    return look


def test_tells_what_has_changed_and_nothing_twice() -> None:
    shown: list[str] = []
    watch(looking("a", "a", "b", "a"), shown.append, seconds=0)
    assert shown == ["a", "b", "a"]


def test_waits_for_a_database_that_is_away_and_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    away = AuditUnavailable("the audit DB is away")
    watch(looking("a", away, away, "a", "b", away), shown.append, seconds=0)
    assert shown == ["a", "b"]
    assert capsys.readouterr().err == "error: the audit DB is away\n" * 2


def test_does_not_wait_for_what_will_not_pass() -> None:
    with pytest.raises(AuditError):
        watch(looking("a", AuditError("of a later version")), print, seconds=0)
