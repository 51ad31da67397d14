"""Messages of SQS, taken off a real server on loopback that plays it (moto)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.errors import AuditFull, QueueRefused, QueueUnavailable
from hakiri_dagster.manifest.trigger_spec import SqsTrigger
from hakiri_dagster.orchestration import queue_sensor
from hakiri_dagster.settings import Settings
from hakiri_dagster.triggers.intake import Reader, Taken, take_in
from hakiri_dagster.triggers.registry import SharedQueue
from hakiri_dagster.triggers.sqs import SqsQueue

SHOP = Reader("shop", "pipeline_id")
OURS = json.dumps({"pipeline_id": "shop"})
OTHERS = json.dumps({"pipeline_id": "other"})
KEYS = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "aws-secret-of-some-length"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@dataclass
class Amazon:
    client: Any
    audit: AuditDb

    def queue(self, name: str, **attributes: str) -> str:
        return str(self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def send(self, url: str, *bodies: str) -> None:
        for body in bodies:
            self.client.send_message(QueueUrl=url, MessageBody=body)

    def left(self, url: str) -> int:
        """Those that are leased to somebody included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(attributes[name]) for name in names)

    def take(self, url: str, *readers: Reader, lease: int = 60, **more: Any) -> Taken:
        queue = opened(url, lease=lease, **more)
        try:
            taken = take_in(queue, readers or (SHOP,), self.audit.deliveries, end=time.monotonic() + 20)
            assert taken.refused is None
            return taken
        finally:
            queue.close()

    def pending(self, pipeline_id: str = "shop") -> int:
        return self.audit.deliveries.numbers(pipeline_id)["pending"]


def trigger(url: str, **more: Any) -> SqsTrigger:
    return SqsTrigger(type="sqs", queue_url=url, region="eu-central-1", **KEYS, **more)


def opened(url: str, lease: int = 60, **more: Any) -> SqsQueue:
    return SqsQueue(trigger(url, **more), allow_loopback=True, lease_seconds=lease)


@pytest.fixture
def amazon(endpoint: str, audit: AuditDb) -> Amazon:
    client = boto3.client(
        "sqs",
        region_name="eu-central-1",
        endpoint_url=endpoint,
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )
    return Amazon(client, audit)


def test_messages_are_stored_and_then_gone_from_the_queue(amazon: Amazon) -> None:
    url = amazon.queue("orders")
    amazon.send(url, *[OURS] * 23)
    taken = amazon.take(url)
    assert (taken.stored, taken.known, taken.foreign) == (23, 0, [])
    assert (amazon.pending(), amazon.left(url)) == (23, 0)
    assert amazon.take(url) == Taken()


def test_a_message_is_deleted_only_when_it_is_stored(amazon: Amazon, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_arrivals: object) -> None:
        raise AuditFull("the audit DB cannot grow")

    url = amazon.queue("kept")
    amazon.send(url, OURS)
    with monkeypatch.context() as patched:
        patched.setattr(amazon.audit.deliveries, "store", full)
        with pytest.raises(AuditFull):
            amazon.take(url, lease=0)
    assert amazon.left(url) == 1
    assert amazon.take(url).stored == 1


KILLED = """
import os, signal, sys, time
from pathlib import Path
from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.triggers.intake import Reader, take_in
from hakiri_dagster.triggers.sqs import SqsQueue
from hakiri_dagster.manifest.trigger_spec import SqsTrigger

class Killed(SqsQueue):
    def delete(self, messages):
        os.kill(os.getpid(), signal.SIGKILL)

trigger = SqsTrigger.model_validate_json(sys.argv[1])
with open_audit(None, Path(sys.argv[2])) as audit:
    queue = Killed(trigger, allow_loopback=True, lease_seconds=0)
    take_in(queue, [Reader("shop", "pipeline_id")], audit.deliveries, end=time.monotonic() + 20)
"""


