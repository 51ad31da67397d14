"""`rate_budget`: who may send a request now, over all workers of a pipeline. `budget_use`: what was given to whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import Connection, func, select, update

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import BUDGET_USE, RATE_BUDGET
from hakiri_dagster.audit.upserts import insert_new, upsert
from hakiri_dagster.errors import AuditError
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning import rate_window
from hakiri_dagster.planning.rate_window import Given, Held, RateWindow, Wait, Waiter

Of = Literal["requests", "writes"]

_STARTS_SECONDS: Final = 1
"""No machine that has lost its power is up again so soon. Of longer windows it must remember what was given."""

_C: Final = RATE_BUDGET.c
_USE: Final = BUDGET_USE.c


@dataclass(frozen=True, slots=True)
class BudgetOf:
    """A pipeline has one budget for requests to its source, and one for writes to its destination."""

    pipeline_id: str
    of: Of = "requests"


@dataclass(frozen=True, slots=True)
class User:
    """Whom a permit is for; nothing is noted outside of runs. `chunk` is empty where it is for none."""

    run_id: str
    table: str
    chunk: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """`wait_ms`: for permits of both kinds."""

    requests: int = 0
    writes: int = 0
    wait_ms: int = 0


class RateBudgetReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def consumed_pct(self, budget: BudgetOf, rate: Rate) -> int:
        """How much of the current window is used up."""
        window, now = self._transactions.read(lambda c: self._read(c, budget)) or (RateWindow(), 0)
        return round(100 * rate_window.seen_at(window, rate, now).used / rate.count)

    def _read(self, connection: Connection, budget: BudgetOf, *, lock: bool = False) -> tuple[RateWindow, int] | None:
        """The moment, too: in microseconds, and not before the row was locked, which may have been waited for."""
        found = select(_C.state_json).where(_C.pipeline_id == budget.pipeline_id, _C.of == budget.of)
        inner = (found.with_for_update() if lock else found).subquery()
        row = connection.execute(
            select(inner.c.state_json, self._transactions.seconds().label("seconds"))
        ).one_or_none()
        return None if row is None else (_from_json(row.state_json), int(row.seconds * 1_000_000))

    def uses(self, run_id: str, pipeline_id: str, table: str) -> dict[str, Use]:
        """By chunk; what is of no chunk is under an empty key."""
        query = select(_USE.chunk_id, _USE.of, _USE.permits, _USE.wait_ms).where(
            _USE.run_id == run_id, _USE.pipeline_id == pipeline_id, _USE.table_name == table
        )
        found: dict[str, Use] = {}
        for row in self._transactions.read(lambda c: c.execute(query).all()):
            use = found.get(row.chunk_id, Use())
            found[row.chunk_id] = replace(use, **{row.of: row.permits}, wait_ms=use.wait_ms + row.wait_ms)
        return found

    def waited_ms(self, run_id: str, pipeline_id: str, table: str, chunk: str) -> int:
        """For permits of both kinds. By the primary key, as a run may have thousands of chunks to ask for."""
        query = select(func.coalesce(func.sum(_USE.wait_ms), 0)).where(
            _USE.run_id == run_id, _USE.pipeline_id == pipeline_id, _USE.table_name == table, _USE.chunk_id == chunk
        )
        return int(self._transactions.read(lambda c: c.execute(query).scalar_one()))


class RateBudgetStore(RateBudgetReader):
    """Each method is one transaction, so that whoever calls may die at any moment in between."""

    def ask(
        self, budget: BudgetOf, rate: Rate, holder: str, *, number: int | None = None, dead: Collection[str] = ()
    ) -> tuple[Given | Wait, frozenset[str]]:
        """Answers also who else holds permits or waits, for whoever can tell which of them are dead."""

        def work(connection: Connection) -> tuple[Given | Wait, frozenset[str]]:
            window, now = self._locked(connection, budget)
            window, answer = rate_window.ask(window, rate, now, holder, number=number, dead=dead)
            _write_back(connection, budget, window)
            return answer, window.holders

        return self._transactions.write(work, kept="surely" if rate.seconds > _STARTS_SECONDS else "usual")

    def ended(self, budget: BudgetOf, rate: Rate, number: int, user: User, wait_ms: int) -> None:
        self._change(budget, lambda window, now: rate_window.ended(window, rate, now, number), user, wait_ms)

    def in_doubt(self, budget: BudgetOf, number: int, user: User, wait_ms: int) -> None:
        self._change(budget, lambda window, now: rate_window.in_doubt(window, now, number), user, wait_ms)

    def unused(self, budget: BudgetOf, number: int) -> None:
        self._change(budget, lambda window, _: rate_window.unused(window, number))

    def gone(self, budget: BudgetOf, number: int) -> None:
        self._change(budget, lambda window, _: rate_window.gone(window, number))

    def _change(
        self,
        budget: BudgetOf,
        change: Callable[[RateWindow, int], RateWindow],
        user: User | None = None,
        wait_ms: int = 0,
    ) -> None:
        def work(connection: Connection) -> None:
            if user is not None and user.run_id:
                _note_use(connection, budget, user, wait_ms)  # before others are kept waiting
            window, now = self._locked(connection, budget)
            _write_back(connection, budget, change(window, now))

        self._transactions.write(work, kept="perhaps")  # a permit that nobody knows the end of counts longer

    def _locked(self, connection: Connection, budget: BudgetOf) -> tuple[RateWindow, int]:
        found = self._read(connection, budget, lock=True)
        if found is None:
            row = {"pipeline_id": budget.pipeline_id, "of": budget.of, "state_json": _to_json(RateWindow())}
            insert_new(connection, RATE_BUDGET, [row])
            found = self._read(connection, budget, lock=True)
        if found is None:
            raise AuditError(f"the budget of {budget.pipeline_id} was taken away", where=self._transactions.where)
        return found


def _write_back(connection: Connection, budget: BudgetOf, window: RateWindow) -> None:
    statement = update(RATE_BUDGET).where(_C.pipeline_id == budget.pipeline_id, _C.of == budget.of)
    connection.execute(statement.values(state_json=_to_json(window)))


def _note_use(connection: Connection, budget: BudgetOf, user: User, wait_ms: int) -> None:
    use = {
        "run_id": user.run_id,
        "pipeline_id": budget.pipeline_id,
        "table_name": user.table,
        "chunk_id": user.chunk,
        "of": budget.of,
        "permits": 1,
        "wait_ms": wait_ms,
    }
    more = {"permits": _USE.permits + 1, "wait_ms": _USE.wait_ms + wait_ms}
    upsert(connection, BUDGET_USE, [use], also=lambda _: more)


def _to_json(window: RateWindow) -> str:
    document = {
        "spent": window.spent,
        "held": [(one.number, one.holder, one.until) for one in window.held],
        "queue": [(one.number, one.holder, one.until) for one in window.queue],
        "next": window.next_number,
    }
    return json.dumps(document, separators=(",", ":"))


def _from_json(text: str) -> RateWindow:
    document: dict[str, Any] = json.loads(text)
    return RateWindow(
        spent=tuple((moment, count) for moment, count in document["spent"]),
        held=tuple(Held(*one) for one in document["held"]),
        queue=tuple(Waiter(*one) for one in document["queue"]),
        next_number=document["next"],
    )
