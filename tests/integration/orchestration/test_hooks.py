"""Hooks from the manifest to the destination, as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.hooks.signature import SIGNATURE, TIMESTAMP, verify
from hakiri_dagster.settings import Settings
from tests.integration.hooks.certificates import Authority, new_authority
from tests.integration.hooks.receivers import Asked, Receiver, answer, receiving
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

SECRET = "correct horse battery staple"
VIEW = "CREATE MATERIALIZED VIEW raw.how_many AS SELECT count(*) AS rows FROM raw.orders"


@pytest.fixture
def loaded(csv_shop: Declare) -> Declare:
    """A shop whose table is there already, with two rows and a materialized view on it."""

    def declare(**table: Any) -> ShopProject:
        shop = csv_shop(columns={"id": "int"}, load={"mode": "truncate"})
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
        shop.apply()
        shop.execute(VIEW)
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n3,c\n")
        return csv_shop(columns={"id": "int"}, **{"load": {"mode": "truncate"}} | table)

    return declare


def refresh(**more: str) -> dict[str, str]:
    return {"type": "refresh_mat_view", "view": "raw.how_many"} | more


BROKEN = {"type": "refresh_mat_view", "view": "raw.nowhere"}


def test_hooks_run_around_the_load_once_a_run(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "pre_hook": refresh(), "post_hook": [refresh(), analyze()]})
    told = shop.apply()["orders"]
    assert (told["hooks"], told["warnings"], told["error"]) == (3, [], None)
    assert shop.rows("SELECT rows FROM raw.how_many") == [(3,)]
    assert shop.rows("SELECT last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'orders'") == [(True,)]
    assert shop.rows("SELECT * FROM hakiri.owed_hook") == []
    assert shop.apply()["orders"]["hooks"] == 0


def analyze() -> dict[str, str]:
    return {"type": "sql", "statement": "ANALYZE {table};"}


def test_a_pre_hook_that_fails_lets_nothing_be_loaded(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "pre_hook": BROKEN})
    told = shop.apply()["orders"]
    assert told["chunks"] == {"done": 0, "failed": 1, "skipped": 0, "pending": 0}
    assert "pre_hook `refresh_mat_view raw.nowhere` failed; nothing was loaded" in told["error"]
    assert shop.column("orders", "id") == [1, 2]
    shop.execute("CREATE MATERIALIZED VIEW raw.nowhere AS SELECT 1 AS one")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [1, 2, 3]


def test_a_pre_hook_that_only_warns_lets_the_load_go_on(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "pre_hook": BROKEN | {"on_error": "warn"}})
    told = shop.apply()["orders"]
    assert told["error"] is None
    assert any("`refresh_mat_view raw.nowhere` failed: " in warning for warning in told["warnings"])
    assert shop.column("orders", "id") == [1, 2, 3]


def test_a_post_hook_that_fails_leaves_the_rows_and_is_owed_until_it_succeeds(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "post_hook": [analyze(), BROKEN, refresh()]})
    told = shop.apply()["orders"]
    assert told["chunks"]["done"] == 1
    assert "post_hook `refresh_mat_view raw.nowhere` failed; the hook is owed until it succeeds" in told["error"]
    assert shop.column("orders", "id") == [1, 2, 3]
    with shop.runtime() as runtime:
        (plan,) = runtime.plan(runtime.project.tables).plan.tables
    assert (plan.verdict, plan.hooks) == (
        "hooks",
        ("refresh_mat_view raw.nowhere", "refresh_mat_view raw.how_many"),
    )
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    assert shop.rows("SELECT rows FROM raw.how_many") == [(2,)]
    shop.execute("CREATE MATERIALIZED VIEW raw.nowhere AS SELECT 1 AS one")
    mended = shop.apply()["orders"]
    assert (mended["hooks"], mended["rows"], mended["error"]) == (2, 0, None)
    assert shop.rows("SELECT rows FROM raw.how_many") == [(3,)]
    assert shop.rows("SELECT * FROM hakiri.owed_hook") == []


def test_a_post_hook_that_only_warns_is_not_owed_any_more_and_the_next_one_runs(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "post_hook": [BROKEN | {"on_error": "warn"}, refresh()]})
    told = shop.apply()["orders"]
    assert (told["error"], told["hooks"]) == (None, 1)
    (warning,) = told["warnings"]
    assert "`refresh_mat_view raw.nowhere` failed: " in warning
    assert shop.rows("SELECT rows FROM raw.how_many") == [(3,)]
    assert shop.rows("SELECT * FROM hakiri.owed_hook") == []


def test_dagster_shows_each_hook_and_a_failed_one_fails_the_run(loaded: Declare) -> None:
    shop = loaded(load={"mode": "truncate", "pre_hook": analyze(), "post_hook": [refresh(), BROKEN]})
    shop.apply()
    records = shop.instance.fetch_observations(dg.AssetKey(["shop", "orders"]), limit=10).records
    observed = [record.asset_observation for record in reversed(records)]
    shown = [{name: value.value for name, value in one.metadata.items()} for one in observed if one is not None]
    assert [(one.get("pre_hook") or one.get("post_hook"), one["outcome"]) for one in shown] == [
        ("sql ANALYZE {table};", "ran"),
        ("refresh_mat_view raw.how_many", "ran"),
        ("refresh_mat_view raw.nowhere", "failed"),
    ]
    assert "does not exist" in shown[-1]["error"]
    (run,) = shop.instance.get_runs(limit=1)
    assert run.status == dg.DagsterRunStatus.FAILURE
    assert shop.instance.get_materialized_partitions(dg.AssetKey(["shop", "orders"])) == {"full"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return new_authority(tmp_path)


@pytest.fixture
def receiver(authority: Authority) -> Iterator[Receiver]:
    with receiving(answer(204), tls=authority.server("127.0.0.1")) as receiver:
        yield receiver


def to_ourselves(shop: ShopProject, authority: Authority) -> None:
    """As an operator who allows it."""
    shop.env = {
        "HAKIRI_WEBHOOKS_TO_LOOPBACK": "true",
        "HAKIRI_WEBHOOKS_CA_FILE": str(authority.certificate),
        "KEY": SECRET,
    }
    shop.settings = Settings.from_env(shop.env | {"HAKIRI_RETRIES": "1", "HAKIRI_RETRY_BASE": "0.01"})


def test_a_webhook_tells_of_the_load_and_is_signed(csv_shop: Declare, authority: Authority, receiver: Receiver) -> None:
    hook = {"type": "webhook", "url": receiver.url("/told?by=us"), "secret": "${KEY}"}
    shop = csv_shop(load={"preHook": hook, "postHook": hook})
    to_ourselves(shop, authority)
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    assert shop.apply()["orders"]["hooks"] == 2
    before, after = receiver.received
    assert verify(SECRET, after.headers[TIMESTAMP], after.body, after.headers[SIGNATURE])
    payload = json.loads(after.body)
    (load_id, key, run_id) = shop.rows("SELECT load_id, chunk_key, run_id FROM hakiri.ledger")[0]
    at = payload.pop("at")
    assert at == shop.rows("SELECT published_at FROM hakiri.ledger")[0][0].isoformat()
    assert payload == {
        "event": "load_published",
        "pipeline": "shop",
        "table": "orders",
        "target": "raw.orders",
        "run_id": run_id,
        "phase": "post_hook",
        "status": "success",
        "rows": 2,
        "chunks": [key],
        "load_ids": [load_id],
    }
    starting = json.loads(before.body)
    assert (starting["event"], starting["rows"], starting["chunks"]) == ("load_starting", None, [key])
    assert before.headers["Idempotency-Key"] != after.headers["Idempotency-Key"]


def test_what_the_manifest_no_longer_says_is_not_run(csv_shop: Declare) -> None:
    shop = csv_shop(load={"postHook": [refresh(), analyze()]})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    assert "how_many" in shop.apply()["orders"]["error"]
    csv_shop(load={"postHook": analyze()})
    told = shop.apply()["orders"]
    assert (told["hooks"], told["error"]) == (1, None)
    assert shop.rows("SELECT described FROM hakiri.owed_hook") == [], "nor if the manifest says it again"


def test_loads_of_a_target_that_is_gone_owe_nothing(csv_shop: Declare) -> None:
    shop = csv_shop(load={"postHook": [refresh()]})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    assert "how_many" in shop.apply()["orders"]["error"]
    before = shop.rows("SELECT load_ids FROM hakiri.owed_hook")
    shop.execute("DROP TABLE raw.orders")
    assert "how_many" in shop.apply()["orders"]["error"]
    after = shop.rows("SELECT load_ids FROM hakiri.owed_hook")
    assert [len(load_ids) for (load_ids,) in after] == [1]
    assert before != after


def test_a_webhook_is_not_led_to_a_private_address(csv_shop: Declare, authority: Authority) -> None:
    elsewhere = answer(307, "Location: https://10.0.0.1/secret")
    with receiving(elsewhere, tls=authority.server("127.0.0.1")) as receiver:
        shop = csv_shop(
            load={"postHook": {"type": "webhook", "url": receiver.url("/t0ken-of-ours"), "secret": "${KEY}"}}
        )
        to_ourselves(shop, authority)
        shop.file("data/orders.csv", "id,v\n1,a\n")
        told = shop.apply()["orders"]
    assert "the receiver redirects elsewhere" in told["error"]
    assert len(receiver.received) == 1
    assert shop.column("orders", "id") == [1]
    logged = [str(entry) for run in shop.instance.get_runs() for entry in shop.instance.all_logs(run.run_id)]
    assert any("redirects elsewhere" in line for line in logged)
    for line in (json.dumps(told), *logged):
        assert "t0ken-of-ours" not in line
        assert SECRET not in line


def test_a_webhook_that_is_told_again_has_the_same_key_in_the_same_run_and_in_the_next(
    csv_shop: Declare, authority: Authority
) -> None:
    answers = iter([503, 503, 204])

    def in_trouble(asked: Asked) -> None:
        answer(next(answers), "Retry-After: 0")(asked)

    with receiving(in_trouble, tls=authority.server("127.0.0.1")) as receiver:
        shop = csv_shop(load={"postHook": {"type": "webhook", "url": receiver.url()}})
        to_ourselves(shop, authority)
        shop.file("data/orders.csv", "id,v\n1,a\n")
        told = shop.apply()["orders"]
        assert "the receiver answered 503" in told["error"]
        assert len(receiver.received) == 2
        assert shop.apply()["orders"]["error"] is None
    assert len(receiver.received) == 3
    assert len({received.headers["Idempotency-Key"] for received in receiver.received}) == 1
    assert len({received.body for received in receiver.received}) == 1
