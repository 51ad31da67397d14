"""Tables of an API that can only be walked in order, by tokens of its own: segments, each committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hakiri_dagster.errors import OutOfOrder
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.chunk_run import run_chunks
from hakiri_dagster.pipeline.steps import FailedChunk, PreparedChunk, SkippedChunk
from hakiri_dagster.pipeline.wanted import Wanted
from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, said, serving
from tests.integration.orchestration.conftest import ShopProject


@dataclass
class Journal:
    """Events in the order in which they happened, two a page; a token is the number of the last one."""

    events: int = 11
    trouble: Callable[[Asked], Said | None] = lambda _asked: None
    walked: list[str | None] = field(default_factory=list)

    @property
    def tokens(self) -> list[str]:
        """Of the pages that were asked for; those to see the columns have none."""
        return [after for after in self.walked if after is not None]

    def answer(self, asked: Asked) -> Said:
        trouble = self.trouble(asked)
        if trouble is not None:
            return trouble
        after = asked.params.get("starting_after")
        self.walked.append(after)
        first = int(after or 0) + 1
        shown = range(first, min(first + 2, self.events + 1))
        more = first + 2 <= self.events
        return said({"data": [{"id": n, "what": f"event {n}"} for n in shown], "has_more": more})


@contextmanager
def journal(shop: ShopProject, api_of: Journal, **table: Any) -> Iterator[ApiServer]:
    with serving(api_of.answer) as api:
        shop.env = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true", "KEY": "sk_test_of_the_journal"}
        shop.settings = replace(shop.settings, webhooks_to_loopback=True)
        config = {
            "base_url": api.url,
            "auth": {"type": "query", "name": "api_key", "value": "${KEY}"},
            "pagination": {"type": "last_record", "param": "starting_after", "more": "has_more"},
            "retry": {"retries": 0},
        }
        events = {"name": "events", "records": "data", "segments": {"pages": 2}, "load": {"mode": "append"}} | table
        shop.manifest({"id": "journal", "source": {"connector": "rest", "config": config}, "tables": [events]})
        yield api


def ids(shop: ShopProject) -> list[int]:
    return shop.column("events", "id")


def ledger(shop: ShopProject) -> list[tuple[str, str | None]]:
    query = "SELECT chunk_key, token FROM hakiri.ledger WHERE superseded_by IS NULL ORDER BY load_id"
    return shop.rows(query)  # type: ignore[return-value]


def test_segments_are_walked_in_one_run_each_committed_and_what_is_new_comes_at_the_end(shop: ShopProject) -> None:
    api = Journal()
    with journal(shop, api):
        loaded = shop.apply()["events"]
        assert (loaded["error"], loaded["rows"]) == (None, 11)
        assert ids(shop) == list(range(1, 12))
        keys, tokens = zip(*ledger(shop), strict=True)
        assert keys == ("segment-000001", "segment-000002", "segment-000003")
        assert [token.partition("starting_after=")[2] for token in tokens] == ["4", "8", ""]
        assert not any("sk_test" in token for token in tokens), "credentials are not kept with a token"
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
        assert shop.instance.get_materialized_partitions(asset_key(table)) == set(keys)
        assert len({run.run_id for run in shop.instance.get_runs()}) == 1, "all in one run"

        api.events = 15
        api.walked.clear()
        shop.apply()
        assert ids(shop) == list(range(1, 16))
        assert api.tokens == ["8", "10", "12", "14"], "from the last token on"


def test_a_walk_that_breaks_off_goes_on_with_the_segment_that_was_not_published(shop: ShopProject) -> None:
    api = Journal(trouble=lambda asked: said({}, 503) if asked.params.get("starting_after") == "6" else None)
    with journal(shop, api):
        broken = shop.apply()["events"]
        assert "503" in broken["error"]
        assert ids(shop) == [1, 2, 3, 4]
        api.trouble = lambda _asked: None
        api.walked.clear()
        assert shop.apply()["events"]["error"] is None
        assert ids(shop) == list(range(1, 12))
        assert api.tokens == ["4", "6", "8", "10"], "the first segment is not walked again"


def test_a_run_that_is_tried_again_goes_on_behind_the_segment_that_it_was_asked_for(shop: ShopProject) -> None:
    """As Dagster's re-execution of a failed run: for the same partition, which is published by then."""
    api = Journal(trouble=lambda asked: said({}, 503) if asked.params.get("starting_after") == "6" else None)
    first = Wanted(("segment-000001",), due_only=False, partitions=frozenset({"segment-000001"}))
    with journal(shop, api), shop.runtime() as runtime:
        (table,) = runtime.project.tables

        def run(run_id: str, wanted: Wanted) -> list[object]:
            steps = run_chunks(runtime.way(table, runtime.open_spark, run_id=run_id, log=print), wanted)
            return [step.publish() if isinstance(step, PreparedChunk) else step for step in steps]

        assert any(isinstance(step, FailedChunk) for step in run("run-1", first))
        assert ids(shop) == [1, 2, 3, 4]
        api.trouble = lambda _asked: None
        api.walked.clear()
        steps = run("run-2", replace(first, published_by=("run-1",)))
        assert ids(shop) == list(range(1, 12))
        assert api.tokens == ["4", "6", "8", "10"]
        assert [step.key for step in steps if isinstance(step, SkippedChunk)] == ["segment-000001"]


