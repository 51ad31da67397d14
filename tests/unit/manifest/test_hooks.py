"""Whatever is hostile about a hook is told by `validate`, at its own place, without running anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from hakiri_dagster.manifest.hook_spec import SqlHook, WebhookHook
from hakiri_dagster.security import secrets
from hakiri_dagster.security.secrets import redact
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import files_pipeline, postgres_pipeline
from tests.unit.security import test_sql_guard, test_url_guard


def _can_be_written(text: str) -> bool:
    """Nothing at all, NUL and half a surrogate pair are refused as texts, whatever they are in."""
    return text != "" and "\0" not in text and text.encode(errors="ignore").decode() == text


STATEMENTS = [text for texts in test_sql_guard.HOSTILE.values() for text in texts if _can_be_written(text)]
URLS = [url for urls in test_url_guard.HOSTILE.values() for url in urls if _can_be_written(url)]
SECRET = "a-secret-of-some-length"


def in_toml(hooks: list[dict[str, str]]) -> tuple[str, str]:
    """One hook a line, from the fourth on."""
    lines = [f"  {_inline(hook)}," for hook in hooks]
    return "shop.toml", files_pipeline(more="\n".join(["load.post_hook = [", *lines, "]"]))


def _inline(hook: dict[str, str]) -> str:
    table = tomlkit.inline_table()
    table.update(hook)
    return table.as_string()


def in_json(hooks: list[dict[str, str]]) -> tuple[str, str]:
    lines = ",\n".join(json.dumps(hook) for hook in hooks)
    source = '"source": {"connector": "files", "config": {"path": "data"}}'
    return "shop.json", f'{{"id": "shop", {source},\n"tables": ["orders"],\n\n"postHook": [\n{lines}\n]}}'


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_secrets", frozenset())
    monkeypatch.setattr(secrets, "_pattern", None)


both = pytest.mark.parametrize("written", [in_toml, in_json], ids=["toml", "json"])
Written = Callable[[list[dict[str, str]]], tuple[str, str]]


@both
def test_each_hostile_statement_is_told_at_its_own_line(read: Read, written: Written) -> None:
    name, text = written([{"type": "sql", "statement": statement} for statement in STATEMENTS])
    reading = read(None, {name: text})
    assert reading.project is None
    assert len({problem.line for problem in reading.problems}) == len(reading.problems) == len(STATEMENTS) >= 80
    for problem in reading.problems:
        assert problem.file == f"manifests/pipelines/{name}"
        assert problem.pipeline_id == "shop"
        assert problem.message.startswith("the hook's SQL is refused: ")
        assert problem.hint
        written_there = text.split("\n")[problem.line - 1][: problem.column - 1]
        assert written_there.rstrip(' "=:').endswith("statement")


@both
def test_each_hostile_url_is_told_at_its_own_line_and_is_not_shown(read: Read, written: Written) -> None:
    name, text = written([{"type": "webhook", "url": url} for url in URLS])
    problems = read(None, {name: text}).problems
    assert len({problem.line for problem in problems}) == len(problems) == len(URLS) >= 60
    for problem, url in zip(problems, URLS, strict=True):
        assert problem.message.startswith("the webhook is refused: ")
        assert len(url) <= len("https://") or url not in f"{problem.message}{problem.hint}"


@both
def test_what_is_good_is_taken(read: Read, written: Written) -> None:
    statements = [{"type": "sql", "statement": text} for text in test_sql_guard.GOOD]
    urls = [{"type": "webhook", "url": url} for url, *_ in test_url_guard.GOOD]
    assert len(statements) + len(urls) >= 30
    name, text = written([*statements, *urls, {"type": "refresh_mat_view", "view": "raw.Täglich 1"}])
    assert read(None, {name: text}).problems == ()


@pytest.mark.parametrize(
    "view",
    [
        "daily",
        "a.b.c",
        ".daily",
        "raw.",
        'raw."daily"',
        "raw.daily; DROP TABLE x",
        "raw.daily -- x",
        "raw.daily/*",
        "raw. daily",
        "raw.da\nily",
        "raw.f()",
        "raw." + "x" * 64,
    ],
)
def test_a_view_is_one_name_in_one_schema(read: Read, view: str) -> None:
    name, text = in_json([{"type": "refresh_mat_view", "view": view}])
    (problem,) = read(None, {name: text}).problems
    assert "is not the name of a view" in problem.message


def test_a_hook_may_stand_alone_or_in_a_list_under_load_or_by_its_flat_name_on_a_table_too(read: Read) -> None:
    text = """\
