"""Tables of a REST API, from its pages to PostgreSQL: loaded whole, and in windows with what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import dagster as dg
import psutil
import pytest

from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, said, serving
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_quarantine_replay import replayed

ENV = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true", "TRACKER_TOKEN": "a-token-for-the-tracker"}
NOW = datetime.now(UTC).replace(microsecond=0)


def ago(**units: float) -> datetime:
    return NOW - timedelta(**units)


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


@dataclass
class Tracker:
    """Issues that change, listed in the order of their last change, from `since` on, in pages of three."""

    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    trouble: Callable[[Asked, int], Said | None] = lambda _asked, _n: None
    clock: datetime | None = None
    """What it takes for now, if it stands still."""
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, number: int, at: datetime, **more: Any) -> None:
        self.issues[number] = {"id": number, "updated_at": written(at), "user": {"login": f"u{number}"}} | more

    def answer(self, asked: Asked) -> Said:
        with self.lock:
            self.asked += 1
            trouble = self.trouble(asked, self.asked)
        if trouble is not None:
            return trouble
        if asked.headers["Authorization"] != f"Bearer {ENV['TRACKER_TOKEN']}":
            return said({"message": "Bad credentials"}, 401)
        rows = sorted(self.issues.values(), key=lambda row: (row["updated_at"], row["id"]))
        rows = [row for row in rows if row["updated_at"] >= asked.params.get("since", "")]
        page = int(asked.params.get("page", 1))
        more = page * 3 < len(rows)
        kept = "".join(f"{name}={value}&" for name, value in asked.params.items() if name != "page")
        links = {"Link": f'</issues?{kept}page={page + 1}>; rel="next"'} if more else {}
        clock = {} if self.clock is None else {"Date": format_datetime(self.clock, usegmt=True)}
        return said(rows[(page - 1) * 3 : page * 3], **links, **clock)


@contextmanager
def tracked(
    shop: ShopProject,
    tracker: Tracker,
    *,
    config: dict[str, Any] | None = None,
    children: Sequence[dict[str, Any]] = (),
    **table: Any,
) -> Iterator[ApiServer]:
    with serving(tracker.answer) as api:
        shop.env = ENV
        shop.settings = replace(shop.settings, webhooks_to_loopback=True)
        shop.manifest(
            {
                "id": "tracker",
                "source": {
                    "connector": "rest",
                    "config": {
                        "base_url": api.url,
                        "auth": {"type": "bearer", "token": "${TRACKER_TOKEN}"},
                        "pagination": {"type": "link"},
                        "retry": {"retries": 3, "first_pause": 0.01},
                    }
                    | (config or {}),
                },
                "secrets": ["TRACKER_TOKEN"],
                "tables": [{"name": "issues", "primary_key": ["id"]} | table, *children],
            }
        )
        yield api


DAY = [("Retry-After", "86400")]
CURSOR: dict[str, Any] = {"incremental": "updated_at", "cursor_params": {"lower": "since", "order": "ascending"}}


@pytest.mark.parametrize("mode", ["upsert", "append", "truncate", "blue_green", "delete_missing"])
def test_a_table_without_a_cursor_is_loaded_whole_each_time(shop: ShopProject, mode: str) -> None:
    tracker = Tracker()
    for number in range(1, 8):
        tracker.put(number, ago(days=number))
    with tracked(shop, tracker, load={"mode": mode}):
        assert shop.apply()["issues"]["rows"] == 7
        del tracker.issues[3]
        tracker.put(9, ago(hours=1), user=None)
        result = shop.apply()["issues"]
    assert (result["error"], result["rows"]) == (None, 7)
    stays = [3] if mode == "upsert" else []
    assert shop.column("issues", "id") == sorted([1, 2, 4, 5, 6, 7, 9, *stays])
    assert shop.rows("SELECT \"user\" ->> 'login' FROM raw.issues WHERE id = 7") == [("u7",)]
    assert shop.rows("SELECT DISTINCT pg_typeof(updated_at)::text FROM raw.issues") == [("timestamp with time zone",)]


def test_history_is_loaded_in_windows_and_then_what_is_new(shop: ShopProject) -> None:
    tracker = Tracker()
    newest = ago(minutes=30)
    for number in range(1, 6):
        tracker.put(number, newest - timedelta(days=30 * (number - 1)))
    with tracked(shop, tracker, flatten=["user"], **CURSOR) as api:
        first = shop.apply()["issues"]
        assert (first["error"], first["rows"]) == (None, 5)
        assert first["chunks"]["done"] >= 5
        assert shop.column("issues", "user_login") == sorted(f"u{n}" for n in range(1, 6))

        tracker.put(4, ago(minutes=2))
        tracker.put(10, ago(minutes=1))
        api.asked.clear()
        again = shop.apply()["issues"]
        assert (again["error"], again["chunks"]["done"]) == (None, 1)
        since = [param for param in api.params("since") if param is not None]
        open_window = NOW.replace(day=1, hour=0, minute=0, second=0)
        assert since == [written(max(newest, open_window) - timedelta(seconds=1))]
        assert len(api.asked) == 3, "the plan and the run look at a page each, and one is read"
    assert shop.column("issues", "id") == [1, 2, 3, 4, 5, 10]
    assert shop.rows("SELECT updated_at FROM raw.issues WHERE id = 4") == [(ago(minutes=2),)]


def test_rows_at_the_mark_are_neither_lost_nor_doubled(shop: ShopProject) -> None:
    """Within one second too, for which the API's clock says the same all the time."""
    tracker = Tracker(clock=ago(minutes=1))
    at = ago(minutes=5)
    for number in (1, 2):
        tracker.put(number, at)
    with tracked(shop, tracker, load={"mode": "append"}, **CURSOR):
        shop.apply()
        tracker.put(3, at)
        for _ in range(2):
            assert shop.apply()["issues"]["error"] is None
            assert shop.column("issues", "id") == [1, 2, 3]


