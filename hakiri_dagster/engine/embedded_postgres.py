"""The project's own PostgreSQL, from the wheel: up while anybody needs it, down when the last one leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

from hakiri_dagster.engine import postgres_cluster
from hakiri_dagster.engine.postgres_holders import Holders
from hakiri_dagster.engine.postgres_home import Home, locked
from hakiri_dagster.engine.postgres_watch import watched
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.errors import EngineError

_LOOK_SECONDS = 0.25


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

    @contextmanager
    def kept_running(self) -> Iterator[None]:
        """While others use it, who would not call `ensure_running`: a server that is killed comes back by itself."""
        over = Event()
        keeper = Thread(target=self._keep, args=[over], name="postgres-keeper", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()

    def _keep(self, over: Event) -> None:
        while not over.wait(_LOOK_SECONDS):
            if postgres_cluster.is_gone(self.home):
                try:
                    self.ensure_running()
                except EngineError:
                    continue  # whoever needs it next is told why it does not start

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
    # On the list, and watched, before anything is started: killed at any moment, we leave nothing behind for ever.
    with locked(directory):
        token = Holders(directory).enter()
    entered_by = os.getpid()
    with watched(directory):
        try:
            yield _running(directory, durable=durable)
        finally:
            # A forked child unwinds this too, but it never entered.
            if os.getpid() == entered_by:
                _leave(directory, token)


def start(directory: Path) -> Server:
    """Up until `stop`, or until the machine goes down."""
    directory = directory.absolute()
    with locked(directory):
        home = Home.open(directory)
        Holders(directory).keep()
        postgres_cluster.ensure_running(home)
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


def stop_if_unneeded(directory: Path) -> bool:
    """For the watcher. False: somebody is in again, so there is more to watch."""
    with locked(directory):
        holders = Holders(directory)
        if not holders.needed:
            postgres_cluster.stop(Home.open(directory))
        return not holders.living()


def is_running(directory: Path) -> bool:
    directory = directory.absolute()
    if not directory.exists():
        return False
    with locked(directory):
        return postgres_cluster.is_running(Home.open(directory))


def _running(directory: Path, *, durable: bool) -> Server:
    with locked(directory):
        home = Home.open(directory)
        postgres_cluster.ensure_running(home, durable=durable)
    return Server(home, durable)


def _leave(directory: Path, token: str) -> None:
    with locked(directory):
        holders = Holders(directory)
        holders.leave(token)
        if not holders.needed:
            postgres_cluster.stop(Home.open(directory))
