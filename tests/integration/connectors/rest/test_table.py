"""A table of an API as a source: its columns, its extent, and its rows by Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pyspark.errors import PySparkException

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN, SLICE_COLUMN, UNSEEN_COLUMN, Known
from hakiri_dagster.connectors.rest.ranges import as_position
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import HakiriError, SourceError, SourceUnavailable
from hakiri_dagster.planning.chunks import CursorRange, Extent, Interval, NullCursor
from hakiri_dagster.security import secrets
from tests.integration.connectors.rest.api_server import Asked, Said, in_turn, said, serving
from tests.integration.connectors.rest.conftest import LABEL, Source, is_good

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: float) -> int:
    return as_position(START + timedelta(days=number))


def moment(number: float) -> str:
    return (START + timedelta(days=number)).isoformat().replace("+00:00", "Z")


EVENTS = [{"id": n, "at": moment(n)} for n in range(10)]


def events(asked: Asked) -> Said:
    """Sorted as they are, from `since` on, without it, in pages of two."""
    start = int(asked.params.get("from", 0))
    rows = EVENTS if asked.params.get("order") != "desc" else EVENTS[::-1]
    rows = [row for row in rows if asked.params.get("since", "") < row["at"]]
    rows = [row for row in rows if row["at"] <= asked.params.get("until", "9")]
    page, more = rows[start : start + 2], start + 2 < len(rows)
    kept = "".join(f"{name}={value}&" for name, value in asked.params.items() if name != "from")
    return said(page, **({"Link": f'</things?{kept}from={start + 2}>; rel="next"'} if more else {}))


NESTED = (
    b'[{"id":1,"name":"ann","price":1.10,"when":"2024-01-31T10:00:00Z","user":{"login":"x","n":1.50},"tags":["a"]},'
    b'{"id":"two","name":"bob","price":2,"user":null,"tags":[]},'
    b'{"id":3,"price":"x","name":""},'
    b'{"id":4,"user":{"login":"x","login":"y"}},'
    b"5]"
)


def test_rows_come_typed_with_nested_values_as_they_were_sent_and_misfits_marked(source: Source) -> None:
    with serving(in_turn(Said(NESTED))) as api:
        source.url = api.url
        source.columns = {"id": "bigint", "price": "numeric(10,2)"}
        found = source.discover()
        rows = source.rows(found)
    assert found.schema is not None
    assert {c.name: c.native_type or c.spark_type for c in found.schema.columns} == {
        "id": "bigint", "name": "string", "price": "numeric(10,2)", "when": "timestamp",
        "user": "jsonb", "tags": "jsonb",
    }  # fmt: skip
    good, *bad = rows
    assert is_good(good)
    assert (good.user, good.tags, str(good.price)) == ('{"login":"x","n":1.50}', '["a"]', "1.10")
    assert [row[MALFORMED_COLUMN].reason for row in bad] == [
        "`id` is no bigint",
        "`price` is no numeric(10,2)",
        "the key `login` is there more than once",
        "a text or number instead of a JSON object",
    ]
    assert bad[0][MALFORMED_COLUMN].line.startswith('{"id":"two"')


@pytest.mark.parametrize("flatten", [True, False])
def test_half_a_character_in_the_name_of_a_member_fails_no_load(source: Source, flatten: bool) -> None:
    """JSON can escape one, and no column, no text of Spark's can hold it."""
    source.endpoint = {"flatten": flatten, "epochs": ["at"]}
    source.columns = {"doc": "jsonb"}
    with serving(in_turn(Said(b'[{"id":1,"at":0,"doc":[1.10],"\\ud800":"x","u":{"\\udc00":1}}]'))) as api:
        source.url = api.url
        (row,) = source.rows()
    assert is_good(row)
    assert (row.id, row.doc) == (1, "[1.10]")
    assert row[UNSEEN_COLUMN] == (["\\ud800", "u_\\udc00"] if flatten else ["\\ud800"])


def test_objects_are_flattened_where_that_is_declared(source: Source) -> None:
    source.endpoint = {"flatten": True}
    with serving(in_turn(Said(NESTED))) as api:
        source.url = api.url
        row, *_, repeated, _ = source.rows()
    assert (row.user_login, str(row.user_n), row.tags) == ("x", "1.50", '["a"]')
    assert repeated[MALFORMED_COLUMN].line == '{"id":4,"user":{"login":"x","login":"y"}}'


