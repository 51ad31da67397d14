"""Tables of an API that keeps apart what they hold: each repository has a history of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import dagster as dg
import pytest

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.errors import UsageError
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.orchestration.partitions import partitions_of
from hakiri_dagster.orchestration.requests import tick_ranges
from hakiri_dagster.pipeline.rewinding import Wish, refuse_unknown_parts, rewind, stretch_of
from hakiri_dagster.planning.plan import TablePlan
from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, said, serving
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_rest import ago, written

LINUX, PYTHON = "torvalds/linux", "python/cpython"
ASCENDING: dict[str, Any] = {"lower": "since", "order": "ascending"}
CURSOR: dict[str, Any] = {"incremental": "updated_at", "cursor_params": ASCENDING | {"newest": {"direction": "desc"}}}


@dataclass
class Forge:
    """Issues by repository and number, in pages of two."""

    repos: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {LINUX: {}, PYTHON: {}})
    gone: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)

    def put(self, repo: str, number: int, at: datetime, **more: Any) -> None:
        self.repos[repo][number] = {"number": number, "updated_at": written(at)} | more

    def answer(self, asked: Asked) -> Said:
        repo = unquote(asked.path).removeprefix("/repos/").removesuffix("/issues")
        if repo not in self.repos or repo in self.gone:
            return said({"message": "Not Found"}, 404)
        if repo in self.silent:
            return said({"message": "Try later"}, 503)
        rows = sorted(self.repos[repo].values(), key=lambda row: (row["updated_at"], row["number"]))
        if asked.params.get("direction") == "desc":
            rows.reverse()
        rows = [row for row in rows if row["updated_at"] >= asked.params.get("since", "")]
        page = int(asked.params.get("page", 1))
        kept = "".join(f"{name}={value}&" for name, value in asked.params.items() if name != "page")
        links = {"Link": f'<{asked.path}?{kept}page={page + 1}>; rel="next"'} if page * 2 < len(rows) else {}
        return said(rows[(page - 1) * 2 : page * 2], **links)


@contextmanager
def forging(shop: ShopProject, forge: Forge, *repos: str, **table: Any) -> Iterator[ApiServer]:
    with serving(forge.answer) as api:
        shop.env = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}
        shop.settings = replace(shop.settings, webhooks_to_loopback=True)
        declare(shop, api, *repos, **table)
        yield api


def declare(shop: ShopProject, api: ApiServer, *repos: str, **table: Any) -> None:
    said_of_it = {
        "name": "issues",
        "path": "repos/{repo}/issues",
        "partition_keys": {"repo": list(repos or (LINUX, PYTHON))},
    }
    if table.get("load", {}).get("mode") != "append":
        said_of_it["primary_key"] = ["repo", "number"]
    config = {"base_url": api.url, "pagination": {"type": "link"}, "retry": {"retries": 0}}
    shop.manifest({"id": "forge", "source": {"connector": "rest", "config": config}, "tables": [said_of_it | table]})


def issues(shop: ShopProject) -> list[tuple[str, int]]:
    return shop.rows("SELECT repo, number FROM raw.issues ORDER BY repo, number")  # type: ignore[return-value]


def of(forge: Forge, *repos: str) -> list[tuple[str, int]]:
    return sorted((repo, number) for repo in repos or forge.repos for number in forge.repos[repo])


def correct(forge: Forge) -> None:
    for rows in forge.repos.values():
        for row in rows.values():
            row["title"] = "corrected"


def with_history() -> Forge:
    forge = Forge()
    for month in range(5):
        forge.put(LINUX, month, ago(days=1) - timedelta(days=30 * month))
    for day in range(1, 4):
        forge.put(PYTHON, day, ago(days=day))
    return forge


def statuses(shop: ShopProject) -> dict[str, str]:
    with open_audit(None, shop.root / ".hakiri") as audit:
        return {state.key: state.status for state in audit.chunks.states("forge", "issues")}


def test_each_part_has_windows_of_its_own_and_dagster_shows_both_dimensions(shop: ShopProject) -> None:
    forge = with_history()
    newest = {"newest": {"direction": "desc"}}
    with forging(shop, forge, incremental="updated_at", cursor_params=ASCENDING | newest) as api:
        with shop.runtime() as runtime:
            planned = runtime.plan(runtime.project.tables)
        assert "cursor of the kind partitioned-monotonic: 2 of repo (torvalds/linux, python/cpython)" in explain(
            planned.plan
        )
        told = document(planned.plan)["pipelines"][0]["tables"][0]
        assert (told["cursor_kind"], told["parts"]) == ("partitioned-monotonic", {"repo": [LINUX, PYTHON]})

        first = shop.apply()["issues"]
        assert (first["error"], first["rows"]) == (None, 8)
        assert issues(shop) == of(forge)
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            partitions = partitions_of(table, survey.source, survey.stored_plan)
            assert survey.due_keys == (), "nothing is new"
        assert isinstance(partitions, dg.MultiPartitionsDefinition)
        shown = shop.instance.get_materialized_partitions(asset_key(table))
        assert shown == {chunk.key for chunk in survey.chunks}
        assert {key.split("|")[0] for key in shown} == {"torvalds~2Flinux", "python~2Fcpython"}
        assert statuses(shop) == dict.fromkeys(shown, "done")

        forge.put(PYTHON, 9, ago(minutes=5))
        with shop.runtime() as runtime:
            survey = runtime.survey(table)
            (asked,) = tick_ranges(table, partitions, survey, survey.due_in_turn, shop.instance)
        assert (asked.partition_key,) == survey.due_keys, "a tick asks for what the part owes, and for no other part"
        api.asked.clear()
        again = shop.apply()["issues"]
        assert again["error"] is None
        assert issues(shop) == of(forge)
        linux = [asked for asked in api.asked if "torvalds" in asked.path]
        assert len(linux) <= 4, "the other part is looked at, and not walked"


def test_a_part_that_is_added_plans_only_its_own_chunks_and_one_that_is_taken_out_keeps_its_rows(
    shop: ShopProject,
) -> None:
    forge = with_history()
    with forging(shop, forge, LINUX, **CURSOR) as api:
        shop.apply()
        declare(shop, api, LINUX, PYTHON, **CURSOR)
        with shop.runtime() as runtime:
            ((_, survey),) = runtime.plan(runtime.project.tables).surveys
        assert {key.split("|")[0] for key in survey.due_keys} == {"python~2Fcpython"}
        shop.apply()
        assert issues(shop) == of(forge)

        forge.gone.add(LINUX)
        declare(shop, api, PYTHON, **CURSOR)
        forge.put(PYTHON, 7, ago(minutes=3))
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge)
        with shop.runtime() as runtime:
            (plan,) = runtime.plan(runtime.project.tables).plan.tables
        assert any(f"{LINUX} left the partition keys" in warning for warning in plan.warnings)


def test_a_rewind_and_a_lost_ledger_replace_the_rows_of_their_part_and_no_others(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, load={"mode": "append"}, **CURSOR):
        shop.apply()
        correct(forge)
        del forge.repos[LINUX][3]
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            wish = Wish(f"{ago(days=200):%Y-%m-%d}", f"{ago(days=-40):%Y-%m-%d}", "vendor-side correction", "somebody")
            answer = rewind(runtime, survey, stretch_of(survey, wish), wish)
        assert len(answer.reach.published) == len(survey.chunks)
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge)

        shop.execute("DELETE FROM hakiri.ledger WHERE bounds -> 'part' ->> 'value' = 'torvalds/linux'")
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge), "rows of a load that the ledger has lost are replaced, those of their part"


def test_a_rewind_of_one_part_loads_nothing_of_the_others(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, load={"mode": "append"}, **CURSOR):
        shop.apply()
        correct(forge)
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            with pytest.raises(UsageError, match=r"it has no part torvalds/minix"):
                refuse_unknown_parts(table, survey.source, frozenset({LINUX, "torvalds/minix"}))
            day = f"{ago(days=200):%Y-%m-%d}", f"{ago(days=-40):%Y-%m-%d}"
            wish = Wish(*day, "vendor-side correction", "somebody", frozenset({PYTHON}))
            rewind(runtime, survey, stretch_of(survey, wish), wish)
        assert shop.apply()["issues"]["error"] is None
    assert issues(shop) == of(forge)
    assert {repo for (repo,) in shop.rows("SELECT repo FROM raw.issues WHERE title = 'corrected'")} == {PYTHON}


@pytest.mark.parametrize(("stale", "fresh"), [(LINUX, PYTHON), (PYTHON, LINUX)])
def test_the_last_window_of_each_part_is_asked_whether_it_is_fresh(shop: ShopProject, stale: str, fresh: str) -> None:
    forge = Forge()
    forge.put(stale, 1, ago(hours=3))
    forge.put(fresh, 2, ago(minutes=5))
    fresh_enough = {"dataset_level": {"freshness": {"within_hours": 1, "column": "updated_at"}}}
    with forging(shop, forge, validate=fresh_enough, **CURSOR):
        assert "freshness_updated_at" in shop.apply()["issues"]["error"]
    assert issues(shop) == of(forge, fresh)


def test_parts_without_a_cursor_are_one_chunk(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, load={"mode": "truncate"}):
        loaded = shop.apply()["issues"]
    assert (loaded["error"], loaded["rows"], loaded["chunks"]["done"]) == (None, 8, 1)
    assert issues(shop) == of(forge)


def test_where_an_api_cannot_be_asked_for_a_range_each_part_is_walked_once(shop: ShopProject) -> None:
    forge = with_history()
    start = {"backfill": {"start_from": f"{ago(days=200):%Y-%m-%d}"}}
    with forging(shop, forge, incremental="updated_at", cursor_params={"lower": "since"}, **start) as api:
        loaded = shop.apply()["issues"]
        walks = [asked for asked in api.asked if "since" in asked.params and "page" not in asked.params]
    assert loaded["error"] is None
    assert issues(shop) == of(forge)
    assert len(walks) == 2
    mismatched = "SELECT count(*) FROM raw.issues i JOIN hakiri.ledger l ON l.load_id = i._hakiri_load_id"
    wrong = " WHERE l.bounds -> 'part' ->> 'value' <> i.repo"
    assert shop.rows(mismatched + wrong) == [(0,)], "every row came with a chunk of its own part"


def test_a_record_that_says_another_part_than_it_was_asked_for_is_refused(shop: ShopProject) -> None:
    forge = with_history()
    forge.repos[LINUX][77] = {"number": 77, "updated_at": written(ago(days=1)), "repo": "somebody/else"}
    with forging(shop, forge, load={"mode": "truncate"}):
        loaded = shop.apply()["issues"]
    assert "records have a member `repo` of their own" in loaded["error"]
    assert "give the partition key" in loaded["error"]


def test_a_table_that_loses_its_parts_is_loaded_as_one_and_parts_that_come_back_are_loaded_again(
    shop: ShopProject,
) -> None:
    forge = with_history()
    table: dict[str, Any] = {
        "incremental": "updated_at",
        "cursor_params": ASCENDING | {"newest": {"direction": "desc"}},
        "load": {"mode": "append"},
    }
    with forging(shop, forge, **table) as api:
        shop.apply()
        assert issues(shop) == of(forge)

        declare(shop, api, **table, path=f"repos/{LINUX}/issues", partition_keys={})
        (warning,) = (w for w in planned(shop).warnings if "partition keys" in w)
        assert "no partition keys any more: what was published of python/cpython, torvalds/linux is loaded" in warning
        assert shop.apply()["issues"]["error"] is None
        assert sorted(shop.column("issues", "number")) == sorted(forge.repos[LINUX]), "each once, no others"
        assert not any("partition keys" in warning for warning in planned(shop).warnings)

        declare(shop, api, **table)
        assert shop.apply()["issues"]["error"] is None
        assert [row for row in issues(shop) if row[0] is not None] == of(forge), "of both, from their beginning on"


def test_a_partition_key_of_another_name_is_refused_until_the_target_is_dropped(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR) as api:
        shop.apply()
        renamed: dict[str, Any] = {
            "path": "repos/{repository}/issues",
            "partition_keys": {"repository": [LINUX, PYTHON]},
            "primary_key": ["repository", "number"],
        }
        declare(shop, api, **CURSOR, **renamed)
        assert any("partition key was repo when the table was loaded" in refusal for refusal in planned(shop).refusals)
        assert "and is repository now" in shop.apply()["issues"]["error"]
        assert issues(shop) == of(forge)

        shop.execute("DROP TABLE raw.issues")
        assert planned(shop).refusals == ()
        assert shop.apply()["issues"]["error"] is None
        assert sorted(shop.rows("SELECT repository, number FROM raw.issues")) == of(forge)
        assert set(statuses(shop).values()) == {"done"}


def planned(shop: ShopProject) -> TablePlan:
    with shop.runtime() as runtime:
        (plan,) = runtime.plan(runtime.project.tables).plan.tables
    return plan


def test_a_mode_with_one_mark_a_table_is_refused(shop: ShopProject) -> None:
    forge = with_history()
    load = {"mode": "incremental_watermark", "watermark_column": "updated_at"}
    with forging(shop, forge, load=load, incremental="updated_at", cursor_params=ASCENDING), shop.runtime() as runtime:
        (plan,) = runtime.plan(runtime.project.tables).plan.tables
    assert any("keeps one mark a table" in refusal for refusal in plan.refusals)
