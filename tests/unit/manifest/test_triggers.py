"""Triggers in a manifest: what is taken, and what is told before anything is listened to or asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.manifest.trigger_spec import told
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.triggers.registry import queues_of
from tests.unit.manifest.conftest import Load, Read

ENV = {
    "HOOK_SECRET": "a-secret-of-some-length",
    "SHORT": "too-short",
    "AWS_KEY": "AKIAEXAMPLE",
    "AWS_SECRET": "aws-secret-of-some-length",
    "CF_TOKEN": "cf-token-of-some-length",
}
QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
ID = "0123456789abcdef0123456789abcdef"
WEBHOOK = {"type": "webhook", "secret": "${HOOK_SECRET}"}
SQS = {"type": "sqs", "queue_url": QUEUE}
CLOUDFLARE = {"type": "cloudflare_queue", "account_id": ID, "queue_id": ID, "token": "${CF_TOKEN}"}


def pipeline(*triggers: Any, **more: Any) -> dict[str, str]:
    document = {
        "id": "shop",
        "source": {"connector": "files", "config": {"path": "data"}},
        "tables": ["orders"],
        "triggers": list(triggers),
        **more,
    }
    return {"shop.json": json.dumps(document, indent=1)}


def loaded(load: Load, *triggers: Any) -> Pipeline:
    (found,) = load(None, pipeline(*triggers), ENV).pipelines
    return found


def messages(read: Read, *triggers: Any, env: dict[str, str] | None = None) -> list[str]:
    return [problem.message for problem in read(None, pipeline(*triggers), ENV if env is None else env).problems]


def test_a_pipeline_has_as_many_triggers_as_it_says(load: Load) -> None:
    found = loaded(load, WEBHOOK, {**WEBHOOK, "scheme": "github"}, SQS, CLOUDFLARE)
    assert [trigger.secret for trigger in found.webhooks] == [ENV["HOOK_SECRET"]] * 2
    assert [trigger.type for trigger in found.queues] == ["sqs", "cloudflare_queue"]
    assert all(table.told_when for table in found.tables)


def test_a_trigger_is_told_without_its_secrets(load: Load) -> None:
    found = loaded(load, WEBHOOK, SQS, CLOUDFLARE)
    assert [told(trigger, found.id) for trigger in found.triggers] == [
        "webhook: POST /hooks/shop, signed (timestamped)",
        "sqs: orders",
        f"cloudflare_queue: {ID}",
    ]
    assert ENV["HOOK_SECRET"] not in repr(found)
    assert ENV["CF_TOKEN"] not in repr(found)


@pytest.mark.parametrize("name", ["HOOK_SECRET", "AWS_SECRET", "CF_TOKEN"])
def test_secrets_are_never_shown_from_then_on(load: Load, name: str) -> None:
    loaded(load, WEBHOOK, {**SQS, "access_key_id": "${AWS_KEY}", "secretAccessKey": "${AWS_SECRET}"}, CLOUDFLARE)
    assert redact(f"it is {ENV[name]}") == "it is ***"


WRONG: dict[str, tuple[Any, str]] = {
    "no secret": ({"type": "webhook"}, "is missing"),
    "an unset secret": ({"type": "webhook", "secret": "${NOT_SET}"}, "`NOT_SET` is not set"),
    "a written secret": ({"type": "webhook", "secret": "a-secret-of-some-length"}, "is not written into a manifest"),
    "a short secret": ({"type": "webhook", "secret": "${SHORT}"}, "shorter than 16"),
    "an unknown type": ({"type": "kafka"}, "kafka"),
    "no type": ({"secret": "${HOOK_SECRET}"}, "type"),
    "an unknown scheme": ({**WEBHOOK, "scheme": "md5"}, "md5"),
    "no tolerance": ({**WEBHOOK, "tolerance_seconds": 0}, "1"),
    "a header of our own": ({**WEBHOOK, "id_header": "Content-Length"}, "Content-Length"),
    "half of the credentials": ({**SQS, "access_key_id": "${AWS_KEY}"}, "there is no `secret_access_key` with it"),
    "written credentials": (
        {**SQS, "access_key_id": "${AWS_KEY}", "secret_access_key": "abc"},
        "is not written into a manifest",
    ),
    "a queue elsewhere": ({**SQS, "queue_url": "https://sqs.example.com/1/orders"}, "not Amazon's SQS"),
    "a queue of a name like Amazon's": (
        {**SQS, "queue_url": "https://sqs.eu-central-1.amazonaws.com.example.com/1/orders"},
        "not Amazon's SQS",
    ),
    "the metadata of a cloud": ({**SQS, "queue_url": "http://169.254.169.254/latest"}, "is not https"),
    "a queue on this machine": ({**SQS, "queue_url": "https://localhost/1/orders"}, "private network"),
    "a queue without a name": ({**SQS, "queue_url": "https://sqs.eu-central-1.amazonaws.com/"}, "names no queue"),
    "another queue elsewhere": ({**SQS, "aside_queue_url": "https://example.com/1/aside"}, "not Amazon's SQS"),
    "an odd id": ({**CLOUDFLARE, "queue_id": "orders"}, "not an id of Cloudflare's"),
    "a written token": ({**CLOUDFLARE, "token": "abc"}, "is not written into a manifest"),
    "an API in a private network": ({**CLOUDFLARE, "base_url": "https://10.0.0.1/v4"}, "not for everybody"),
    "an API without https": ({**CLOUDFLARE, "base_url": "http://api.example.com/v4"}, "is not https"),
    "an API with a query": ({**CLOUDFLARE, "base_url": "https://api.example.com/v4?a=b"}, "a query"),
}


@pytest.mark.parametrize("of", WRONG)
def test_what_is_wrong_with_a_trigger_is_told_by_validate(read: Read, of: str) -> None:
    trigger, what = WRONG[of]
    found = messages(read, trigger)
    assert len(found) == 1
    assert what in found[0]


def test_the_place_of_a_problem_is_its_own_key(read: Read) -> None:
    (problem,) = read(None, pipeline(WEBHOOK, {**CLOUDFLARE, "token": "abc"}), ENV).problems
    text = pipeline(WEBHOOK, {**CLOUDFLARE, "token": "abc"})["shop.json"].splitlines()[problem.line - 1]
    assert '"token": "abc"' in text


@pytest.mark.parametrize(
    "url",
    [
        QUEUE,
        "https://sqs.us-gov-west-1.amazonaws.com/1/orders",
        "https://sqs.cn-north-1.amazonaws.com.cn/1/orders",
        "https://vpce-0a1b2c-xyz.sqs.eu-central-1.vpce.amazonaws.com/1/orders.fifo",
        "https://eu-central-1.queue.amazonaws.com/1/orders",
    ],
)
def test_every_way_in_which_amazon_writes_a_queue_is_taken_and_names_its_region(load: Load, url: str) -> None:
    assert loaded(load, {**SQS, "queue_url": url}).queues


def test_a_queue_on_this_machine_is_for_who_allows_it_and_names_its_region(read: Read) -> None:
    allowed = {**ENV, "HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}
    local = {**SQS, "queue_url": "http://127.0.0.1:4566/1/orders"}
    assert messages(read, local, env=allowed) == ["the URL names no region"]
    assert messages(read, {**local, "region": "eu-central-1"}, env=allowed) == []


def sharing(read: Read, alpha: dict[str, Any], beta: dict[str, Any]) -> list[str]:
    """What is wrong with two pipelines, of which each has one of the triggers."""
    documents = {}
    for name, trigger in (("alpha", alpha), ("beta", beta)):
        tables = [{"name": "orders", "target": name}]
        documents[f"{name}.json"] = pipeline(trigger, id=name, tables=tables)["shop.json"]
    return [problem.message for problem in read(None, documents, ENV).problems]


LEGACY = "https://eu-central-1.queue.amazonaws.com/123456789012/orders/"
KEYS = {"access_key_id": "${AWS_KEY}", "secret_access_key": "${AWS_SECRET}"}


@pytest.mark.parametrize(
    ("alpha", "beta", "differing"),
    [
        (SQS, {**SQS, "aside_queue_url": f"{QUEUE}-aside"}, "`aside_queue_url`"),
        (SQS, {**SQS, **KEYS}, "`access_key_id`, `secret_access_key`"),
        (SQS, {**SQS, "queue_url": LEGACY, **KEYS}, "`access_key_id`, `secret_access_key`"),
        (CLOUDFLARE, {**CLOUDFLARE, "aside_queue_id": "f" * 32}, "`aside_queue_id`"),
        (CLOUDFLARE, {**CLOUDFLARE, "token": "${AWS_SECRET}"}, "`token`"),
    ],
)
def test_pipelines_that_share_a_queue_read_it_in_one_way(
    read: Read, alpha: dict[str, Any], beta: dict[str, Any], differing: str
) -> None:
    told = [f"the pipeline `alpha` reads the same queue with other settings: {differing}"]
    assert sharing(read, alpha, beta) == told


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        (SQS, {**SQS, "expects": "anything", "region": "eu-central-1"}),
        ({**SQS, "aside_queue_url": f"{QUEUE}-aside"}, {**SQS, "aside_queue_url": f"{QUEUE}-aside/"}),
        (SQS, {**SQS, "queue_url": QUEUE.replace("central", "west"), **KEYS}),
        (SQS, {**SQS, "queue_url": f"{QUEUE}-2", **KEYS}),
        (CLOUDFLARE, {**CLOUDFLARE, "base_url": "https://api.cloudflare.com/client/v4/", "expects": "anything"}),
    ],
)
def test_what_each_of_them_expects_is_its_own_and_other_queues_are_others(
    read: Read, alpha: dict[str, Any], beta: dict[str, Any]
) -> None:
    assert sharing(read, alpha, beta) == []


def test_a_queue_is_the_same_at_each_of_its_urls(load: Load) -> None:
    private = "https://vpce-1a-2b.sqs.eu-central-1.vpce.amazonaws.com/123456789012/orders"
    urls = (QUEUE, LEGACY, private, QUEUE.replace("sqs.eu", "SQS.eu"))
    (shared,) = queues_of([loaded(load, *({**SQS, "queue_url": url} for url in urls))])
    assert [reader.pipeline_id for reader in shared.readers] == ["shop"]