def test_the_end_of_an_api_is_not_taken_for_rows_of_the_future(shop: ShopProject) -> None:
    """Its clock's now is later than when it was asked."""
    tracker = Tracker(clock=NOW + timedelta(days=1))
    tracker.put(1, ago(days=40))
    with tracked(shop, tracker, **CURSOR):
        told = shop.apply()["issues"]
    assert (told["error"], told["warnings"]) == (None, [])


def test_trouble_on_the_way_doubles_and_loses_nothing(shop: ShopProject) -> None:
    """429s, 5xx, and connections that break off in the middle of an answer."""
    tracker = Tracker()
    for number in range(1, 30):
        tracker.put(number, ago(days=3 * number))

    def trouble(asked: Asked, n: int) -> Said | None:
        match n % 6:
            case 2:
                return Said(status=429, headers=[("Retry-After", "0")])
            case 3:
                return Said(b"[" + b" " * 4000, cut=100)
            case 5:
                return Said(status=502, body=b"<html>Bad gateway")
            case _:
                return None

    tracker.trouble = trouble
    with tracked(shop, tracker, load={"mode": "append"}, **CURSOR):
        result = shop.apply()["issues"]
    assert (result["error"], result["rows"]) == (None, 29)
    assert shop.column("issues", "id") == list(range(1, 30))


def test_a_load_that_is_tried_again_walks_again_and_doubles_nothing(shop: ShopProject) -> None:
    """The API is gone for longer than requests are tried, in the middle of a walk."""
    tracker = Tracker()
    for number in range(1, 12):
        tracker.put(number, ago(hours=number))
    gone = iter([False, False, False, *[True] * 5])
    tracker.trouble = lambda _asked, _n: said({}, 503) if next(gone, False) else None
    with tracked(shop, tracker, load={"mode": "append"}):
        result = shop.apply()["issues"]
    assert (result["error"], result["rows"]) == (None, 11)
    assert shop.column("issues", "id") == list(range(1, 12))


def test_an_api_that_asks_to_be_left_alone_for_a_day_is_asked_by_no_other_try(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 12):
        tracker.put(number, ago(hours=number))
    tracker.trouble = lambda asked, _n: Said(status=429, headers=DAY) if asked.params.get("page") == "2" else None
    with tracked(shop, tracker, load={"mode": "append"}) as api:
        told = shop.apply()["issues"]["error"]
        assert "it asks to be left alone for 86400 s" in told
        assert api.params("page").count("2") == 1


