"""`hakiri receive` as a process that is killed, and as one beside a PostgreSQL in trouble."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event
from typing import IO

import psycopg
import pytest

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.hooks.signature import sign

SECRET = "a-secret-of-some-length"
HAKIRI = str(Path(sys.executable).with_name("hakiri"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return declared(tmp_path)


def declared(folder: Path, audit_url: str | None = None) -> Path:
    (folder / "manifests").mkdir()
    audit = "" if audit_url is None else f'[audit]\nurl = "{audit_url}"\n'
    (folder / "manifests" / "hakiri.toml").write_text(
        f"{audit}[[pipeline]]\n"
        'id = "shop"\ntables = ["orders"]\nsource = { connector = "files", config = { path = "data" } }\n'
        'triggers = [{ type = "webhook", secret = "${HOOK_SECRET}" }]\n'
    )
    return folder


@contextmanager
def receiving(project: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [HAKIRI, "--project", str(project), "receive", "--port", "0"]
    environment = {**os.environ, "HOOK_SECRET": SECRET}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, port_told(process.stderr)
        finally:
            process.kill()


def port_told(stderr: IO[str] | None) -> int:
    assert stderr is not None
    line = stderr.readline()
    told = re.search(r"127\.0\.0\.1:(\d+)/hooks", line)
    assert told, line + stderr.read()
    return int(told[1])


def post(port: int, delivery_id: str) -> int | None:
    """None: no answer."""
    body, timestamp = json.dumps({"id": delivery_id}).encode(), str(int(time.time()))
    headers = {
        "X-Hakiri-Timestamp": timestamp,
        "X-Hakiri-Signature": sign(SECRET, timestamp, body),
        "Idempotency-Key": delivery_id,
        "Content-Type": "application/json",
    }
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as http:
            http.request("POST", "/hooks/shop", body, headers)
            return http.getresponse().status
    except (OSError, HTTPException):
        return None


def test_whatever_was_answered_is_there_after_a_kill_and_whoever_was_not_sends_again(project: Path) -> None:
    ids = [str(number) for number in range(200)]
    enough = Event()
    answers: dict[str, int | None] = {}

    def send(delivery_id: str) -> None:
        answers[delivery_id] = post(port, delivery_id)
        if len(answers) >= 40:
            enough.set()

    with ThreadPoolExecutor(8) as senders, receiving(project) as (process, port):
        sent = [senders.submit(send, one) for one in ids]
        assert enough.wait(60)
        process.send_signal(signal.SIGKILL)
        for one in sent:
            one.result()
    answered = {one for one in ids if answers[one] == 202}
    assert 40 <= len(answered) < 200
    assert answered <= stored(project)
    with receiving(project) as (_, port):
        assert {post(port, one) for one in answered} == {200}
        assert {post(port, one) for one in set(ids) - answered} <= {200, 202}
    assert stored(project) == set(ids)


def stored(project: Path) -> set[str]:
    with open_audit(None, project / ".hakiri") as audit:
        found = [delivery.delivery_id for delivery in audit.deliveries.newest(["shop"], 1000)]
    assert len(found) == len(set(found))
    return set(found)


def test_ctrl_c_ends_it_in_peace(project: Path) -> None:
    with receiving(project) as (process, _):
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
        assert (process.returncode, told) == (0, "stopping …\n")


def test_a_postgresql_that_is_locked_or_away_is_no_reason_to_say_yes(tmp_path: Path, database_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    server = database_url.rpartition("/")[0] + "/postgres"
    with receiving(declared(tmp_path, database_url)) as (_, port):
        assert post(port, "1") == 202
        with psycopg.connect(database_url) as locking:
            locking.execute("LOCK TABLE hakiri.deliveries")
            assert post(port, "2") == 503
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            assert post(port, "2") == 503
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
        assert post(port, "2") == 202


def test_a_project_that_takes_no_webhook_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "hakiri.toml").write_text("")
    command = [HAKIRI, "--project", str(tmp_path), "receive"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "no pipeline has a trigger of the type `webhook`" in done.stderr) == (2, True)
