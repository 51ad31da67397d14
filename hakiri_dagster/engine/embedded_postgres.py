"""The project's own PostgreSQL, from the wheel: up while anybody needs it, down when the last one leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hakiri_dagster.engine import postgres_cluster
from hakiri_dagster.engine.postgres_holders import Holders
from hakiri_dagster.engine.postgres_home import Home, locked
from hakiri_dagster.engine.process_identity import ProcessIdentity


@dataclass(frozen=True, slots=True)
class Server:
    """`port` and `url` are read anew each time, for a server that was started again may have moved."""

    home: Home
    durable: bool = True

    @property
    def port(self) -> int:
        return self.home.port

    def url(self, database: str) -> str:
        user, password = postgres_cluster.SUPERUSER, quote(self.home.password, safe="")
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def ensure_running(self) -> None:
        """To be called after a lost connection: a server that was killed is started again and recovers."""
        with locked(self.home.directory):
            postgres_cluster.ensure_running(self.home, durable=self.durable)

    def ensure_database(self, name: str) -> None:
        with locked(self.home.directory):
            postgres_cluster.query(
                self.home,
                "SELECT format('CREATE DATABASE %I', :'name')"
                " WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec",
                name=name,
            )


@contextmanager
def hold(directory: Path, *, durable: bool = True) -> Iterator[Server]:
    """`durable=False` is for tests: it survives kills of processes, not of the machine."""
    directory = directory.absolute()
    server, token = _enter(directory, durable=durable)
    entered_by = os.getpid()
    try:
        yield server
    finally:
        # A forked child unwinds this too, but it never entered.
        if os.getpid() == entered_by:
            _leave(server.home, token)


def start(directory: Path) -> Server:
    """Up until `stop`, or until the machine goes down."""
    directory = directory.absolute()
    with locked(directory):
        home = Home.open(directory)
        postgres_cluster.ensure_running(home)
        Holders(directory).keep()
    return Server(home)


def stop(directory: Path) -> tuple[ProcessIdentity, ...]:
    """Takes a `start` back. Answers who still needs the server, if anybody does; the last of them stops it."""
    directory = directory.absolute()
    if not directory.exists():
        return ()
    with locked(directory):
        holders = Holders(directory)
        holders.release()
        if not holders.needed:
            postgres_cluster.stop(Home.open(directory))
        return tuple(holders.living().values())


def is_running(directory: Path) -> bool:
    directory = directory.absolute()
    if not directory.exists():
        return False
    with locked(directory):
        return postgres_cluster.is_running(Home.open(directory))


def _enter(directory: Path, *, durable: bool) -> tuple[Server, str]:
    with locked(directory):
        home = Home.open(directory)
        postgres_cluster.ensure_running(home, durable=durable)
        return Server(home, durable), Holders(directory).enter()


def _leave(home: Home, token: str) -> None:
    with locked(home.directory):
        holders = Holders(home.directory)
        holders.leave(token)
        if not holders.needed:
            postgres_cluster.stop(home)