id = "shop"
source = { connector = "files", config = { path = "data" } }
preHook = { type = "sql", statement = "DROP TABLE a" }
[[tables]]
name = "a"
load = { postHook = [{ type = "sql", statement = "ANALYZE" }, { type = "webhook", url = "http://a.example.com" }] }
[[tables]]
name = "b"
post_hook = { type = "refresh_mat_view", view = "x" }
"""
    problems = read(None, {"shop.toml": text}).problems
    assert [(p.line, p.column) for p in problems] == [(3, 39), (6, 89), (9, 49)]


def test_a_url_is_judged_after_its_variables_are_filled_in_and_not_shown(read: Read) -> None:
    text = files_pipeline(more='load.post_hook = { type = "webhook", url = "${TARGET}/x" }\n')
    assert read(None, {"shop.toml": text}, {"TARGET": "https://hooks.example.com"}).problems == ()
    (problem,) = read(None, {"shop.toml": text}, {"TARGET": "https://169.254.169.254/t0ken-of-mine"}).problems
    assert (problem.line, problem.column) == (4, 44)
    assert "169.254" not in f"{problem.message}{problem.hint}"
    (unset,) = read(None, {"shop.toml": text}).problems
    assert unset.message == "the environment variable `TARGET` is not set"


def test_a_variable_of_a_webhook_of_a_table_is_filled_in(load: Load) -> None:
    hook = '{ type = "webhook", url = "https://${HOST}/x", secret = "${KEY}" }'
    text = postgres_pipeline(f'[{{ name = "orders", load = {{ preHook = [{hook}] }} }}]')
    table = load(None, {"shop.toml": text}, {"HOST": "hooks.example.com", "KEY": SECRET}).tables[0]
    assert table.load.pre_hook is not None
    (hook,) = table.load.pre_hook
    assert isinstance(hook, WebhookHook)
    assert (hook.url, hook.secret, hook.on_error, hook.timeout_seconds) == (
        "https://hooks.example.com/x",
        SECRET,
        "fail",
        10,
    )


def test_url_and_secret_are_redacted_from_now_on_and_no_repr_shows_them(load: Load) -> None:
    hook = '{ type = "webhook", url = "https://hooks.example.com/${TOKEN}", secret = "${KEY}" }'
    env = {"TOKEN": "t0ken-in-a-path", "KEY": "key-0123456789abcdef"}
    project = load(None, {"shop.toml": files_pipeline(more=f"load.post_hook = {hook}\n")}, env)
    told = "https://hooks.example.com/t0ken-in-a-path signed with key-0123456789abcdef, by t0ken-in-a-path"
    assert redact(told) == "*** signed with ***, by ***"
    assert "t0ken" not in repr(project)
    assert "0123456789abcdef" not in repr(project)


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (SECRET, "not written into a manifest"),
        ("x${KEY}", "not written into a manifest"),
        ("$${KEY}-and-some-more", "not written into a manifest"),
        ("${SHORT}", "shorter than 16"),
        ("${UNSET}", "is not set"),
    ],
)
def test_a_secret_is_a_variable_and_nothing_else(read: Read, secret: str, message: str) -> None:
    hook = f'{{ type = "webhook", url = "https://a.example.com", secret = "{secret}" }}'
    text = files_pipeline(more=f"load.post_hook = {hook}\n")
    (problem,) = read(None, {"shop.toml": text}, {"KEY": SECRET, "SHORT": "short-one"}).problems
    assert message in problem.message
    assert problem.line == 4
    assert SECRET not in f"{problem.message}{problem.hint}"
    assert "short-one" not in f"{problem.message}{problem.hint}"


def test_only_the_operator_allows_the_machine_itself(read: Read) -> None:
    text = files_pipeline(more='load.post_hook = { type = "webhook", url = "http://127.0.0.1:8080/x" }\n')
    assert len(read(None, {"shop.toml": text}).problems) == 1
    assert read(None, {"shop.toml": text}, {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}).problems == ()
    (problem,) = read(None, {"shop.toml": text.replace("127.0.0.1", "10.0.0.1")}).problems
    assert "not https" in problem.message or "not for everybody" in problem.message


@pytest.mark.parametrize("wrong", ["timeout_seconds = 61", "timeout_seconds = 0", 'on_error = "ignore"', "retries = 9"])
def test_what_else_a_hook_says_is_checked_as_well(read: Read, wrong: str) -> None:
    hook = f'{{ type = "webhook", url = "https://a.example.com", {wrong} }}'
    (problem,) = read(None, {"shop.toml": files_pipeline(more=f"load.post_hook = {hook}\n")}).problems
    assert problem.line == 4


def test_a_table_has_hooks_of_its_own_or_those_of_its_pipeline(load: Load) -> None:
    text = """\
