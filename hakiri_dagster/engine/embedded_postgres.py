"""The project's own PostgreSQL, from the wheel: up while anybody needs it, down when the last one leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

from hakiri_dagster.engine import postgres_cluster
from hakiri_dagster.engine.postgres_holders import Holders
from hakiri_dagster.engine.postgres_home import SERVER, Home, locked
from hakiri_dagster.engine.postgres_location import find, locate
from hakiri_dagster.engine.postgres_watch import watched
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.engine.state_folder import report_file_errors
from hakiri_dagster.errors import EngineError, StateFolderDeleted

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
        with locked(self.home):
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
        with locked(self.home):
            postgres_cluster.query(
                self.home,
                "SELECT format('CREATE DATABASE %I', :'name')"
                " WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec",
                name=name,
            )


@contextmanager
def hold(directory: Path, *, project: str | None = None, durable: bool = True) -> Iterator[Server]:
    """`project` is its name in the manifest. `durable=False` is for tests: it survives kills of processes, not of the
    machine."""
    home = locate(directory, project)
    # On the list, and watched, before anything is started: killed at any moment, we leave nothing behind for ever.
    with locked(home):
        token = Holders(home.cluster).enter()
    entered_by = os.getpid()
    with ExitStack() as stack:
        with report_file_errors(home.cluster, SERVER):
            handle = stack.enter_context(watched(home.cluster))
        try:
            server = Server(home, durable)
            server.ensure_running()
            yield server
        finally:
            # A forked child unwinds this too, but it never entered.
            if os.getpid() == entered_by:
                _leave(home.follow(handle), token)


def start(directory: Path, project: str | None = None) -> Server:
    """Up until `stop`, or until the machine goes down."""
    home = locate(directory, project)
    with locked(home):
        Holders(home.cluster).keep()
        postgres_cluster.ensure_running(home)
    return Server(home)


def stop(directory: Path) -> tuple[ProcessIdentity, ...]:
    """Takes a `start` back. Answers who still needs the server, if anybody does; the last of them stops it."""
    home = find(directory)
    if home is None:
        postgres_cluster.end_deleted_servers(directory.resolve())
        return ()
    with locked(home):
        holders = Holders(home.cluster)
        holders.release()
        if not holders.needed:
            postgres_cluster.stop(home)
        return tuple(holders.living().values())


def stop_if_unneeded(cluster: Path) -> bool:
    """For the watcher. False: somebody is in again, so there is more to watch."""
    postgres_cluster.end_deleted_servers(cluster)
    try:
        home = Home.open(cluster)
        with locked(home):
            holders = Holders(cluster)
            if not holders.needed:
                postgres_cluster.stop(home)
            return not holders.living()
    except (FileNotFoundError, StateFolderDeleted):
        return True


def is_running(directory: Path) -> bool:
    home = find(directory)
    if home is None:
        return False
    with locked(home):
        return postgres_cluster.is_running(home)


def _leave(home: Home, token: str) -> None:
    """Where the folder was deleted, its server is of no use to anyone. A folder that was made since is not ours."""
    try:
        with locked(home):
            holders = Holders(home.cluster)
            holders.leave(token)
            if not holders.needed:
                postgres_cluster.stop(home)
    except StateFolderDeleted:
        postgres_cluster.end_deleted_servers(home.cluster)
