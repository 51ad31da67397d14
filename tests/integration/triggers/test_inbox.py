"""The inbox as its senders meet it: a real server on loopback, a real audit DB."""

from __future__ import annotations

import hmac
import json
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import event

from hakiri_dagster.audit.database import SQLITE_FILE, AuditDb
from hakiri_dagster.errors import AuditBusy, AuditFull
from hakiri_dagster.hooks.signature import sign
from hakiri_dagster.hooks.signed_post import send
from hakiri_dagster.manifest.trigger_spec import WebhookTrigger
from hakiri_dagster.triggers.inbox import Inbox, Limits
from hakiri_dagster.triggers.receiving import Door, Reception

SECRET = "a-secret-of-some-length"
SHOP = Door("shop", (WebhookTrigger(type="webhook", secret=SECRET, max_body_kib=4),))
REPO = Door("repo", (WebhookTrigger(type="webhook", secret=SECRET, scheme="github"),))
BODY = b'{"order": 1}'
AS_USUAL = Limits()
UNPROVEN = (
    b"POST /hooks/shop HTTP/1.1\r\nHost: x\r\nX-Hakiri-Timestamp: 1\r\nX-Hakiri-Signature: sha256=%s\r\n" % (b"0" * 64)
    + b"Content-Length: %d\r\n"
)
"""Whether it is good shows when the body is there."""


@dataclass
class Senders:
    inbox: Inbox
    told: list[str] = field(default_factory=list)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], method: str = "POST") -> tuple[int, Any]:
        with closing(HTTPConnection("127.0.0.1", self.inbox.port, timeout=10)) as http:
            http.request(method, path, body, {"Content-Type": "application/json", **headers})
            return answer(http.getresponse())

    def signed(self, body: bytes = BODY, path: str = "/hooks/shop", **headers: str) -> tuple[int, Any]:
        timestamp = str(int(time.time()))
        own = {"X-Hakiri-Timestamp": timestamp, "X-Hakiri-Signature": sign(SECRET, timestamp, body)}
        return self.post(path, body, own | {name.replace("_", "-"): value for name, value in headers.items()})

    def raw(self, *pieces: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.inbox.port), timeout=10) as connection:
            for piece in pieces:
                connection.sendall(piece)
            return b"".join(iter(lambda: connection.recv(4096), b""))


def answer(response: HTTPResponse) -> tuple[int, Any]:
    text = response.read()
    return response.status, json.loads(text) if text else None


@contextmanager
def listening(audit: AuditDb, limits: Limits = AS_USUAL) -> Iterator[Senders]:
    told: list[str] = []
    reception = Reception({"shop": SHOP, "repo": REPO}, audit.deliveries)
    with Inbox("127.0.0.1", 0, reception, told.append, limits) as inbox:
        thread = Thread(target=inbox.serve_forever, args=(0.01,))
        thread.start()
        yield Senders(inbox, told)
        inbox.shutdown()
        thread.join()


@pytest.fixture
def senders(audit: AuditDb) -> Iterator[Senders]:
    with listening(audit) as made:
        yield made


def kept(audit: AuditDb) -> list[tuple[str, str, str, int]]:
    return [
        (d.pipeline_id, d.delivery_id, d.state, d.body_bytes)
        for d in reversed(audit.deliveries.newest(["shop", "repo"], 100))
    ]


def test_a_delivery_is_stored_before_it_is_answered(senders: Senders, audit: AuditDb) -> None:
    status, document = senders.signed(Idempotency_Key="order-1")
    assert (status, document) == (202, {"delivery": "order-1", "state": "accepted"})
    assert kept(audit) == [("shop", "order-1", "pending", len(BODY))]
    assert senders.told == ["shop: accepted, delivery order-1"]


def test_what_our_own_webhooks_send_is_taken(senders: Senders, audit: AuditDb) -> None:
    url = f"http://127.0.0.1:{senders.inbox.port}/hooks/shop"
    for _ in range(2):
        send(url, {"event": "load"}, secret=SECRET, idempotency_key="shop/orders/7", allow_loopback=True)
    assert [found[1] for found in kept(audit)] == ["shop/orders/7"]


def test_a_replay_is_answered_and_starts_nothing_again(senders: Senders, audit: AuditDb) -> None:
    timestamp = str(int(time.time()))
    caught = {"X-Hakiri-Timestamp": timestamp, "X-Hakiri-Signature": sign(SECRET, timestamp, BODY)}
    assert senders.post("/hooks/shop", BODY, caught)[0] == 202
    assert senders.post("/hooks/shop", BODY, caught)[0] == 200
    under_another_id = senders.post("/hooks/shop", BODY, caught | {"Idempotency-Key": "made up"})
    assert under_another_id[0] == 200
    assert len(kept(audit)) == 1


