"""GitHub and Stripe, played by a server on this machine, from their pages to PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.integration.connectors.rest import github_api
from tests.integration.connectors.rest.api_server import Answer, ApiServer, Asked, Said, serving
from tests.integration.connectors.rest.github_api import Github
from tests.integration.connectors.rest.stripe_api import Stripe
from tests.integration.orchestration.conftest import ShopProject
from tests.unit.manifest.samples import SEED_JSON

NOW = datetime.now(UTC).replace(microsecond=0)
REPO = "OpenHackersClub/gctrl"


def ago(**units: float) -> datetime:
    return NOW - timedelta(**units)


@contextmanager
def played(shop: ShopProject, answer: Answer, base: str, pipeline: dict[str, Any]) -> Iterator[ApiServer]:
    with serving(answer) as api:
        shop.env = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true", "STRIPE_KEY": Stripe.key}
        shop.settings = replace(shop.settings, webhooks_to_loopback=True)
        config = pipeline["source"]["config"] | {"base_url": api.url + base, "retry": {"first_pause": 0.01}}
        shop.manifest(pipeline | {"source": pipeline["source"] | {"config": config}})
        yield api


def in_turn(*troubles: Said | None) -> Callable[[Asked, int], Said | None]:
    left = list(troubles)
    return lambda _asked, _n: left.pop(0) if left else None


def named_as_the_seed_does(github: Github) -> Answer:
    return lambda asked: github.answer(replace(asked, path=asked.path.replace(REPO, github_api.REPO)))


def test_the_seeds_example_loads_as_it_stands(shop: ShopProject) -> None:
    """Through the limits that GitHub sets, and a connection that breaks off in the middle of an answer."""
    github = Github(per_page=3)
    for number in range(1, 6):
        github.issue(number, ago(days=9 * number), state="closed")
        github.comment(number, ago(days=9 * number))
    for number in range(6, 11):
        github.pull(number, ago(days=9 * number))
    limits = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "0")]
    trouble = (Said(b"{}", 403, limits), Said(b"[" * 4000, cut=100), Said(b"<html>", 502), Said(b"{}", 429))
    github.trouble = in_turn(*[None] * 13, *trouble)
    with played(shop, named_as_the_seed_does(github), "", json.loads(SEED_JSON)) as api:
        first = shop.apply()
        assert {name: (t["error"], t["rows"]) for name, t in first.items()} == {
            "issues": (None, 10), "pull_requests": (None, 5), "comments": (None, 5),
        }  # fmt: skip
        assert shop.column("issues", "number") == list(range(1, 11))
        assert shop.rows("SELECT number FROM raw.issues WHERE pull_request IS NULL ORDER BY 1") == [
            (number,) for number in range(1, 6)
        ]
        github.pull(7, ago(minutes=1), title="changed")
        github.comment(11, ago(minutes=1))
        api.asked.clear()
        again = shop.apply()
        asked_again = len(api.asked)
    assert {name: t["error"] for name, t in again.items()} == dict.fromkeys(again)
    assert shop.rows("SELECT number, title FROM raw.pull_requests WHERE title = 'changed'") == [(7, "changed")]
    assert shop.column("pull_requests", "number") == list(range(6, 11))
    assert shop.column("comments", "id") == [1000 * n for n in (1, 2, 3, 4, 5, 11)]
    assert asked_again == 3 * (2 + 2 + 1), "two pages a table at the plan and at the run, and one with what is new"


def test_each_of_several_repositories_has_a_history_of_its_own(shop: ShopProject) -> None:
    repos = {"one/a": Github(), "two/b": Github()}
    repos["one/a"].issue(1, ago(days=400))
    for number, repo in enumerate(repos.values(), start=2):
        repo.issue(number, ago(days=10 * number))

    def answer(asked: Asked) -> Said:
        owner, name, rest = asked.path.removeprefix("/repos/").split("/", 2)
        return repos[f"{owner}/{name}"].answer(replace(asked, path=f"/repos/{github_api.REPO}/{rest}"))

    source = {"connector": "github", "config": {"repos": list(repos)}}
    pipeline = {"id": "gh", "source": source, "tables": ["issues"], "backfill": {"rate_budget": "1000/min"}}
    with played(shop, answer, "", pipeline) as api:
        assert shop.apply()["issues"]["error"] is None
        found = shop.rows("SELECT repo, number FROM raw.issues ORDER BY 2")
        assert found == [("one/a", 1), ("one/a", 2), ("two/b", 3)]
        repos["two/b"].issue(4, ago(minutes=1))
        api.asked.clear()
        again = shop.apply()["issues"]
        assert (again["error"], again["chunks"]["done"]) == (None, 1)
        assert {asked.path.split("/")[2] for asked in api.asked if "since" in asked.params} == {"two"}
    assert shop.rows("SELECT repo FROM raw.issues WHERE number = 4") == [("two/b",)]


STRIPE: dict[str, Any] = {
    "id": "pay",
    "source": {"connector": "stripe", "config": {"api_key": "${STRIPE_KEY}"}},
    "tables": ["charges", "customers"],
    "backfill": {"start_from": str(ago(days=70).date()), "rate_budget": "1000/min"},
}


def test_objects_of_stripe_are_loaded_in_windows_and_then_what_was_created(shop: ShopProject) -> None:
    stripe = Stripe(limit=2)
    for number in range(7):
        stripe.put("charges", f"ch_{number}", ago(days=9 * number), amount=100 * number)
    stripe.put("customers", "cus_1", ago(days=1), email="ann@example.com")
    with played(shop, stripe.answer, "/v1", STRIPE) as api:
        first = shop.apply()
        assert {name: (t["error"], t["rows"]) for name, t in first.items()} == {
            "charges": (None, 7), "customers": (None, 1),
        }  # fmt: skip
        api.asked.clear()
        unchanged = shop.apply()
        assert {name: t["chunks"]["done"] for name, t in unchanged.items()} == {"charges": 0, "customers": 0}
        assert len(api.asked) == 2, "nothing is new, and a page each told so"
        stripe.put("charges", "ch_7", NOW + timedelta(seconds=1), amount=700)
        assert shop.apply()["charges"]["error"] is None
    assert shop.column("charges", "id") == [f"ch_{n}" for n in range(8)]
    assert shop.rows("SELECT created FROM raw.charges WHERE id = 'ch_1'") == [(ago(days=9),)]
    assert shop.rows("SELECT email FROM raw.customers") == [("ann@example.com",)]