id = "shop"
source = { connector = "files", config = { path = "data" } }
load = { pre_hook = { type = "sql", statement = "ANALYZE a" } }
tables = ["a", { name = "b", load = { pre_hook = [] } }]
"""
    a, b = load(None, {"shop.toml": text}).tables
    assert a.load.pre_hook == (SqlHook(type="sql", statement="ANALYZE a"),)
    assert b.load.pre_hook == ()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a package that registers functions where Python finds it."""

    def package(name: str, **functions: str) -> None:
        folder = tmp_path / "packages" / name
        inside = folder / f"{name}-1.0.dist-info"
        inside.mkdir(parents=True)
        (inside / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{key} = {value}" for key, value in functions.items()]
        (inside / "entry_points.txt").write_text("\n".join(["[hakiri_dagster.hooks]", *lines, ""]))
        monkeypatch.syspath_prepend(str(folder))

    return package


def with_function(name: str) -> dict[str, str]:
    hook = f'{{ type = "custom_function", function = "{name}" }}'
    return {"shop.toml": files_pipeline(more=f"load.post_hook = {hook}\n")}


def test_an_unknown_function_is_told_with_those_that_are_registered(read: Read, install: Callable[..., Any]) -> None:
    (nobody,) = read(None, with_function("tell")).problems
    assert nobody.message == "no function `tell` is registered for hooks"
    assert nobody.hint == "none is registered; a package does so by an entry point of `hakiri_dagster.hooks`"
    install("one", tell="one:tell", archive="one:archive")
    assert read(None, with_function("tell")).problems == ()
    (other,) = read(None, with_function("sing")).problems
    assert str(other.hint).startswith("registered are: archive, tell;")
    (near,) = read(None, with_function("archiv")).problems
    assert near.hint == "did you mean `archive`?"


def test_a_function_that_two_packages_register_is_refused(read: Read, install: Callable[..., Any]) -> None:
    install("one", tell="one:tell")
    install("two", tell="two:tell")
    (problem,) = read(None, with_function("tell")).problems
    assert problem.message == "the function `tell` is registered more than once: by one, two"


def test_a_manifest_without_hooks_is_read_without_the_parser_of_postgresql(tmp_path: Path) -> None:
    folder = tmp_path / "manifests" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "shop.toml").write_text(files_pipeline())
    program = f"""
import sys
from pathlib import Path
from hakiri_dagster.manifest.project import load_project
load_project(Path({str(tmp_path)!r}), env={{}})
print("pglast" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
