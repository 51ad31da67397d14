"""`hakiri serve` of a project whose sources nobody has looked at yet."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from hakiri_dagster.engine.postgres_settings import free_port
from hakiri_dagster.hooks.signed_post import send
from tests.acceptance.command_line import ProjectFolder, Running, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.interface import Interface, answers
from tests.integration.connectors.rest.api_server import Asked, Said, said, serving

SECRET = "a-secret-of-some-length"


@contextmanager
def served(project: ProjectFolder, *options: str) -> Iterator[tuple[Running, int]]:
    port = free_port()
    serve = project.start("serve", "--port", str(port), *options)
    yield serve, port
    os.killpg(serve.pid, signal.SIGINT)
    assert project.finish(serve).code == 0
    project.assert_no_process_is_left(30)


def test_a_source_that_does_not_answer_keeps_neither_the_inbox_nor_the_ui_closed(new_project: NewProject) -> None:
    project, asked, over = new_project("silent-source"), Event(), Event()
    project.env = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true", "HOOK_SECRET": SECRET}

    def answer(_asked: Asked) -> Said:
        asked.set()
        over.wait()
        return said([])

    with serving(answer) as api:
        config = {"base_url": api.url, "pagination": {"type": "link"}, "timeout": {"read": 600, "total": 600}}
        hook = {"type": "webhook", "secret": "${HOOK_SECRET}"}
        project.pipeline(
            {
                "id": "slow",
                "source": {"connector": "rest", "config": config},
                "tables": [{"name": "items", "path": "items"}],
                "load": {"mode": "truncate"},
                "triggers": [hook],
            }
        )
        inbox = free_port()
        try:
            with served(project, "--inbox-port", str(inbox)) as (serve, port):
                assert eventually(lambda: asked.is_set() or serve.poll() is not None)
                url = f"http://127.0.0.1:{inbox}/hooks/slow"
                assert send(url, {}, secret=SECRET, idempotency_key="a", allow_loopback=True).status == 202
                assert eventually(lambda: answers(port) and Interface(port).knows("slow", "items"))
        finally:
            over.set()


def test_a_cursor_of_ids_that_is_first_seen_while_serve_is_up_is_loaded_without_a_hand(new_project: NewProject) -> None:
    """It was taken for one of moments, as long as there was no row."""
    project = new_project("late-cursor")
    source = {"connector": "files", "config": {"path": "drop", "format": "csv"}}
    triggers = [{"type": "files", "settle": "1s"}]
    table = {"name": "parcels", "incremental": "parcel_id", "load": {"mode": "append"}}
    project.pipeline({"id": "drop", "source": source, "triggers": triggers, "tables": [table]})
    project.file("drop/parcels/.keep", "")
    with served(project) as (serve, port):
        assert eventually(lambda: answers(port) or serve.poll() is not None)
        assert eventually(lambda: Interface(port).knows("drop", "parcels"))
        project.file("drop/parcels/one.csv", "parcel_id\n1\n2\n")
        there = "SELECT to_regclass('public.parcels') IS NOT NULL"
        assert eventually(lambda: project.rows(there) == [(True,)])
        assert eventually(lambda: project.rows("SELECT count(*) FROM public.parcels") == [(2,)])