def test_an_api_that_answers_with_html_fails_the_table_and_leaves_the_target_as_it_is(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 8):
        tracker.put(number, ago(days=number))
    with tracked(shop, tracker, load={"mode": "truncate"}):
        shop.apply()
        tracker.trouble = lambda asked, _n: (
            Said(b"<html>Log in</html>", headers=[("Content-Type", "text/html")]) if "page" in asked.params else None
        )
        result = shop.apply()["issues"]
    assert result["chunks"]["failed"] == 1
    assert "answered 200 with HTML, not JSON: <html>Log in</html>" in result["error"]
    assert ENV["TRACKER_TOKEN"] not in str(result)
    assert shop.column("issues", "id") == list(range(1, 8))


def test_a_plan_asks_for_one_page(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 30):
        tracker.put(number, ago(days=10 * number))
    with tracked(shop, tracker, **CURSOR) as api:
        with shop.runtime() as runtime:
            planned = runtime.plan(runtime.project.tables)
        assert planned.failures == ()
        assert planned.plan.tables[0].chunks.pending >= 9
        assert len(api.asked) == 1


def test_records_that_do_not_fit_are_set_aside_with_their_reason(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 5):
        tracker.put(number, ago(days=1, minutes=number))
    tracker.put(5, ago(days=1), count="many")
    tracker.put(6, ago(days=1), count=6)
    with tracked(shop, tracker, columns={"count": "integer"}, **CURSOR):
        result = shop.apply()["issues"]
    assert (result["error"], result["quarantined"]) == (None, 1)
    assert shop.column("issues", "id") == [1, 2, 3, 4, 6]
    ((rule, message, line),) = shop.rows(
        'SELECT "ruleId", message, "row" ->> \'line\' FROM hakiri.quarantine_tracker_issues'
    )
    assert (rule, message) == ("malformed", "`count` is no integer")
    assert '"count": "many"' in line


def test_a_backfill_that_breaks_off_goes_on_where_it_stopped(shop: ShopProject) -> None:
    """Windows that were read side by side are committed before the next ones are asked for."""
    tracker = Tracker()
    for number in range(4):
        tracker.put(number, NOW - timedelta(days=31 * number))
    oldest = NOW - timedelta(days=31 * 3)
    windows = CURSOR | {"cursor_params": CURSOR["cursor_params"] | {"inclusive": True}}

    def gone(asked: Asked, _n: int) -> Said | None:
        """From the second window on."""
        return said({}, 404) if asked.params.get("since", "") > written(oldest + timedelta(days=31)) else None

    tracker.trouble = gone
    with tracked(shop, tracker, config={"max_connections": 1}, **windows) as api:
        broken = shop.apply()["issues"]
        assert broken["chunks"]["done"] >= 1
        assert broken["chunks"]["failed"] >= 2
        loaded = shop.column("issues", "id")
        assert 0 < len(loaded) < 4
        tracker.trouble = lambda _asked, _n: None
        api.asked.clear()
        again = shop.apply()["issues"]
        assert (again["error"], again["rows"]) == (None, 4 - len(loaded))
        assert written(oldest) not in str(api.params("since"))
    assert shop.column("issues", "id") == list(range(4))


def test_ids_are_a_cursor_where_the_api_tells_the_newest(shop: ShopProject) -> None:
    events = [{"id": n, "kind": "x"} for n in range(1, 26)]

    def answer(asked: Asked) -> Said:
        rows = events[::-1] if asked.params.get("sort") == "desc" else events
        rows = [row for row in rows if int(str(row["id"])) > int(asked.params.get("after", 0))]
        return said({"data": rows[:4], "last": rows[:4][-1]["id"] if len(rows) > 4 else None})

    with tracked(
        shop,
        Tracker(trouble=lambda asked, _n: answer(asked)),
        config={"pagination": {"type": "cursor", "next": "last", "param": "after"}},
        records="data",
        incremental="id",
        cursor_params={"lower": "after", "format": "number", "order": "ascending", "newest": {"sort": "desc"}},
        backfill={"window": 10},
        load={"mode": "append"},
    ) as api:
        first = shop.apply()["issues"]
        assert (first["error"], first["rows"], first["chunks"]["done"]) == (None, 25, 3)
        events.extend({"id": n, "kind": "y"} for n in range(26, 33))
        assert shop.apply()["issues"]["error"] is None
        assert shop.column("issues", "id") == list(range(1, 33))
        api.asked.clear()
        assert shop.apply()["issues"]["chunks"]["done"] == 0
        assert len(api.asked) == 2, "nothing is new, and two pages told so"


