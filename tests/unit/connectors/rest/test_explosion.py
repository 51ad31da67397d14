"""Elements of lists within records, as records of their own."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from hakiri_dagster.connectors.rest.explosion import Continued, Explosion
from hakiri_dagster.connectors.rest.flattening import Flattening
from hakiri_dagster.connectors.rest.moments import Moments
from hakiri_dagster.connectors.rest.pagination import NextUrl
from hakiri_dagster.connectors.rest.walk import Collection, walked
from hakiri_dagster.errors import SourceError
from tests.unit.connectors.rest.played_api import PlayedApi
from tests.unit.connectors.rest.records import record

LABELS = Explosion(("labels",), (("issues_id", "id"), ("issues_at", "at")), "position", cursor="issues_at")


def exploded(explosion: Explosion, text: str) -> list[str]:
    parent = record(text)
    return [child.text for child in explosion.children(parent, parent)]


def test_an_element_bears_its_parents_keys_and_its_place_with_the_very_text_that_was_sent() -> None:
    text = '{"id": 7.10, "at": "2024-01-01", "labels": [{"name": "a", "n": 1.50}, {"name": "\\u00e9"}]}'
    assert exploded(LABELS, text) == [
        '{"issues_id":7.10,"issues_at":"2024-01-01","position":0,"name":"a","n":1.50}',
        '{"issues_id":7.10,"issues_at":"2024-01-01","position":1,"name":"\\u00e9"}',
    ]


def test_elements_that_are_no_objects_are_values() -> None:
    found = exploded(LABELS, '{"id":1,"at":null,"labels":["a", 1.0, [2], null]}')
    kept = '"issues_id":1,"issues_at":null'
    assert found == [
        f'{{{kept},"position":0,"value":"a"}}',
        f'{{{kept},"position":1,"value":1.0}}',
        f'{{{kept},"position":2,"value":[2]}}',
        f'{{{kept},"position":3}}',
    ]


@pytest.mark.parametrize("text", ['{"id":1}', '{"id":1,"labels":null}', '{"id":1,"labels":[]}'])
def test_a_record_without_a_list_has_no_elements(text: str) -> None:
    assert exploded(LABELS, text) == []


@pytest.mark.parametrize("found", ['{"name":"a"}', '"a"', "5", "true"])
def test_what_is_no_list_becomes_a_record_that_is_set_aside_and_says_so(found: str) -> None:
    (child,) = exploded(LABELS, f'{{"id":1,"at":"x","labels":{found}}}')
    told, where = json.loads(child)
    assert told == "`labels` is no list, so it has no elements"
    assert where == {"issues_id": 1, "issues_at": "x", "labels": json.loads(found)}


def test_a_list_may_lie_within_objects() -> None:
    lines = Explosion(("lines", "data"), (("invoice", "id"),), "n")
    assert exploded(lines, '{"id":"in_1","lines":{"has_more":false,"data":[{"a":1}]}}') == [
        '{"invoice":"in_1","n":0,"a":1}'
    ]
    assert exploded(lines, '{"id":"in_1","lines":{}}') == []
    assert "`lines.data` is no list" in exploded(lines, '{"id":"in_1","lines":"none"}')[0]


def test_elements_are_flattened_and_their_times_are_times() -> None:
    shaped = Explosion(("l",), (), "n", flattening=Flattening.of(True), moments=Moments(frozenset({"t"})))
    assert exploded(shaped, '{"l":[{"t":0,"a":{"b":1}}]}') == ['{"n":0,"t":"1970-01-01T00:00:00Z","a_b":1}']


def test_a_parents_key_may_come_from_an_object_that_was_flattened() -> None:
    sent = record('{"user":{"id":5},"l":[1]}')
    by_user = Explosion(("l",), (("user_id", "user_id"),), "n")
    assert [child.text for child in by_user.children(Flattening.of(True)(sent), sent)] == [
        '{"user_id":5,"n":0,"value":1}'
    ]


def test_an_element_that_has_a_member_of_a_kept_name_is_an_error() -> None:
    with pytest.raises(SourceError, match="elements have a member `position`") as raised:
        exploded(LABELS, '{"id":1,"labels":[{"position":9}]}')
    assert '`position = "other"`' in str(raised.value.hint)


CONTINUED = Explosion(("l",), (), "n", continued=Continued(("more",), ("url",)))


@pytest.mark.parametrize(
    ("sent", "url"), [('{"more":true,"url":"/x"}', "/x"), ('{"more":false,"url":"/x"}', None), ("{}", None)]
)
def test_a_list_goes_on_where_its_record_says_so(sent: str, url: str | None) -> None:
    assert CONTINUED.rest_of(record(sent)) == url


def test_a_list_that_goes_on_nowhere_is_an_error() -> None:
    with pytest.raises(SourceError, match="`more` says that a list goes on"):
        CONTINUED.rest_of(record('{"more":true}'))


def test_a_list_of_ever_so_many_elements_is_not_held_as_rows_all_at_once() -> None:
    listed = Collection(
        "/orders", (), "rows", NextUrl("next"), 10, explosion=Explosion(("lines",), (("order", "id"),), "n")
    )
    api = PlayedApi(lambda _: {"rows": [{"id": 1, "lines": [1] * 100_000}]})
    tracemalloc.start()
    try:
        rows = sum(map(len, walked(api, listed)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 100_000
    assert peak < 16 << 20