def test_one_page_tells_the_columns_and_no_more_is_asked_for(source: Source) -> None:
    with serving(events) as api:
        source.url = api.url
        found = source.discover()
        assert len(api.asked) == 1
        later = source.discover(known=Known(found.schema))
        assert later.schema == found.schema
        assert len(api.asked) == 2
        assert sorted(row.id for row in source.rows(found)) == list(range(10))


def test_an_api_without_records_needs_declared_columns(source: Source) -> None:
    with serving(in_turn(said([]))) as api:
        source.url = api.url
        with pytest.raises(SourceError, match="no record that tells the table's columns"):
            source.discover()
        source.columns = {"id": "bigint"}
        assert source.rows() == []


CURSOR = {"lower": "since", "order": "ascending"}


def test_history_begins_at_the_first_record_and_ends_at_the_apis_own_now(source: Source) -> None:
    theirs = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
    source.endpoint = {"cursor_params": CURSOR}

    def answer(asked: Asked) -> Said:
        found = events(asked)
        return replace(found, headers=[*found.headers, ("Date", format_datetime(theirs, usegmt=True))])

    with serving(answer) as api:
        source.url = api.url
        extent = source.discover("at").extent
        assert len(api.asked) == 1
        assert source.discover("at").extent != extent, "it cannot be told that nothing is new"
    assert extent is not None
    assert (extent.lower, extent.upper, extent.nulls) == (day(0), as_position(theirs), 0)


def test_an_api_whose_clock_is_ahead_is_not_believed(source: Source) -> None:
    """Windows would be taken for over that are still open."""
    source.endpoint = {"cursor_params": CURSOR}
    theirs = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    with serving(lambda asked: replace(events(asked), headers=[("Date", theirs)])) as api:
        source.url = api.url
        extent = source.discover("at").extent
    assert extent is not None
    assert extent.upper is not None
    assert extent.upper <= as_position(datetime.now(UTC))


def test_the_newest_record_tells_the_end_where_the_api_can_be_asked_for_it(source: Source) -> None:
    source.endpoint = {"cursor_params": CURSOR | {"newest": {"order": "desc"}}}
    with serving(events) as api:
        source.url = api.url
        assert source.discover("at").extent == Extent(day(0), day(9), 0, rows_at_upper=1)
        assert len(api.asked) == 2


@pytest.mark.parametrize(
    ("asked", "requests"),
    [
        ({"lower": "since", "upper": "until"}, 2 + 2 + 2),
        ({"lower": "since", "order": "ascending"}, 2 + 2 + 2),
        ({"lower": "since"}, 4),
    ],
    ids=["upper bound", "ascending", "neither"],
)
def test_each_range_gives_its_own_rows_once(source: Source, asked: dict[str, Any], requests: int) -> None:
    """Though the API gives more than it is asked for. Without an upper bound or an order one walk is for all ranges."""
    source.endpoint = {"cursor_params": asked}
    bounds = [CursorRange(Interval(day(start), day(start + 2.5))) for start in (2, 4.5, 7)]
    with serving(events) as api:
        source.url = api.url
        found = source.discover("at")
        api.asked.clear()
        rows = source.rows(found, "at", *bounds)
        assert sorted(row.id for row in rows) == [2, 3, 4, 5, 6, 7, 8, 9]
        assert len(api.asked) == requests
    if asked != {"lower": "since"}:
        assert {row.id: row[SLICE_COLUMN] for row in rows} == {2: 0, 3: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 2, 9: 2}


def test_an_open_range_begins_at_its_mark_itself(source: Source) -> None:
    source.endpoint = {"cursor_params": CURSOR}
    with serving(events) as api:
        source.url = api.url
        rows = source.rows(None, "at", CursorRange(Interval(day(8), None)))
    assert [row.id for row in rows] == [8, 9]


def test_a_record_without_a_cursor_is_set_aside_with_the_slice_it_came_with(source: Source) -> None:
    source.endpoint = {"cursor_params": {"lower": "since", "upper": "until"}}
    source.columns = {"at": "timestamptz"}
    with serving(in_turn(said([{"id": 1, "at": moment(1)}, {"id": 2}, {"id": 3, "at": "soon"}]))) as api:
        source.url = api.url
        rows = source.rows(None, "at", NullCursor(), CursorRange(Interval(day(0), day(2))))
    good, *bad = sorted(rows, key=lambda row: row.id)
    assert is_good(good)
    assert [row[SLICE_COLUMN] for row in rows] == [1, 1, 1]
    marks = [row[MALFORMED_COLUMN] for row in bad]
    assert [mark.reason for mark in marks] == ["the cursor `at` has no value", "`at` is no timestamptz"]
    assert not any(mark.readable for mark in marks)


