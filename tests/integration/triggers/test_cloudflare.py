"""Messages of a Cloudflare Queue, pulled from a server on loopback that plays its API."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.errors import AuditFull, QueueRefused, QueueUnavailable, UnsafeUrl
from hakiri_dagster.manifest.trigger_spec import CloudflareQueueTrigger
from hakiri_dagster.orchestration import queue_sensor
from hakiri_dagster.settings import Settings
from hakiri_dagster.triggers.cloudflare import CloudflareQueue
from hakiri_dagster.triggers.intake import Reader, Taken, take_in
from hakiri_dagster.triggers.posting import Limits
from hakiri_dagster.triggers.registry import SharedQueue
from tests.integration.triggers.cloudflare_server import ACCOUNT, ASIDE, QUEUE, TOKEN, Cloud, Trouble, cloud

SHOP = Reader("shop", "pipeline_id")
OURS = {"pipeline_id": "shop"}


@pytest.fixture(scope="module")
def server() -> Iterator[Cloud]:
    with cloud() as made:
        yield made


@pytest.fixture
def cf(server: Cloud) -> Cloud:
    server.queues = {QUEUE: [], ASIDE: []}
    server.troubles, server.asked = [], []
    return server


def trigger(cf: Cloud, **more: Any) -> CloudflareQueueTrigger:
    given = {"account_id": ACCOUNT, "queue_id": QUEUE, "token": TOKEN, "base_url": cf.url} | more
    return CloudflareQueueTrigger(type="cloudflare_queue", **given)


def take(cf: Cloud, audit: AuditDb, *readers: Reader, lease: int = 60, limits: Limits = Limits(), **more: Any) -> Taken:  # noqa: B008  # frozen
    queue = CloudflareQueue(trigger(cf, **more), allow_loopback=True, lease_seconds=lease, limits=limits)
    taken = take_in(queue, readers or (SHOP,), audit.deliveries, end=time.monotonic() + 20)
    assert taken.refused is None
    return taken


def pending(audit: AuditDb, pipeline_id: str = "shop") -> int:
    return audit.deliveries.numbers(pipeline_id)["pending"]


def test_messages_are_stored_and_then_acknowledged(cf: Cloud, audit: AuditDb) -> None:
    cf.send(*[OURS] * 60)
    taken = take(cf, audit)
    assert (taken.stored, taken.known, taken.foreign) == (60, 0, [])
    assert (pending(audit), cf.queues[QUEUE]) == (60, [])


@pytest.mark.parametrize(
    ("content_type", "body"), [("json", OURS), ("text", json.dumps(OURS)), ("bytes", json.dumps(OURS).encode())]
)
def test_a_message_of_every_content_type_is_read(cf: Cloud, audit: AuditDb, content_type: str, body: Any) -> None:
    cf.send(body, content_type=content_type)
    assert take(cf, audit).stored == 1


def test_json_that_is_not_packed_is_read_as_well(cf: Cloud, audit: AuditDb) -> None:
    cf.send("", content_type="text")
    cf.queues[QUEUE][0].body, cf.queues[QUEUE][0].content_type = json.dumps(OURS), "json"
    assert take(cf, audit).stored == 1


def test_a_message_is_acknowledged_only_when_it_is_stored(
    cf: Cloud, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_arrivals: object) -> None:
        raise AuditFull("the audit DB cannot grow")

    cf.send(OURS)
    with monkeypatch.context() as patched:
        patched.setattr(audit.deliveries, "store", full)
        with pytest.raises(AuditFull):
            take(cf, audit, lease=0)
    assert len(cf.queues[QUEUE]) == 1
    assert take(cf, audit).stored == 1


def test_what_was_stored_and_not_acknowledged_is_known_when_it_comes_again(cf: Cloud, audit: AuditDb) -> None:
    cf.send(OURS)
    pulled = [_envelope(cf.pull(QUEUE, {"batch_size": 1, "visibility_timeout_ms": 0}))]
    cf.troubles = [pulled[0], (503, {}, b"")]
    with pytest.raises(QueueUnavailable):
        take(cf, audit)
    assert (pending(audit), len(cf.queues[QUEUE])) == (1, 1)
    assert (take(cf, audit).known, pending(audit), cf.queues[QUEUE]) == (1, 1, [])


def _envelope(result: Any) -> Trouble:
    return 200, {}, json.dumps({"success": True, "errors": [], "result": result}).encode()


def test_what_is_for_nobody_is_left_alone_and_holds_up_nobody(cf: Cloud, audit: AuditDb) -> None:
    cf.send("<xml/>", content_type="text")
    cf.send({"pipeline_id": "other"}, [], *[OURS] * 3)
    cf.send(OURS, content_type="v8")
    taken = take(cf, audit)
    assert [one.reason for one in taken.foreign] == [
        "it is no JSON",
        "it is for the pipeline `other`, which no trigger of this queue belongs to",
        "it is no JSON object with a `pipeline_id`",
        "its content type cannot be read",
    ]
    assert (pending(audit), len(cf.queues[QUEUE])) == (3, 4)


def test_what_is_for_nobody_goes_where_the_trigger_says_if_it_can(cf: Cloud, audit: AuditDb) -> None:
    cf.send("<xml/>", content_type="text")
    cf.send(OURS, content_type="v8")
    cf.send(b"\xff\xfe\x00", content_type="bytes")
    take(cf, audit, aside_queue_id=ASIDE)
    assert [kept.body for kept in cf.queues[ASIDE]] == ["<xml/>"]
    assert [kept.content_type for kept in cf.queues[QUEUE]] == ["v8", "bytes"], "what can be kept as it is only there"


def test_of_what_is_put_aside_each_batch_is_acknowledged_at_once(cf: Cloud, audit: AuditDb) -> None:
    """So that its leases live, and with one request."""
    cf.send(*[{"pipeline_id": "other"}] * 60)
    assert len(take(cf, audit, aside_queue_id=ASIDE).foreign) == 60
    assert (len(cf.queues[ASIDE]), cf.queues[QUEUE]) == (60, [])
    actions = [path.rpartition("/")[2] for path in cf.asked]
    assert actions == ["pull", *["messages"] * 50, "ack", "pull", *["messages"] * 10, "ack", "pull"]


def test_the_certificates_of_the_machine_are_read_once_for_all_requests(
    cf: Cloud, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[None] = []
    create = ssl.create_default_context

    def counted(**named: Any) -> ssl.SSLContext:
        made.append(None)
        return create(**named)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    cf.send(*[{"pipeline_id": "other"}] * 3)
    take(cf, audit, aside_queue_id=ASIDE)
    assert (len(cf.asked), len(made)) == (6, 1)


WAITED_FOR: dict[str, tuple[Trouble, str]] = {
    "too many requests": ((429, {"Retry-After": "120"}, b""), "answered 429"),
    "its own trouble": ((500, {}, b"<html>"), "answered 500"),
    "a gateway's page": ((502, {"Content-Type": "text/html"}, b"<html>Bad gateway</html>"), "answered 502"),
    "a page that is no JSON": ((200, {"Content-Type": "text/html"}, b"<html>Hello</html>"), "no JSON"),
    "half of its JSON": ((200, {}, b'{"success": true, "result": {"messages": ['), "no JSON"),
}
REFUSED: dict[str, tuple[Trouble, str]] = {
    "no success": ((200, {}, b'{"success": false, "errors": [{"code": 10013}]}'), "no success (10013)"),
    "a list": ((200, {}, b"[]"), "no success"),
    "no messages": ((200, {}, b'{"success": true, "result": {}}'), "no list of messages"),
    "a message without a lease": (
        (200, {}, b'{"success": true, "result": {"messages": [{"id": "1", "body": ""}]}}'),
        "a message without an id or a lease",
    ),
    "moved": ((301, {"Location": "http://169.254.169.254/"}, b""), "answered 301"),
    "no consumer": ((405, {}, b""), "answered 405"),
}


@pytest.mark.parametrize("of", WAITED_FOR)
def test_trouble_that_may_pass_is_waited_for(cf: Cloud, audit: AuditDb, of: str) -> None:
    trouble, told = WAITED_FOR[of]
    cf.send(OURS)
    cf.troubles = [trouble]
    with pytest.raises(QueueUnavailable, match=told.replace("(", r"\(")):
        take(cf, audit)
    assert take(cf, audit).stored == 1


@pytest.mark.parametrize("of", REFUSED)
def test_trouble_that_stays_is_told_with_what_to_do(cf: Cloud, audit: AuditDb, of: str) -> None:
    trouble, told = REFUSED[of]
    cf.troubles = [trouble]
    with pytest.raises(QueueRefused) as raised:
        take(cf, audit)
    assert told in raised.value.what
    assert raised.value.hint
    assert len(cf.asked) == 1


@pytest.mark.parametrize(
    ("more", "hint"),
    [({"token": "another-token"}, "`token`"), ({"queue_id": "d" * 32}, "`queue_id`"), ({"account_id": "d" * 32}, "`a")],
)
def test_a_bad_token_or_id_is_told_without_either(cf: Cloud, audit: AuditDb, more: dict[str, str], hint: str) -> None:
    with pytest.raises(QueueRefused) as told:
        take(cf, audit, **more)
    assert hint in str(told.value.hint)
    assert TOKEN not in str(told.value)
    assert "another-token" not in str(told.value)


def test_an_answer_that_is_too_large_is_not_read_to_its_end(cf: Cloud, audit: AuditDb) -> None:
    cf.troubles = [(200, {}, b" " * 2000)]
    with pytest.raises(QueueRefused, match="is larger than"):
        take(cf, audit, limits=Limits(answer_bytes=1000))


def test_nobody_there_is_waited_for(cf: Cloud, audit: AuditDb) -> None:
    with pytest.raises(QueueUnavailable, match="cannot be reached"):
        take(cf, audit, base_url="http://127.0.0.1:9")


def test_this_machine_is_asked_only_where_the_operator_allows_it(cf: Cloud) -> None:
    with pytest.raises(UnsafeUrl):
        CloudflareQueue(trigger(cf), allow_loopback=False).receive()
    assert cf.asked == []


def test_who_asks_to_be_left_alone_is(cf: Cloud, audit: AuditDb) -> None:
    cf.troubles = [(429, {"Retry-After": "120"}, b"")]
    shared = SharedQueue(trigger(cf), (SHOP,))
    settings = Settings(webhooks_to_loopback=True)
    fetched = queue_sensor.fetch_from(shared, settings, audit, time.monotonic() + 20, lambda _: None)
    assert fetched.rest == 120
    (alert,) = audit.alerts.newest()
    assert (alert.kind, alert.severity, alert.subject) == ("queue_trouble", "warning", QUEUE)