def test_rules_and_validators_that_need_all_rows_walk_once_more(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 8):
        tracker.put(number, ago(days=number), name=f"n{number % 6}")
    checks = {
        "row_level": [{"type": "unique_within_load", "field": "name", "on_fail": "skip"}],
        "dataset_level": {"row_count_matches_source": {"on_fail": "abort"}},
    }
    with tracked(shop, tracker, load={"mode": "truncate"}, validate=checks):
        result = shop.apply()["issues"]
    assert (result["error"], result["quarantined"]) == (None, 2)
    assert len(shop.column("issues", "id")) == 5


def test_records_that_come_late_are_loaded_within_the_lag(shop: ShopProject) -> None:
    """Though nothing that the API tells has changed: its newest record is the same."""
    tracker = Tracker()
    for number, minutes in ((1, 60), (2, 10)):
        tracker.put(number, ago(minutes=minutes))
    late = {"mode": "incremental_watermark", "watermark_column": "updated_at", "lag": "1h"}
    asked = CURSOR["cursor_params"] | {"newest": {"order": "desc"}}
    with tracked(shop, tracker, load=late, cursor_params=asked):
        shop.apply()
        tracker.put(3, ago(minutes=30))
        assert shop.apply()["issues"]["error"] is None
        assert shop.apply()["issues"]["error"] is None
    assert shop.column("issues", "id") == [1, 2, 3]


def test_rows_out_of_the_quarantine_are_what_the_api_sent(shop: ShopProject) -> None:
    tracker = Tracker()
    tracker.put(1, ago(days=1), name="ann")
    tracker.put(2, ago(days=1), name="bob", user={"login": "b", "share": [1, None]})
    rule = {"type": "one_of", "field": "name", "values": ["ann"], "on_fail": "skip"}
    with tracked(shop, tracker, row_level=[rule], **CURSOR):
        assert shop.apply()["issues"]["quarantined"] == 1
    with tracked(shop, tracker, row_level=[rule | {"values": ["ann", "bob"]}], **CURSOR):
        assert replayed(shop)["replayed"] == 1
    assert shop.rows('SELECT id, "user"::text FROM raw.issues ORDER BY id') == [
        (1, '{"login": "u1"}'),
        (2, '{"login": "b", "share": [1, null]}'),
    ]


def test_workers_that_are_killed_in_the_middle_of_a_walk_cost_another_walk(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 12):
        tracker.put(number, ago(hours=number))
    kills = iter([False, False, False, True])

    def kill(_asked: Asked, _n: int) -> Said | None:
        if next(kills, False):
            for process in psutil.Process().children(recursive=True):
                if "pyspark.daemon" in process.cmdline() and not process.children():
                    process.kill()
        return None

    tracker.trouble = kill
    shop.settings = replace(shop.settings, retries=3)
    with tracked(shop, tracker, load={"mode": "append"}):
        result = shop.apply()["issues"]
    assert (result["error"], result["rows"]) == (None, 11)
    assert shop.column("issues", "id") == list(range(1, 12))


def test_members_without_a_column_are_told_with_their_number(shop: ShopProject) -> None:
    """The first page shows the columns; what only later pages have is not loaded, and not in silence."""
    tracker = Tracker()
    for number in range(1, 4):
        tracker.put(number, ago(days=80 - number))
    for number in range(4, 9):
        tracker.put(number, ago(days=30 - number), extra="x", none=None)
    with tracked(shop, tracker, **CURSOR):
        result = shop.apply()["issues"]
        assert (result["error"], result["rows"]) == (None, 8)
        told = [warning for warning in result["warnings"] if "have no column" in warning]
        assert [warning.partition(": ")[2].partition(";")[0] for warning in told] == [
            "5 value(s) were not loaded, as their members have no column: `extra` (5)"
        ]
        events = shop.instance.fetch_materializations(dg.AssetKey(["tracker", "issues"]), limit=50).records
        metadata = [record.asset_materialization.metadata for record in events if record.asset_materialization]
        assert [one["members_without_column"].value for one in metadata if "members_without_column" in one] == [
            {"extra": 5}
        ]
    with tracked(shop, tracker, columns={"extra": "text"}, **CURSOR):
        (key,) = [told[0].split()[1].rstrip(":")]
        shop.again("issues", key)
    assert shop.rows("SELECT count(extra) FROM raw.issues") == [(5,)]
