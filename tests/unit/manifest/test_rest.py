"""A REST source in a manifest: what is taken, and what is told before anything is asked of the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakiri_dagster.manifest.project import ProjectReading
from hakiri_dagster.security.secrets import redact
from tests.unit.manifest.conftest import Load, Read

BASE = "https://api.example.com/v2"
ENV = {"API_TOKEN": "t0ken-from-the-environment", "OTHER": "other-value"}


def pipeline(*tables: Any, config: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    settings = {"base_url": BASE, "pagination": {"type": "link"}} | (config or {})
    document = {
        "id": "api",
        "source": {"connector": "rest", "config": settings},
        "tables": list(tables) or ["things"],
        **more,
    }
    return {"api.json": json.dumps(document, indent=1)}


def problems(reading: ProjectReading) -> list[tuple[str, str | None]]:
    return [(problem.message, problem.hint) for problem in reading.problems]


def only_problem(read: Read, files: dict[str, str], env: dict[str, str] | None = None) -> tuple[str, str | None]:
    (problem,) = problems(read(None, files, ENV if env is None else env))
    return problem


def test_an_api_needs_no_more_than_its_url_and_how_its_pages_follow(load: Load) -> None:
    (table,) = load(None, pipeline(), ENV).tables
    assert (table.source.connector, table.path, table.cursor) == ("rest", None, None)
    assert table.source.config["timeout"] == {"connect": 10, "read": 60, "total": 300}
    assert table.endpoint["params"] == {}


def test_all_that_a_table_says_of_its_endpoint_is_kept(load: Load) -> None:
    said = {
        "name": "issues",
        "path": "/repos/a/b/issues",
        "params": {"state": "all", "per_page": 100, "labels": ["x", "y"], "full": True},
        "records": "data.items",
        "flatten": ["user"],
        "pagination": {"type": "page", "size_param": "per_page", "size": 100},
        "cursorParams": {"lower": "since", "order": "ascending"},
        "incremental": "updated_at",
    }
    (table,) = load(None, pipeline(said), ENV).tables
    assert table.path == "/repos/a/b/issues"
    assert table.endpoint["params"] == {"state": "all", "per_page": 100, "labels": ["x", "y"], "full": True}
    assert table.endpoint["cursor_params"]["format"] == "iso8601"
    assert table.endpoint["pagination"]["param"] == "page"


def test_how_pages_follow_has_to_be_said(read: Read) -> None:
    """An API's second page would be missed in silence."""
    files = {
        "api.json": json.dumps(
            {"id": "a", "source": {"connector": "rest", "config": {"base_url": BASE}}, "tables": ["t"]}
        )
    }
    message, hint = only_problem(read, files)
    assert "`pagination` is missing" in message
    assert hint is not None
    assert "how pages follow each other" in hint


@pytest.mark.parametrize(
    ("config", "told", "hint"),
    [
        ({"base_ulr": BASE}, "unknown key `base_ulr`", "did you mean `base_url`?"),
        ({"pagination": {"type": "links"}}, "`links` is not one of none, link, next_url", "did you mean `link`?"),
        ({"pagination": {"type": "cursor", "next": "a"}}, "`param` is missing", "the parameter"),
        ({"pagination": {"type": "cursor", "next": "a..b", "param": "c"}}, "`a..b` is not a dotted path", "data.items"),
        ({"auth": {"type": "baerer", "token": "${API_TOKEN}"}}, "`baerer` is not one of", "did you mean `bearer`?"),
        ({"timeout": {"total": 0}}, "must be more than 0", None),
        ({"max_body_mib": 5000}, "must be at most 1024", None),
        ({"headers": {"a b": "c"}}, "`a b` is not the name of a header", "letters"),
        ({"headers": {"Host": "x"}}, "the header `Host` is set by every request itself", "take it out"),
        ({"headers": {"X": "a\r\nb"}}, "characters that no header holds", "ASCII"),
        ({"base_url": BASE + "?a=b"}, "the URL holds a query", "params"),
        ({"base_url": "https://me:pw@api.example.com"}, "the URL holds an `@`", "auth"),
    ],
)
def test_what_is_wrong_with_the_settings_is_told(
    read: Read, config: dict[str, Any], told: str, hint: str | None
) -> None:
    message, found = problems(read(None, pipeline(config=config), ENV))[0]
    assert told in message
    assert (hint or "") in (found or "")


@pytest.mark.parametrize(
    "url",
    ["http://api.example.com", "https://127.0.0.1", "https://localhost/x", "https://169.254.169.254", "https://intranet",
     "https://10.0.0.1/", "https://[::1]/", "ftp://api.example.com", "https://0x7f.1/"],
)  # fmt: skip
def test_an_api_of_a_private_network_is_refused(read: Read, url: str) -> None:
    message, hint = only_problem(read, pipeline(config={"base_url": url}))
    assert message.startswith("the API is refused: the URL ")
    assert hint is not None
    assert "the URL of an API is https://" in hint


def test_the_machine_itself_may_be_asked_if_the_operator_says_so(load: Load) -> None:
    files = pipeline(config={"base_url": "http://127.0.0.1:8080"})
    assert load(None, files, {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}).tables


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "token": "literal"},
        {"type": "basic", "username": "me", "password": "literal"},
        {"type": "header", "name": "X-Key", "value": "literal"},
        {"type": "header", "name": "X-Key", "value": "pre-${API_TOKEN}"},
        {"type": "query", "name": "key", "value": "literal"},
    ],
)
def test_a_secret_is_not_written_into_a_manifest(read: Read, auth: dict[str, str]) -> None:
    message, hint = only_problem(read, pipeline(config={"auth": auth}))
    assert message == "a secret is not written into a manifest"
    assert hint == "write `${NAME}`, and set NAME in the environment"


