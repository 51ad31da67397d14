"""What was published and is not there any more: told by the plan, healed without a row lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.cli.explain import explain
from hakiri_dagster.orchestration.dagster_home import (
    PROJECT_VARIABLE,
    URL_VARIABLE,
    opened_instance,
    psycopg2_url,
)
from hakiri_dagster.orchestration.partitions import partitions_of, reconcile
from hakiri_dagster.orchestration.wiped import chunks_not_shown
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.rewinding import Wish, rewind, stretch_of
from hakiri_dagster.planning.plan import TablePlan
from hakiri_dagster.settings import Settings
from tests.integration.orchestration.conftest import ShopProject

IDS = list(range(1, 6))


def plan(shop: ShopProject) -> TablePlan:
    with shop.runtime() as runtime:
        (table,) = runtime.plan(runtime.project.tables, look_for_gaps=True).plan.tables
    return table


def phase(shop: ShopProject) -> Any:
    with shop.runtime() as runtime:
        return runtime.audit.status("shop")["phase"]


@pytest.fixture
def days(shop: ShopProject) -> ShopProject:
    """Four windows, of which the last one has two loads."""
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.days AS SELECT n AS id, make_date(2024, n, 10) AS day"
        " FROM generate_series(1, 4) AS n"
    )
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [{"name": "days", "incremental": "day"}]})
    shop.apply()
    shop.execute("INSERT INTO src.days VALUES (5, '2024-04-20')")
    shop.apply()
    assert (plan(shop).gaps, phase(shop)) == ((), "streaming")
    return shop


@pytest.mark.parametrize(
    "lost", ["TRUE", "chunk_key = '2024-04'", "load_id = (SELECT max(load_id) FROM hakiri.ledger)"]
)
def test_a_ledger_that_somebody_has_deleted_from_is_healed_without_a_double(days: ShopProject, lost: str) -> None:
    days.execute(f"DELETE FROM hakiri.ledger WHERE {lost}")
    planned = plan(days)
    assert {gap.key for gap in planned.gaps} == set(planned.loads)
    assert all(gap.owed for gap in planned.gaps)
    assert "published before, of which the ledger knows nothing any more: 2024-0" in "\n".join(explained(days))
    with days.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        remember(runtime.audit, survey, survey.due)  # as a tick does
    assert phase(days) == "backfilling"
    assert plan(days).gaps == planned.gaps, "also when the audit DB has taken note"
    days.apply()
    assert days.column("days", "id") == IDS
    assert (plan(days).gaps, phase(days)) == ((), "streaming")


def test_a_ledger_and_an_audit_db_that_are_both_lost_double_nothing(days: ShopProject) -> None:
    days.execute("DELETE FROM hakiri.ledger")
    for path in (days.root / ".hakiri").glob("audit.sqlite*"):
        path.unlink()
    days.apply()
    assert days.column("days", "id") == IDS


def test_rows_of_others_and_of_other_places_stay_when_a_lost_load_is_replaced(days: ShopProject) -> None:
    days.execute("DELETE FROM hakiri.ledger WHERE chunk_key = '2024-01'; DELETE FROM src.days WHERE id = 1")
    days.execute("INSERT INTO src.days VALUES (6, '2024-01-11'); INSERT INTO raw.days VALUES (7, '2024-01-12', NULL)")
    days.execute("INSERT INTO raw.days SELECT 8, '1999-01-01', min(_hakiri_load_id) FROM raw.days")
    days.apply()
    assert days.column("days", "id") == [2, 3, 4, 5, 6, 7, 8]


def test_rows_that_somebody_deleted_are_told_with_what_loads_them_again_and_are_not_loaded(days: ShopProject) -> None:
    days.execute("DELETE FROM raw.days WHERE day < '2024-03-01'")
    planned = plan(days)
    assert (planned.verdict, [(gap.key, gap.owed) for gap in planned.gaps]) == (
        "nothing",
        [("2024-01", False), ("2024-02", False)],
    )
    told = "\n".join(explained(days))
    assert "2 chunks, 2024-01 to 2024-02, are published, and no row is in the target any more" in told
    assert "hakiri backfill rewind shop --table days --from 2024-01-01 --to 2024-03-01 --reason WHY" in told
    assert days.apply()["days"]["chunks"]["done"] == 0, "whoever deleted them may have meant to"
    assert phase(days) == "streaming"
    rewound(days, "2024-01-01", "2024-03-01")
    assert phase(days) == "backfilling"
    assert days.apply()["days"]["chunks"]["done"] == 2
    assert days.column("days", "id") == IDS
    assert (plan(days).gaps, phase(days)) == ((), "streaming")


def test_rows_of_files_that_somebody_deleted_are_read_again(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(path="data/", incremental="day", columns={"day": "date"})
    shop.file("data/a.csv", "id,day\n1,2024-01-05\n2,2024-02-05\n3,\n")
    shop.file("data/b.csv", "id,day\n4,2024-02-06\n5,2024-03-05\n")
    shop.apply()
    shop.execute("DELETE FROM raw.orders WHERE day >= '2024-02-01' AND day < '2024-03-01'")
    assert [gap.key for gap in plan(shop).gaps] == ["2024-02"]
    rewound(shop, "2024-02-01", "2024-03-01")
    assert shop.apply()["orders"]["chunks"]["done"] == 1
    assert shop.column("orders", "id") == [1, 2, 3, 4, 5]
    assert plan(shop).gaps == ()


@pytest.mark.parametrize("how", ["TRUNCATE raw.days", "DELETE FROM raw.days"])
def test_an_emptied_target_is_told(days: ShopProject, how: str) -> None:
    days.execute(how)
    assert [gap.key for gap in plan(days).gaps] == ["2024-01", "2024-02", "2024-03", "2024-04"]


def test_a_dropped_target_is_a_gap_until_it_is_loaded_again(days: ShopProject) -> None:
    days.execute("DROP TABLE raw.days")
    assert [(gap.key, gap.owed) for gap in plan(days).gaps] == [(f"2024-0{n}", True) for n in range(1, 5)]
    days.apply()
    assert days.column("days", "id") == IDS
    assert plan(days).gaps == ()


def test_an_asset_that_somebody_wiped_in_the_ui_shows_as_done_again(days: ShopProject) -> None:
    asset = dg.AssetKey(["shop", "days"])
    with pytest.raises(NotImplementedError):  # so this need not be told
        days.instance.wipe_asset_partitions(asset, ["2024-01"])
    days.instance.wipe_assets([asset])
    assert days.instance.get_materialized_partitions(asset) == set()
    with days.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        reconcile(days.instance, table, partitions_of(table, survey.source, survey.stored_plan), survey)
    assert days.instance.get_materialized_partitions(asset) == {f"2024-0{n}" for n in range(1, 5)}


def test_what_dagster_does_not_show_is_told_when_asked_for(days: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAGSTER_HOME", URL_VARIABLE, PROJECT_VARIABLE):
        monkeypatch.setenv(name, "")  # to be set back
    days.settings = Settings(dagster_url=days.url)
    with days.runtime() as runtime:
        tables = [(table, runtime.survey(table)) for table in runtime.project.tables]
        assert chunks_not_shown(runtime, tables) == {("shop", "days"): tuple(f"2024-0{n}" for n in range(1, 5))}
        ((table, survey),) = tables
        with opened_instance(days.root, psycopg2_url(days.url)) as instance:
            reconcile(instance, table, partitions_of(table, survey.source, survey.stored_plan), survey)
        assert chunks_not_shown(runtime, tables) == {("shop", "days"): ()}


def rewound(shop: ShopProject, lower: str, upper: str) -> None:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey, wish = runtime.survey(table), Wish(lower, upper, "they are wanted", "ada")
        assert rewind(runtime, survey, stretch_of(survey, wish), wish).rewind_id is not None


def explained(shop: ShopProject) -> list[str]:
    with shop.runtime() as runtime:
        return explain(runtime.plan(runtime.project.tables, look_for_gaps=True).plan).splitlines()


def test_chunks_that_another_target_has_are_not_told_as_lost(days: ShopProject) -> None:
    def declare(target: str) -> None:
        source = {"connector": "postgres", "config": {"url": days.url, "schema": "src"}}
        days.manifest(
            {"id": "shop", "source": source, "tables": [{"name": "days", "target": target, "incremental": "day"}]}
        )

    declare("days.v2")
    assert [(gap.owed, gap.published_to) for gap in plan(days).gaps] == [(True, "raw.days")] * 4
    told = "\n".join(explained(days))
    assert "4 of them were published to raw.days before, and their rows stay there: 2024-01 … 2024-04" in told
    assert "knows nothing" not in told
    days.apply()
    assert (plan(days).gaps, days.column("days", "id"), days.column_of("raw", "days.v2", "id")) == ((), IDS, IDS)
    declare("others")
    days.execute('TRUNCATE raw."days.v2"')
    assert {(gap.owed, gap.published_to) for gap in plan(days).gaps} == {(True, None)}