def test_a_slice_of_rows_without_a_cursor_is_empty(source: Source) -> None:
    source.endpoint = {"cursor_params": CURSOR}
    with serving(events) as api:
        source.url = api.url
        found = source.discover("at")
        api.asked.clear()
        assert source.rows(found, "at", NullCursor()) == []
        assert api.asked == []


def test_a_cursor_that_no_record_has_is_told_with_the_columns(source: Source) -> None:
    source.endpoint = {"cursor_params": CURSOR}
    with serving(events) as api:
        source.url = api.url
        with pytest.raises(SourceError, match="the records have no cursor `updated_at`"):
            source.discover("updated_at")


def reading_fails(source: Source, found: Any) -> HakiriError:
    with pytest.raises(HakiriError) as raised, translate_spark_errors(LABEL):
        source.rows(found)
    return raised.value


def test_what_goes_wrong_in_a_worker_is_told_as_it_is_here(source: Source) -> None:
    secret = "a-token-of-the-api"
    source.config = {
        "auth": {"type": "query", "name": "who", "value": secret},
        "retry": {"retries": 0, "first_pause": 0.01},
    }
    first = said([{"id": 1}], Link='</things?page=2>; rel="next"')
    for second, kind, told in (
        (Said(b"<html>", headers=[("Content-Type", "text/html")]), SourceError, "with HTML, not JSON: <html>"),
        (said({"you": secret}, 404), SourceError, 'answered 404 Not Found: {"you": "***"}'),
        (said({}, 503), SourceUnavailable, "answered 503"),
    ):
        with serving(lambda asked, second=second: second if "page" in asked.params else first) as api:
            source.url = api.url
            error = reading_fails(source, source.discover())
        assert type(error) is kind
        assert error.where == LABEL
        assert error.what.startswith("GET http://127.0.0.1:")
        assert "/things?page=2" in error.what
        assert told in error.what
        assert secret not in str(error)


def test_a_worker_knows_the_secrets_that_it_is_given_in_headers_and_parameters(source: Source) -> None:
    """What it raises is in Spark's own log before anybody here can mask it."""
    of_header, of_param = "the-secret-in-a-header-of-this-table", "the-secret-in-a-parameter-of-this-table"
    secrets.register([of_header, of_param])
    source.config = {"headers": {"X-Application": f"key {of_header}"}, "retry": {"retries": 0}}
    source.endpoint = {"params": {"fields": "f" * 240, "account": of_param}}

    def answer(asked: Asked) -> Said:
        if "page" in asked.params:
            return said({"detail": "d" * 160, "key": asked.headers["X-Application"]}, 400)
        return said([{"id": 1}], Link=f'</things?page=2&fields={"f" * 240}&account={of_param}>; rel="next"')

    with serving(answer) as api:
        source.url = api.url
        found = source.discover()
        with pytest.raises(PySparkException) as raised:
            source.rows(found)
    assert "answered 400 Bad Request" in str(raised.value)
    assert "the-secret" not in str(raised.value)


def test_a_secret_is_in_no_plan_and_no_repr(source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "another-token-of-the-api"
    source.config = {"auth": {"type": "bearer", "token": secret}, "headers": {"X-Key": f"key {secret}"}}
    with serving(in_turn(said([{"id": 1}]))) as api:
        source.url = api.url
        reading = source.read(source.discover())
        reading.frame.explain("extended")
    shown = [capsys.readouterr().out, repr(reading), repr(source.table()), "".join(source.table().lineage)]
    assert not any(secret in text for text in shown)


def test_other_settings_void_what_was_known_of_the_columns(source: Source) -> None:
    source.url = "https://api.example.com"
    before = source.table().read_as
    assert source.table().read_as == before
    for name, value in (("flatten", ["b", "a"]), ("records", "data"), ("params", {"fields": "all"})):
        source.endpoint = {name: value}
        assert source.table().read_as != before