def test_nor_is_it_among_the_headers(read: Read) -> None:
    headers = {"authorization": "token abc", "Accept": "application/json"}
    assert only_problem(read, pipeline(config={"headers": headers}))[0] == "a secret is not written into a manifest"


@pytest.mark.parametrize(
    ("config", "table"),
    [
        ({"auth": {"type": "bearer", "token": "${REST_A}"}}, {}),
        ({"headers": {"X-Key": "Key ${REST_A}"}}, {}),
        ({}, {"params": {"key": "${REST_A}"}}),
        ({}, {"params": {"keys": ["${REST_A}"]}}),
    ],
)
def test_what_comes_from_the_environment_is_never_shown(
    load: Load, config: dict[str, Any], table: dict[str, Any]
) -> None:
    value = f"value-{json.dumps([config, table])!r}"[:60].encode().hex()
    (found,) = load(None, pipeline({"name": "things", **table}, config=config), {"REST_A": value}).tables
    assert value in str([found.source.config, found.endpoint])
    assert value not in repr(found.source)
    assert redact(f"said {value} aloud") in ("said *** aloud", "said Key *** aloud")


def test_a_secret_that_is_not_set_is_told_at_its_place(read: Read) -> None:
    files = pipeline(config={"auth": {"type": "bearer", "token": "${NOT_SET}"}})
    assert only_problem(read, files) == (
        "the environment variable `NOT_SET` is not set",
        "set NOT_SET before you run hakiri",
    )


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("https://other.example/x", "its path is a URL of its own"),
        ("//other.example/x", "its path is a URL of its own"),
        ("/x?state=all", "its path holds a query or a fragment"),
        ("/x#y", "its path holds a query or a fragment"),
        ("/with blank", "the URL holds characters that no URL holds"),
    ],
)
def test_the_path_of_a_table_stays_below_the_base(read: Read, path: str, told: str) -> None:
    message, _ = only_problem(read, pipeline({"name": "things", "path": path}))
    assert message == f"table `things`: {told}"


@pytest.mark.parametrize("key", ["params", "records", "flatten", "pagination", "cursor_params", "cursorParams"])
def test_what_only_an_api_knows_is_refused_for_other_sources(read: Read, key: str) -> None:
    values: dict[str, Any] = {
        "params": {"a": 1}, "records": "x", "flatten": True, "pagination": {"type": "link"},
        "cursor_params": {"lower": "since"}, "cursorParams": {"lower": "since"},
    }  # fmt: skip
    document = {
        "id": "files",
        "source": {"connector": "files", "config": {"path": "data"}},
        "tables": [{"name": "t", key: values[key]}],
    }
    (problem,) = read(None, {"files.json": json.dumps(document)}).problems
    assert 'is for sources with `connector = "rest"`' in problem.message


CURSOR = {"name": "things", "incremental": "updated_at"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (CURSOR, "nothing says how the API is asked for a range of it"),
        (CURSOR | {"cursor_params": {"lower": "since"}}, "nothing says where its history begins"),
        (
            CURSOR | {"cursor_params": {"lower": "since", "order": "descending"}},
            "nothing says where its history begins",
        ),
        (
            CURSOR | {"cursor_params": {"lower": "since_id", "format": "number", "order": "ascending"}},
            "its cursor is a number, and nothing tells the highest one",
        ),
        (
            CURSOR | {"cursor_params": {"lower": "since", "order": "ascending", "restart": True}},
            "and without a key none is told apart",
        ),
    ],
)
def test_a_cursor_needs_to_be_asked_for(read: Read, table: dict[str, Any], told: str) -> None:
    message, hint = only_problem(read, pipeline(table))
    assert message.endswith(told)
    assert hint


@pytest.mark.parametrize(
    "table",
    [
        CURSOR | {"cursor_params": {"lower": "since", "order": "ascending"}},
        CURSOR | {"cursor_params": {"lower": "since"}, "backfill": {"start_from": "2024-01-01"}},
        CURSOR | {"cursor_params": {"lower": "s", "format": "number", "order": "ascending", "newest": {"d": "desc"}}},
        CURSOR | {"cursor_params": {"order": "descending", "oldest": {"order": "asc"}}},
        CURSOR | {"primary_key": ["id"], "cursor_params": {"lower": "s", "order": "ascending", "restart": True}},
        CURSOR | {"incremental": False},
        CURSOR | {"load": {"mode": "truncate"}},
    ],
)
def test_a_cursor_that_can_be_asked_for_is_taken(load: Load, table: dict[str, Any]) -> None:
    assert load(None, pipeline(table), ENV).tables


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "`lower` is missing"),
        ({"order": "ascending"}, "`lower` is missing"),
        ({"order": "descending", "upper": "until"}, "`lower` is missing"),
        ({"lower": "since", "restart": True}, "`restart` needs `lower` and an ascending order"),
        ({"order": "descending", "restart": True}, "`restart` needs `lower` and an ascending order"),
    ],
)
def test_what_asks_for_no_range_is_told(read: Read, asked: dict[str, Any], told: str) -> None:
    message, _ = only_problem(read, pipeline(CURSOR | {"cursor_params": asked}))
    assert told in message


def test_parameters_are_plain_values(read: Read) -> None:
    message, _ = only_problem(read, pipeline({"name": "things", "params": {"a": {"b": 1}}}))
    assert "must be text, a number, true or false, or a list of these" in message
