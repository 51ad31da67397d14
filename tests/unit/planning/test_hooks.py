from __future__ import annotations

from pydantic import TypeAdapter

from hakiri_dagster.manifest.hook_spec import Hook, Hooks
from hakiri_dagster.planning.hooks import NamedHook, named, to_run

HOOKS: TypeAdapter[tuple[Hook, ...]] = TypeAdapter(Hooks)


def hooks(*written: dict[str, object] | str) -> tuple[NamedHook, ...]:
    """A text is the statement of a `sql` hook."""
    said = [{"type": "sql", "statement": hook} if isinstance(hook, str) else hook for hook in written]
    return named(HOOKS.validate_python(said))


def webhook(url: str, **more: object) -> dict[str, object]:
    return {"type": "webhook", "url": url} | more


def keys(*written: dict[str, object] | str) -> list[str]:
    return [hook.name.key for hook in hooks(*written)]


def test_a_hook_stays_the_same_in_another_place() -> None:
    assert keys("ANALYZE a", "VACUUM")[::-1] == keys("VACUUM", "ANALYZE a")


def test_the_same_hook_twice_is_two_hooks() -> None:
    first, second, other = keys("ANALYZE a", "ANALYZE a", "ANALYZE b")
    assert len({first, second, other}) == 3
    assert keys("ANALYZE a") == [first]


def test_a_webhook_stays_the_same_with_another_token_secret_and_consequence() -> None:
    (one,) = keys(webhook("https://a.example.com/token-1"))
    (other,) = keys(webhook("https://a.example.com/token-2?x", secret="s" * 16, on_error="warn", timeout_seconds=3.0))
    assert one == other
    assert keys(webhook("https://b.example.com/token-1")) != [one]


def test_the_name_of_a_webhook_shows_neither_path_nor_query() -> None:
    (hook,) = hooks(webhook("https://a.example.com:8443/t0ken?key=s3cret"))
    assert hook.name.text == "webhook https://a.example.com:8443"


def test_a_long_statement_is_shown_in_one_short_line() -> None:
    (hook,) = hooks("ANALYZE\n  " + ", ".join(f"table_{number}" for number in range(100)))
    assert len(hook.name.text) == 80
    assert hook.name.text.startswith("sql ANALYZE table_0, ")
    assert hook.name.text.endswith("…")


def test_what_a_hook_needs_set_before_it_is_run_with_it_and_nothing_else() -> None:
    declared = hooks("SET work_mem = '1GB'", "ANALYZE a", "SET jit = off", "ANALYZE b", "SET geqo = off", "ANALYZE c")
    owed = [declared[3].name.key]
    assert [hook.name.text for hook in to_run(declared, owed)] == [
        "sql SET work_mem = '1GB'",
        "sql SET jit = off",
        "sql ANALYZE b",
    ]
    assert list(to_run(declared, [])) == []
