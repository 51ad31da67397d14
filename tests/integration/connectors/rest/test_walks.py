"""Walks over the pages of an API that is played by a real server: every way of pagination, and what can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Credentials, Pairs, Patience
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.orders import Ascending, Descending, Order
from hakiri_dagster.connectors.rest.pagination import (
    BodyCursor,
    LastRecord,
    LinkHeader,
    NextUrl,
    Offset,
    OnePage,
    PageNumber,
    Pagination,
)
from hakiri_dagster.connectors.rest.walk import Collection, walked
from hakiri_dagster.errors import HakiriError, SourceError
from tests.integration.connectors.rest.api_server import Answer, ApiServer, Asked, Said, said, serving

ROWS = [{"id": n} for n in range(7)]
SIZE = 3


def paged(rows: list[dict[str, Any]], start: int) -> list[dict[str, Any]]:
    return rows[start : start + SIZE]


def collection(pagination: Pagination, *, records: str | None = None, has_key: bool = False, **more: Any) -> Collection:
    return Collection("/things", more.get("params", ()), records, pagination, more.get("most_pages", 100), has_key)


def ids(api: ApiServer, asked: Collection, order: Order | None = None, **settings: Any) -> list[Any]:
    client = Client(Api(api.url, patience=Patience(retries=0), **settings), Network(allow_loopback=True))
    try:
        return [record.value["id"] for page in walked(client, asked, order=order) for record in page]
    finally:
        client.close()


def refusal(answer: Answer, asked: Collection, order: Order | None = None) -> HakiriError:
    with serving(answer) as api, pytest.raises(HakiriError) as raised:
        ids(api, asked, order)
    return raised.value


def by_link(asked: Asked) -> Said:
    start = int(asked.params.get("from", 0))
    more = start + SIZE < len(ROWS)
    links = f'</things?from=0>; rel="first", </things?x=a,b&from={start + SIZE}>; title="the; next, one"; rel="next"'
    return said(paged(ROWS, start), Link=links if more else '</things?from=0>; rel="first"')


def by_number(asked: Asked) -> Said:
    return said({"rows": paged(ROWS, (int(asked.params["page"]) - 1) * SIZE), "pages": 3})


def by_offset(asked: Asked) -> Said:
    return said({"rows": paged(ROWS, int(asked.params["skip"])), "total": len(ROWS)})


def by_token(asked: Asked) -> Said:
    start = int(asked.params.get("token", "t0")[1:])
    more = start + SIZE < len(ROWS)
    body = {"rows": paged(ROWS, start), "meta": {"next": f"t{start + SIZE}" if more else None, "more": more}}
    return said(body)


def by_url(asked: Asked) -> Said:
    start = int(asked.params.get("from", 0))
    more = start + SIZE < len(ROWS)
    return said({"rows": paged(ROWS, start), "links": {"next": f"things?from={start + SIZE}" if more else ""}})


@pytest.mark.parametrize(
    ("answer", "pagination", "records", "requests"),
    [
        (by_link, LinkHeader(), None, 3),
        (by_number, PageNumber("page"), "rows", 4),
        (by_number, PageNumber("page", total="pages"), "rows", 3),
        (by_offset, Offset("skip", size=(("limit", "3"),)), "rows", 4),
        (by_offset, Offset("skip", total="total"), "rows", 3),
        (by_token, BodyCursor("meta.next", "token"), "rows", 3),
        (by_token, BodyCursor("meta.next", "token", more="meta.more"), "rows", 3),
        (by_url, NextUrl("links.next"), "rows", 3),
        (lambda _: said(ROWS), OnePage(), None, 1),
    ],
    ids=[
        "link",
        "page",
        "page of total",
        "offset",
        "offset of total",
        "cursor",
        "cursor with more",
        "next url",
        "none",
    ],
)
def test_every_record_of_every_page_comes_once(
    answer: Answer, pagination: Pagination, records: str | None, requests: int
) -> None:
    with serving(answer) as api:
        assert ids(api, collection(pagination, records=records)) == [row["id"] for row in ROWS]
        assert len(api.asked) == requests
        assert len({asked.connection for asked in api.asked}) == 1


@pytest.mark.parametrize(
    "pagination", [LinkHeader(), PageNumber("page"), Offset("skip"), BodyCursor("next", "token"), NextUrl("next")]
)
def test_an_api_without_records_ends_at_its_first_page(pagination: Pagination) -> None:
    with serving(lambda _: said({"rows": []})) as api:
        assert ids(api, collection(pagination, records="rows")) == []
        assert len(api.asked) == 1


@pytest.mark.parametrize(
    "pagination",
    [
        OnePage(),
        LinkHeader(),
        PageNumber("page", total="pages"),
        Offset("skip", total="n"),
        BodyCursor("next", "token"),
    ],
)
def test_no_content_is_a_page_without_records(pagination: Pagination) -> None:
    with serving(lambda _: Said(status=204)) as api:
        assert ids(api, collection(pagination, records="rows")) == []
        assert len(api.asked) == 1


def test_an_empty_page_in_the_middle_ends_no_walk_that_a_token_leads() -> None:
    def answer(asked: Asked) -> Said:
        n = int(asked.params.get("token", 0))
        return said({"rows": [] if n == 1 else [{"id": n}], "next": n + 1 if n < 3 else None})

    with serving(answer) as api:
        assert ids(api, collection(BodyCursor("next", "token"), records="rows")) == [0, 2, 3]


def test_credentials_and_parameters_are_asked_with_on_every_page() -> None:
    with serving(by_number) as api:
        asked = collection(PageNumber("page", size=(("size", "3"),)), records="rows", params=(("state", "all"),))
        ids(api, asked, credentials=Credentials.query("key", "s3cr3t"))
        assert [(a.params["state"], a.params["key"], a.params["size"]) for a in api.asked] == [
            ("all", "s3cr3t", "3")
        ] * 4


def endless_tokens(records: Callable[[int], list[dict[str, Any]]]) -> Answer:
    """A new token with every page."""

    def answer(asked: Asked) -> Said:
        n = int(asked.params.get("token", 0))
        return said({"rows": records(n), "next": n + 1})

    return answer


def test_a_token_that_repeats_for_ever_is_an_error() -> None:
    error = refusal(
        lambda _: said({"rows": ROWS, "next": "same"}), collection(BodyCursor("next", "token"), records="rows")
    )
    assert "the pages go round in circles" in error.what
    assert error.kind == "permanent"


def test_a_token_that_repeats_is_an_error_also_if_it_brings_other_records_each_time() -> None:
    numbers = iter(range(1000))
    asked = collection(BodyCursor("next", "token"), records="rows")
    error = refusal(lambda _: said({"rows": [{"id": next(numbers)}], "next": "same"}), asked)
    assert "this one was asked for before" in error.what


def test_tokens_that_repeat_in_a_long_circle_are_an_error() -> None:
    def answer(asked: Asked) -> Said:
        n = int(asked.params.get("token", 0))
        return said({"rows": [{"id": n}], "next": (n + 1) if n < 40 else 20})

    asked = collection(BodyCursor("next", "token"), records="rows", most_pages=1000)
    assert "the pages go round in circles" in refusal(answer, asked).what


def test_ever_new_tokens_that_bring_the_same_records_are_an_error() -> None:
    asked = collection(BodyCursor("next", "token"), records="rows", most_pages=1000)
    assert "these very records have come before" in refusal(endless_tokens(lambda _: ROWS), asked).what


def test_ever_new_tokens_that_bring_nothing_end_at_the_limit() -> None:
    asked = collection(BodyCursor("next", "token"), records="rows", most_pages=20)
    assert "more than 20 pages" in refusal(endless_tokens(lambda _: []), asked).what


def test_an_api_that_does_not_know_the_page_parameter_is_noticed() -> None:
    asked = collection(PageNumber("pgae"))
    assert "does the API know these parameters?" in (refusal(lambda _: said(ROWS), asked).hint or "")


@pytest.mark.parametrize("pagination", [LinkHeader(), NextUrl("next")], ids=["link", "next url"])
def test_a_next_page_at_another_host_is_not_asked_for(pagination: Pagination) -> None:
    with serving(by_link) as other:

        def answer(_asked: Asked) -> Said:
            url = f"{other.url}/things"
            return said({"rows": ROWS, "next": url}, Link=f'<{url}>; rel="next"')

        error = refusal(answer, collection(pagination, records="rows"))
        assert f"leads to {other.url}" in error.what
        assert other.asked == []


def test_a_link_to_a_next_page_is_not_passed_over() -> None:
    assert 'write `pagination = { type = "link" }`' in (refusal(by_link, collection(OnePage())).hint or "")


@pytest.mark.parametrize("token", [{"a": 1}, [1], 1.5, True, "half a character: \ud83d"])
def test_what_is_no_token_is_told(token: object) -> None:
    error = refusal(lambda _: said({"rows": ROWS, "next": token}), collection(BodyCursor("next", "t"), records="rows"))
    assert "`next` of the answer is no token" in error.what


@pytest.mark.parametrize("last", [None, "", True, 1.5, "half a character: \ud83d"])
def test_a_last_record_after_which_nothing_can_be_asked_for_is_told(last: object) -> None:
    error = refusal(lambda _: said([*ROWS, {"id": last}]), collection(LastRecord("id", "starting_after")))
    assert "the last record has no `id`, after which the next page is asked for" in error.what


def shifting(batches: list[list[dict[str, Any]]]) -> Answer:
    """What the API holds changes with every request."""

    def answer(asked: Asked) -> Said:
        rows = batches.pop(0) if len(batches) > 1 else batches[0]
        return said(paged(rows, (int(asked.params["page"]) - 1) * SIZE))

    return answer


def test_a_record_that_is_shown_again_because_pages_shifted_is_loaded_once_if_it_has_a_key() -> None:
    before, after = ROWS, [{"id": 100}, *ROWS]
    for has_key, expected in ((True, [0, 1, 2, 3, 4, 5, 6]), (False, [0, 1, 2, 2, 3, 4, 5, 6])):
        with serving(shifting([before, after])) as api:
            assert ids(api, collection(PageNumber("page"), has_key=has_key)) == expected


def test_a_record_that_changed_between_two_pages_comes_as_it_was_and_as_it_is() -> None:
    changed = [{"id": 100}, *ROWS[:2], {"id": 2, "name": "new"}, *ROWS[3:]]
    with serving(shifting([ROWS, changed])) as api:
        assert ids(api, collection(PageNumber("page"), has_key=True)).count(2) == 2


def test_as_many_new_records_as_fit_a_page_are_no_circle() -> None:
    after = [{"id": n} for n in (100, 101, 102)] + ROWS
    with serving(shifting([ROWS, after])) as api:
        assert ids(api, collection(PageNumber("page"), has_key=True)) == [0, 1, 2, 3, 4, 5, 6]


def position(record: Record) -> int | None:
    return record.value.get("at")


def test_a_walk_in_order_stops_when_it_has_passed_the_end() -> None:
    rows = [{"id": n, "at": n * 10} for n in range(30)]
    with serving(shifting([rows])) as api:
        found = ids(api, collection(PageNumber("page")), Ascending(position, end=45))
        assert found == [0, 1, 2, 3, 4, 5]
        assert len(api.asked) == 2


def test_records_that_are_not_in_the_order_that_was_declared_are_an_error() -> None:
    """Else a walk would stop before its end, and lose what comes behind."""
    rows = [{"id": 1, "at": 10}, {"id": 2, "at": 50}, {"id": 3, "at": 20}]
    error = refusal(shifting([rows]), collection(PageNumber("page")), Ascending(position, end=45))
    assert isinstance(error, SourceError)
    assert "the order is not ascending" in error.what


def test_records_that_are_shown_again_do_not_break_the_order() -> None:
    rows = [{"id": n, "at": n} for n in range(7)]
    shifted = [rows[0], {"id": 100, "at": 0}, {"id": 101, "at": 0}, *rows[1:]]
    with serving(shifting([rows, shifted])) as api:
        assert ids(api, collection(PageNumber("page"), has_key=True), Ascending(position)) == [0, 1, 2, 3, 4, 5, 6]


def since(at: int) -> Pairs:
    return (("since", str(at)),)


class Changing:
    """Records in the order of their last change, from `since` on. Before a request, `changes` says what happens."""

    def __init__(self, records: dict[int, int], changes: dict[int, dict[int, int]], *, down: bool = False) -> None:
        self._records, self._changes, self._down = dict(records), changes, down
        self._asked = 0

    def __call__(self, asked: Asked) -> Said:
        self._asked += 1
        self._records |= self._changes.get(self._asked, {})
        rows = [{"id": n, "at": at} for n, at in sorted(self._records.items(), key=lambda row: (row[1], row[0]))]
        rows = [row for row in rows if row["at"] >= int(asked.params.get("since", 0))]
        start = int(asked.params.get("from", 0))
        more = start + SIZE < len(rows)
        kept = "".join(f"{name}={value}&" for name, value in asked.params.items() if name != "from")
        link = f'</things?{kept}from={start + SIZE}>; rel="next"'
        return said(paged(rows[::-1] if self._down else rows, start), **({"Link": link} if more else {}))


SEVEN = {n: 10 * n for n in range(7)}
MOVED = {2: {0: 500, 1: 501}}
"""After the first page two records of it change, and those behind them move up by two."""


def test_records_that_move_to_the_end_shift_none_where_each_page_begins_at_the_last_record() -> None:
    """By their numbers, pages would pass over as many as have moved."""
    by_number, restarted = Ascending(position), Ascending(position, restart=since)
    with serving(Changing(SEVEN, MOVED)) as api:
        assert sorted(set(ids(api, collection(LinkHeader(), has_key=True), by_number))) == [0, 1, 2, 5, 6]
    with serving(Changing(SEVEN, MOVED)) as api:
        found = ids(api, collection(LinkHeader(), has_key=True), restarted)
        assert sorted(set(found)) == list(range(7))
        assert found.count(0) == 2, "as it was, and as it is"
        assert [one for one in api.params("since") if one] == ["20", "40", "60"]


def test_a_record_at_the_seam_may_change_without_a_new_cursor() -> None:
    """As GitHub counts reactions without a new `updated_at`: it comes again, and nothing is out of order."""
    rows = [{"id": n, "at": 10 * n} for n in range(6)]

    def answer(asked: Asked) -> Said:
        found = [row for row in rows if int(str(row["at"])) >= int(asked.params.get("since", 0))]
        rows[1] = {"id": 1, "at": 10, "n": 1}
        return said(found[:3], **({"Link": '</things?x=1>; rel="next"'} if len(found) > 3 else {}))

    def with_a_margin(at: int) -> Pairs:
        return since(at - 10)

    with serving(answer) as api:
        order = Ascending(position, restart=with_a_margin)
        assert ids(api, collection(LinkHeader(), has_key=True), order) == [0, 1, 2, 1, 3, 4, 5]


def test_more_records_of_one_moment_than_fit_a_page_are_passed_by_number() -> None:
    records = {n: 10 * (n // 5) for n in range(12)}
    with serving(Changing(records, {})) as api:
        restarted = Ascending(position, restart=since)
        assert ids(api, collection(LinkHeader(), has_key=True), restarted) == list(range(12))


def test_a_walk_that_goes_down_stops_below_its_range() -> None:
    with serving(Changing(SEVEN, {}, down=True)) as api:
        assert ids(api, collection(LinkHeader(), has_key=True), Descending(position, end=50)) == [6, 5, 4]
        assert len(api.asked) == 1


def test_a_walk_that_goes_down_loses_no_record_that_did_not_change_meanwhile() -> None:
    """What changes becomes the newest: it is found from the mark on, which is not above it."""
    with serving(Changing(SEVEN, {2: {0: 500}, 3: {7: 501}}, down=True)) as api:
        found = ids(api, collection(LinkHeader(), has_key=True), Descending(position))
    assert sorted(found) == [1, 2, 3, 4, 5, 6]


def test_newer_records_may_come_between_older_ones_if_they_are_newer_than_all() -> None:
    new = {n: 100 + n for n in range(10, 14)}
    with serving(Changing(SEVEN, {2: new}, down=True)) as api:
        found = ids(api, collection(LinkHeader(), has_key=True), Descending(position))
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 6, 10]


def test_a_walk_that_goes_down_needs_that_order() -> None:
    rows = [{"id": 1, "at": 50}, {"id": 2, "at": 10}, {"id": 3, "at": 40}]
    error = refusal(shifting([rows]), collection(PageNumber("page")), Descending(position, end=30))
    assert "the order is not descending" in error.what


def test_an_api_that_goes_up_is_not_taken_for_one_that_goes_down() -> None:
    """Each of its records is newer than all before it, as one that changed meanwhile would be: at the top of a page."""
    rows = [{"id": n, "at": n * 10} for n in range(7)]
    for end in (None, 40):
        error = refusal(shifting([rows]), collection(PageNumber("page")), Descending(position, end=end))
        assert "a record comes after one with an earlier cursor: the order is not descending" in error.what