def test_a_delivery_that_is_sent_again_with_a_new_signature_is_known_by_its_id(
    senders: Senders, audit: AuditDb
) -> None:
    signed_again = {"X-Hakiri-Timestamp": str(int(time.time()) - 9)}
    signed_again["X-Hakiri-Signature"] = sign(SECRET, signed_again["X-Hakiri-Timestamp"], BODY)
    assert senders.signed(Idempotency_Key="1")[0] == 202
    assert senders.post("/hooks/shop", BODY, signed_again | {"Idempotency-Key": "1"})[0] == 200
    assert len(kept(audit)) == 1


def test_the_same_id_for_another_pipeline_is_another_delivery(senders: Senders, audit: AuditDb) -> None:
    signature = "sha256=" + hmac.new(SECRET.encode(), BODY, "sha256").hexdigest()
    github = {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": "1", "X-GitHub-Event": "push"}
    assert senders.post("/hooks/repo", BODY, github)[0] == 202
    assert senders.signed(Idempotency_Key="1")[0] == 202
    assert [found[0] for found in kept(audit)] == ["repo", "shop"]


def test_of_many_that_send_the_same_at_once_one_is_the_first(senders: Senders, audit: AuditDb) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = [found.result() for found in [pool.submit(senders.signed, Idempotency_Key="1") for _ in range(8)]]
    assert sorted(status for status, _ in answers) == [200] * 7 + [202]
    assert len(kept(audit)) == 1


def test_a_body_that_is_no_json_is_taken_if_it_does_not_say_that_it_is(senders: Senders) -> None:
    assert senders.signed(b"ok=1", Content_Type="application/x-www-form-urlencoded")[0] == 202
    assert senders.signed(b"", Content_Type="text/plain")[0] == 202


def signed_by(secret: str) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {"X-Hakiri-Timestamp": timestamp, "X-Hakiri-Signature": sign(secret, timestamp, BODY)}


def test_a_wrong_signature_is_refused_and_told_without_the_senders_words(senders: Senders, audit: AuditDb) -> None:
    status, document = senders.post("/hooks/shop", BODY, signed_by("another-secret-than-that"))
    assert (status, document) == (401, {"error": "its signature is wrong"})
    assert senders.told == ["shop: refused with 401: its signature is wrong"]
    assert kept(audit) == []


@pytest.mark.parametrize(
    "path",
    ["/hooks/none", "/hooks/", "/hooks", "/", "/hooks/shop/", "/hooks/../hooks/shop", "/HOOKS/shop", "/hooks/shop%0a"],
)
def test_there_is_nothing_anywhere_else(senders: Senders, path: str) -> None:
    assert senders.signed(path=path)[0] == 404


def test_json_that_is_none_is_refused(senders: Senders, audit: AuditDb) -> None:
    assert senders.signed(b'{"order": ')[0] == 400
    assert senders.signed(b"[" * 4000)[0] == 400
    assert kept(audit) == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_posts_are_taken(senders: Senders, method: str) -> None:
    assert senders.post("/hooks/shop", b"", {}, method)[0] == 405


def test_a_body_that_is_too_long_is_refused_before_it_is_read(senders: Senders, audit: AuditDb) -> None:
    assert senders.signed(b"1" * 4097)[0] == 413
    assert senders.signed(b"1" * 2_000_000)[0] == 413  # a sender that is still at it gets its answer, too
    head = b"POST /hooks/shop HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n"
    assert senders.raw(head + b"\r\n").startswith(b"HTTP/1.1 413 ")
    assert senders.raw(head + b"Expect: 100-continue\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    assert senders.signed(b"1" * 4096)[0] == 202
    assert len(kept(audit)) == 1


def test_a_body_that_nobody_may_have_signed_is_not_even_waited_for(senders: Senders) -> None:
    head = b"POST /hooks/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    assert b" 401 " in senders.raw(head % b"shop" + b"\r\n").splitlines()[0]
    assert b" 400 " in senders.raw(head % b"repo" + b"X-Hub-Signature-256: sha1=0\r\n\r\n").splitlines()[0]
    assert b" 401 " in senders.raw(head % b"shop" + b"Expect: 100-continue\r\n\r\n").splitlines()[0]


def test_beyond_as_much_as_is_read_at_once_the_next_is_told_to_come_again(audit: AuditDb) -> None:
    with (
        listening(audit, Limits(bytes_at_once=1000)) as senders,
        socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as announced,
    ):
        announced.sendall(UNPROVEN % 1000 + b"\r\n")
        assert senders.signed(b"1" * 1000)[0] == 202
        status, document = senders.signed(b"1" * 1001, Idempotency_Key="1")
        assert (status, document) == (503, {"error": "too much is being read at the same time; send it again"})
        assert senders.signed(b"2" * 1000, Idempotency_Key="2")[0] == 202


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (411, [b""]),
        (411, [b"Transfer-Encoding: chunked", b"", b"1\r\nx\r\n0\r\n\r\n"]),
        (411, [b"Content-Length: 1", b"Transfer-Encoding: chunked", b""]),
        (400, [b"Content-Length: -1", b""]),
        (400, [b"Content-Length: 1e3", b""]),
        (400, [b"Content-Length: 1", b"Content-Length: 2", b""]),
    ],
)
def test_a_request_that_does_not_say_how_long_it_is_is_refused(
    senders: Senders, status: int, lines: list[bytes]
) -> None:
    sent = b"\r\n".join([b"POST /hooks/shop HTTP/1.1", b"Host: x", *lines, b""])
    assert senders.raw(sent).startswith(b"HTTP/1.1 %d " % status)