def test_who_is_killed_between_storing_and_deleting_stores_nothing_twice(amazon: Amazon, tmp_path: Path) -> None:
    url = amazon.queue("killed")
    amazon.send(url, OURS, OURS)
    given = trigger(url).model_dump_json()
    killed = subprocess.run([sys.executable, "-c", KILLED, given, str(tmp_path)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (amazon.pending(), amazon.left(url)) == (2, 2)
    taken = amazon.take(url)
    assert (taken.stored, taken.known) == (0, 2)
    assert (amazon.pending(), amazon.left(url)) == (2, 0)


FOREIGN = {
    "no JSON": ("<xml/>", "it is no JSON"),
    "no end": ("[" * 100_000, "it is no JSON"),
    "no object": ("[1]", "it is no JSON object with a `pipeline_id`"),
    "no id": ('{"pipeline": "shop"}', "it is no JSON object with a `pipeline_id`"),
    "a number": ('{"pipeline_id": 7}', "it is no JSON object with a `pipeline_id`"),
    "an odd id": ('{"pipeline_id": "a secret; and more"}', "its `pipeline_id` is none"),
    "another": (
        '{"pipeline_id": "other"}',
        "it is for the pipeline `other`, which no trigger of this queue belongs to",
    ),
}


def test_what_is_for_nobody_is_left_alone_and_holds_up_nobody(amazon: Amazon) -> None:
    url = amazon.queue("mixed")
    amazon.send(url, *(body for body, _ in FOREIGN.values()), *[OURS] * 12)
    taken = amazon.take(url)
    assert [one.reason for one in taken.foreign] == [reason for _, reason in FOREIGN.values()]
    assert (taken.stored, amazon.pending(), amazon.left(url)) == (12, 12, len(FOREIGN))


def test_what_is_left_alone_and_comes_at_once_again_is_not_gone_through_for_ever(amazon: Amazon) -> None:
    url = amazon.queue("again")
    amazon.send(url, "nothing", "nothing else")
    assert len(amazon.take(url, lease=0).foreign) == 2


def test_what_is_for_nobody_goes_where_the_trigger_says(amazon: Amazon) -> None:
    url, aside = amazon.queue("taken"), amazon.queue("aside.fifo", FifoQueue="true")
    amazon.send(url, "<xml/>", OURS)
    amazon.take(url, aside_queue_url=aside)
    assert (amazon.pending(), amazon.left(url)) == (1, 0)
    (found,) = amazon.client.receive_message(QueueUrl=aside)["Messages"]
    assert found["Body"] == "<xml/>"


def test_pipelines_that_share_a_queue_each_get_what_is_theirs(amazon: Amazon) -> None:
    url = amazon.queue("shared")
    amazon.send(url, OURS, OTHERS, "<xml/>")
    taken = amazon.take(url, SHOP, Reader("other", "pipeline_id"), Reader("all", "anything"))
    assert taken.foreign == []
    assert [amazon.pending(pipeline) for pipeline in ("shop", "other", "all")] == [1, 1, 3]


TROUBLE: dict[str, tuple[Callable[[str], str], type[Exception], str]] = {
    "no such queue": (lambda url: f"{url}-not", QueueRefused, "the queue q-not answered 400 NonExistentQueue"),
    "nobody there": (lambda _: "http://127.0.0.1:9/1/q", QueueUnavailable, "does not answer: EndpointConnectionError"),
}


@pytest.mark.parametrize("of", TROUBLE)
def test_trouble_is_told(amazon: Amazon, of: str) -> None:
    changed, kind, message = TROUBLE[of]
    with pytest.raises(kind) as told:
        amazon.take(changed(amazon.queue("q")))
    assert message in str(told.value)


def test_the_sensor_tells_of_trouble_in_alerts_and_goes_on(amazon: Amazon) -> None:
    url = amazon.queue("watched")
    amazon.send(url, "<xml/>", OURS)
    settings = Settings(webhooks_to_loopback=True)
    end = time.monotonic() + 20
    log: list[str] = []
    for queue_url in (url, f"{url}-not"):
        shared = SharedQueue(trigger(queue_url), (SHOP,))
        queue_sensor.fetch_from(shared, settings, amazon.audit, end, log.append)
    found = {alert.kind: alert for alert in amazon.audit.alerts.newest()}
    assert found["foreign_message"].message == (
        "1 message(s) of the queue watched are for nobody here and stay where they are: it is no JSON"
    )
    assert (found["queue_trouble"].severity, found["queue_trouble"].subject) == ("error", "watched-not")
    assert amazon.pending() == 1
    assert KEYS["secret_access_key"] not in "".join(log)
