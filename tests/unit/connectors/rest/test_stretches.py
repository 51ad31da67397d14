"""A walk of so many pages, and what is written down of the page that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.connectors.rest.pagination import NextUrl, PageNumber, Pagination
from hakiri_dagster.connectors.rest.walk import Collection, Stretch, walked
from hakiri_dagster.security import secrets
from tests.unit.connectors.rest.played_api import PlayedApi

SECRETS = (("sig", "sig_of_the_table"), ("kind", "all"))


def by_url(asked: dict[str, str]) -> Any:
    """As many APIs do, it repeats in its links all that it was asked."""
    start = int(asked.get("from", 0))
    link = f"/events?from={start + 2}&sig={asked.get('sig')}&key=key_of_the_source&kind=all"
    return {"rows": [{"id": start}, {"id": start + 1}], "next": link}


def by_number(asked: dict[str, str]) -> Any:
    return {"rows": [{"id": 2 * int(asked["page"])}, {"id": 2 * int(asked["page"]) + 1}]}


def stretch(api: PlayedApi, pagination: Pagination, params: Pairs, after: str | None) -> tuple[Sequence[int], str]:
    pages = walked(api, Collection("/events", params, "rows", pagination, 100), stretch=Stretch(after, 2))
    ids: list[int] = []
    while True:
        try:
            ids += [record.value["id"] for record in next(pages)]
        except StopIteration as end:
            return ids, end.value


def test_a_token_holds_neither_credentials_nor_what_the_table_always_asks() -> None:
    api = PlayedApi(by_url)
    ids, token = stretch(api, NextUrl("next"), SECRETS, None)
    assert (ids, token) == ([0, 1, 2, 3], "/events?from=4")

    api.asked.clear()
    new = (("sig", "new_sig"), ("kind", "all"))
    assert stretch(api, NextUrl("next"), new, token) == ([4, 5, 6, 7], "/events?from=8")
    assert [asked["sig"] for asked in api.asked] == ["new_sig", "new_sig"], "what the table asks now is put back"


def by_moved_url(asked: dict[str, str]) -> Any:
    """As Django's REST framework does it."""
    offset, limit = int(asked["offset"]), int(asked["limit"])
    link = f"/events?offset={offset + limit}&limit={limit}&sig={asked['sig'].upper()}&kind=all"
    return {"rows": [{"id": offset + n} for n in range(limit)], "next": link}


def test_a_parameter_of_the_table_that_the_apis_own_link_moves_is_not_put_back_to_where_it_began() -> None:
    secrets.register(["sig_of_the_table"])
    api = PlayedApi(by_moved_url)
    params = (("offset", "0"), ("limit", "2"), *SECRETS)
    ids, token = stretch(api, NextUrl("next"), params, None)
    assert (ids, token) == ([0, 1, 2, 3], "/events?offset=4"), "a known secret stays out, however it is written"

    api.asked.clear()
    ids, token = stretch(api, NextUrl("next"), params, token)
    assert (ids, token) == ([4, 5, 6, 7], "/events?offset=8")
    assert api.asked[0] == {"offset": "4", "limit": "2", "sig": "sig_of_the_table", "kind": "all"}


def test_a_parameter_of_the_table_that_says_which_page_is_first_does_not_lead_back_to_it() -> None:
    api = PlayedApi(by_number)
    ids, token = stretch(api, PageNumber("page"), (("page", "3"), *SECRETS), None)
    assert (ids, token) == ([6, 7, 8, 9], "/events?page=5")
    again, _ = stretch(api, PageNumber("page"), (("page", "3"), *SECRETS), token)
    assert again == [10, 11, 12, 13]