def test_who_speaks_no_http_is_told_so(senders: Senders) -> None:
    assert b"400" in senders.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert senders.signed()[0] == 202


def test_a_sender_that_breaks_off_leaves_nothing(senders: Senders, audit: AuditDb) -> None:
    with socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as connection:
        connection.sendall(UNPROVEN % 10 + b"\r\n12345")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert kept(audit) == []


def test_who_sends_drop_by_drop_is_sent_away_and_holds_up_nobody(audit: AuditDb) -> None:
    with (
        listening(audit, Limits(seconds=0.3)) as senders,
        socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as slow,
        socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as silent,
    ):
        slow.sendall(UNPROVEN % 1000 + b"\r\n1")
        assert senders.signed()[0] == 202
        assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert silent.recv(4096) == b""


def test_beyond_as_many_as_are_read_at_once_the_next_is_told_to_come_again(audit: AuditDb) -> None:
    with (
        listening(audit, Limits(at_once=1)) as senders,
        socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as silent,
    ):
        silent.sendall(b"POST ")
        with socket.create_connection(("127.0.0.1", senders.inbox.port), timeout=10) as turned_away:
            assert turned_away.recv(4096).startswith(b"HTTP/1.1 503 ")


class TestAnAuditDbInTrouble:
    def test_a_locked_one_is_no_reason_to_say_yes(self, senders: Senders, audit: AuditDb, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            status, document = senders.signed(Idempotency_Key="1")
        assert (status, document) == (503, {"error": "it cannot be stored now; send it again"})
        assert "is locked by another process" in senders.told[0]
        assert senders.signed(Idempotency_Key="1")[0] == 202

    def test_one_that_is_gone_is_none_either(self, senders: Senders, audit: AuditDb, tmp_path: Path) -> None:
        assert senders.signed(Idempotency_Key="1")[0] == 202
        audit.close()
        for file in tmp_path.glob(f"{SQLITE_FILE}*"):
            file.unlink()
        (tmp_path / SQLITE_FILE).write_bytes(b"something else altogether" * 100)
        status, _ = senders.signed(Idempotency_Key="2")
        assert status == 503

    @pytest.mark.parametrize("kind", [AuditFull, AuditBusy])
    def test_the_sender_is_told_nothing_about_it(
        self, kind: type[Exception], senders: Senders, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_arrivals: object) -> None:
            raise kind("the audit DB cannot grow", where="/var/lib/hakiri")

        monkeypatch.setattr(audit.deliveries, "store", refuse)
        assert senders.signed()[1] == {"error": "it cannot be stored now; send it again"}
        assert senders.told == ["shop: refused with 503: /var/lib/hakiri: the audit DB cannot grow"]


def test_a_full_disk_is_no_reason_to_say_yes(audit: AuditDb, senders: Senders) -> None:
    let_the_disk_be_full_soon(audit)
    answers = [senders.signed(b"%d" % number, Idempotency_Key=f"{number}" * 50)[0] for number in range(100)]
    assert set(answers) == {202, 503}
    assert answers.count(202) == len(kept(audit))


def let_the_disk_be_full_soon(audit: AuditDb) -> None:
    engine = audit._transactions._engine
    pages = audit._transactions.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one())
    event.listen(engine, "connect", lambda connection, _entry: connection.execute(f"PRAGMA max_page_count = {pages}"))
    engine.dispose()