def test_an_audit_db_that_is_lost_costs_nothing(shop: ShopProject) -> None:
    api = Journal()
    with journal(shop, api):
        shop.apply()
        (shop.root / ".hakiri" / "audit.sqlite").unlink()
        api.walked.clear()
        assert shop.apply()["events"]["error"] is None
        assert ids(shop) == list(range(1, 12))
        assert api.tokens == ["8", "10"]


def test_a_segment_that_is_walked_again_replaces_all_that_comes_after_it(shop: ShopProject) -> None:
    api = Journal()
    with journal(shop, api):
        shop.apply()
        api.events = 9
        shop.again("events", "segment-000002")
        assert ids(shop) == list(range(1, 10))
        shop.apply()
        assert ids(shop) == list(range(1, 10))


def test_rows_of_a_segment_that_the_ledger_has_lost_are_replaced_and_not_doubled(shop: ShopProject) -> None:
    with journal(shop, Journal()):
        shop.apply()
        shop.execute("DELETE FROM hakiri.ledger WHERE chunk_key = 'segment-000002'")
        assert shop.apply()["events"]["error"] is None
        assert ids(shop) == list(range(1, 12))


def test_a_last_segment_without_rows_is_no_source_that_came_up_empty(shop: ShopProject) -> None:
    """Where nothing says that there is no more, the first empty page does, in a segment of its own."""
    pages = {"type": "last_record", "param": "starting_after"}
    with journal(shop, Journal(events=8), pagination=pages, load={"mode": "append", "on_miss_action": "alert"}):
        assert shop.apply()["events"]["error"] is None
        assert [key for key, _ in ledger(shop)] == ["segment-000001", "segment-000002", "segment-000003"]
        assert shop.apply()["events"]["warnings"] == []
        assert ids(shop) == list(range(1, 9))


def test_a_token_that_leads_back_is_an_error_and_loads_nothing_twice(shop: ShopProject) -> None:
    """The page after event 8 leads back to 4, where the second segment has begun."""

    def circle(asked: Asked) -> Said | None:
        if asked.params.get("starting_after") == "6":
            return said({"data": [{"id": 7, "what": "event 7"}, {"id": 4, "what": "event 4"}], "has_more": True})
        return None

    with journal(shop, Journal(events=99, trouble=circle)):
        circled = shop.apply()["events"]
        assert "the pages go round in circles" in circled["error"]
        assert ids(shop) == [1, 2, 3, 4]


def test_a_token_that_expired_is_told_with_what_to_do(shop: ShopProject) -> None:
    api = Journal()
    with journal(shop, api):
        shop.apply()
        api.trouble = lambda asked: said({"error": "no such token"}, 400) if "starting_after" in asked.params else None
        told = shop.apply()["events"]["error"]
        assert "does not take the token any more" in told
        assert "segment-000001" in told
        assert ids(shop) == list(range(1, 12)), "what is published stays"


def test_more_passes_at_once_than_tokens_can_bear_are_refused_at_plan(shop: ShopProject) -> None:
    with journal(shop, Journal(), backfill={"parallelism": 4}), shop.runtime() as runtime:
        (plan,) = runtime.plan(runtime.project.tables).plan.tables
    (refusal,) = plan.refusals
    assert "backfill.parallelism = 4 is more than a cursor of the kind opaque-token can bear" in refusal
    assert "set backfill.parallelism to 1" in refusal


def test_rows_of_a_segment_are_ruled_counted_and_upserted_as_any_others(shop: ShopProject) -> None:
    rules = {
        "row_level": [{"type": "not_null", "field": "id"}, {"type": "unique_within_load", "fields": ["id"]}],
        "dataset_level": {"row_count_matches_source": [{}]},
    }
    api = Journal()
    with journal(shop, api, primary_key=["id"], load={"mode": "upsert"}, validate=rules):
        loaded = shop.apply()["events"]
        assert (loaded["error"], loaded["rows"], loaded.get("rows_set_aside", 0)) == (None, 11, 0)
        assert ids(shop) == list(range(1, 12))


def test_a_later_segment_is_not_loaded_before_the_one_that_is_owed(shop: ShopProject) -> None:
    with journal(shop, Journal()):
        shop.apply()
        shop.execute("DELETE FROM hakiri.ledger WHERE chunk_key = 'segment-000001'")
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            way = runtime.way(table, runtime.open_spark, run_id="run-1", log=print)
            with pytest.raises(OutOfOrder, match="segment-000003 comes after segment-000001, which is owed"):
                list(run_chunks(way, Wanted(("segment-000003",), due_only=False, partitions=frozenset())))


def test_modes_that_need_a_cursor_are_refused(shop: ShopProject) -> None:
    load = {"mode": "scd2", "close_missing": False}
    with journal(shop, Journal(), primary_key=["id"], load=load), shop.runtime() as runtime:
        (plan,) = runtime.plan(runtime.project.tables).plan.tables
    assert any("cannot take a table in segments" in refusal for refusal in plan.refusals)
