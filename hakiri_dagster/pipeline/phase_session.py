"""The session that the SQL of one phase of hooks shares, opened when first needed and again after it was lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from hakiri_dagster.destinations.hooks_contract import Attempt, HookSession, Relation
from hakiri_dagster.errors import DestinationUnavailable
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.security.sql_guard import judge_template


class PhaseSession:
    def __init__(self, way: Way, attempt: Attempt | None) -> None:
        self._way = way
        self._attempt = attempt
        self._opened = ExitStack()
        self._session: HookSession | None = None
        self._settings: list[tuple[str, Relation]] = []

    def __enter__(self) -> PhaseSession:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._opened.close()

    def open(self) -> None:
        retried(self._way, self._ready)

    def execute(self, statement: str, relation: Relation) -> Sequence[str]:
        """To be tried again by the caller, in a new session."""
        session = self._ready()
        try:
            lines = session.execute(statement, relation)
        except DestinationUnavailable:
            self._leave()
            raise
        if judge_template(statement).sets:
            self._settings.append((statement, relation))
        return lines

    def _ready(self) -> HookSession:
        """What hooks have set is set anew in a new session."""
        if self._session is None:
            session = self._opened.enter_context(self._way.destination.hook_session(self._way.table, self._attempt))
            for statement, relation in self._settings:
                session.execute(statement, relation)
            self._session = session
        return self._session

    def _leave(self) -> None:
        self._session = None
        self._opened.close()
