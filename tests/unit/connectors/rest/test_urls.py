from __future__ import annotations

import pytest

from hakiri_dagster.connectors.rest.client import beginning_of
from hakiri_dagster.connectors.rest.pagination import link_to_next
from hakiri_dagster.connectors.rest.urls import shown, with_params
from hakiri_dagster.manifest.api_urls import joined
from hakiri_dagster.security import secrets


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("https://a.example", "users", "https://a.example/users"),
        ("https://a.example/v2", "/users", "https://a.example/v2/users"),
        ("https://a.example/v2/", "/users/", "https://a.example/v2/users/"),
        ("https://a.example/v2", "", "https://a.example/v2"),
        ("https://a.example/v2", "/", "https://a.example/v2"),
    ],
)
def test_a_path_goes_below_the_base(base: str, path: str, expected: str) -> None:
    assert joined(base, path) == expected


@pytest.mark.parametrize(
    ("url", "params", "expected"),
    [
        ("https://a.example/x", [], "https://a.example/x"),
        ("https://a.example/x", [("a", "1 &é")], "https://a.example/x?a=1+%26%C3%A9"),
        ("https://a.example/x?t=a%2Fb&a=0&flag", [("a", "1")], "https://a.example/x?t=a%2Fb&flag&a=1"),
        ("https://a.example/x?a%5B%5D=0", [("a[]", "1"), ("a[]", "2")], "https://a.example/x?a%5B%5D=1&a%5B%5D=2"),
    ],
)
def test_parameters_take_the_place_of_those_of_the_same_name(
    url: str, params: list[tuple[str, str]], expected: str
) -> None:
    assert with_params(url, params) == expected


def test_a_url_is_shown_without_secrets_and_on_one_line() -> None:
    url = "https://a.example/x?who=me&access_token=abc&page_size=5&sig=zz&monkey=1"
    assert shown(url, ["who"]) == "https://a.example/x?who=***&access_token=***&page_size=5&sig=***&monkey=1"
    assert len(shown("https://a.example/?q=" + "x" * 5000)) <= 301


def test_a_secret_is_masked_before_a_text_is_cut() -> None:
    secrets.register(["a-secret-that-lies-at-the-cut"])
    assert "a-secret" not in shown("https://a.example/?q=" + "x" * 270 + "a-secret-that-lies-at-the-cut")
    told = beginning_of(b"x" + b" " * 1580 + b"a-secret-that-lies-at-the-cut")
    assert told == ": x ***"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], None),
        (['<https://a/x?p=2>; rel="next"'], "https://a/x?p=2"),
        (["<https://a/x?p=2>; rel=next"], "https://a/x?p=2"),
        (['<https://a/1>; rel="prev", <https://a/2>; rel="last next"'], "https://a/2"),
        (['<https://a/1>; rel="prev"', '<https://a/2>;REL="Next"'], "https://a/2"),
        (['<https://a/1?q=a,b;c>; title="x, y; rel=next"; rel="prev", <https://a/2>; rel="next"'], "https://a/2"),
        (['<https://a/1>; rel="nextish"'], None),
        (["nonsense"], None),
        (['<https://a/1>; rel="next" nonsense, <https://a/2>; rel="next"'], "https://a/2"),
        (['<https://a/1>; rel="prev"; rel=next; crossorigin'], "https://a/1"),
        (['<https://a/1>; rel, <https://a/2>; rel*=next , <https://a/3> ; rel = next ;title="'], None),
        (["<https://a/1"], None),
    ],
)
def test_the_next_page_is_found_in_links(headers: list[str], expected: str | None) -> None:
    assert link_to_next(headers) == expected


@pytest.mark.parametrize("tedious", ["<", "<>", '<x>;a="', "<x>; a" + " " * 9, "<x>;", "<x>" + ";a" * 9 + "!", "<x>,"])
def test_links_are_looked_through_once_however_many_there_are(tedious: str) -> None:
    """A look that begins anew at each of them would not end here: their number would count twice."""
    assert link_to_next([tedious * 500_000 + "!"]) is None
