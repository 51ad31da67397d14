"""What is asked before each request to a source: one method, the same whether there is a budget or not."""

from __future__ import annotations

import math
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from hakiri_dagster.audit.address import AuditAddress
from hakiri_dagster.audit.engine import since_boot
from hakiri_dagster.audit.rate_budgets import BudgetOf, RateBudgetStore, User
from hakiri_dagster.engine.process_identity import ProcessIdentity, current_boot_id, is_dead
from hakiri_dagster.errors import AuditError, AuditUnavailable, HeldBack
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning.rate_window import SECOND, Given, Wait

T = TypeVar("T")

PATIENCE_SECONDS: Final = 300.0
HURRIED_SECONDS: Final = 5.0
"""Within a tick, for the audit DB and for a permit."""
_STALE_SECONDS: Final = 60.0
"""A permit whose holder slept so long is given back: its lease must leave time for the request."""
_KEEP_OPEN_SECONDS: Final = 1.0
_TELLING_SECONDS: Final = 10.0


class SharedPermits:
    """A budget that all workers of a pipeline share, on whatever host. Several threads may use one."""

    def __init__(
        self,
        budget: BudgetOf,
        rate: Rate,
        address: AuditAddress,
        user: User,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        longest_wait: float = math.inf,
        machine: str | None = None,
    ) -> None:
        """`patience_seconds`: for the audit DB. `longest_wait`: seconds for a permit, all in all."""
        self._told = (budget, rate, address, user, patience_seconds, longest_wait, machine or _machine())
        self._budget, self._rate, self._address, self._user = budget, rate, address, user
        self._patience_seconds, self._longest_wait, self._machine = self._told[4:]
        self._opening = threading.Lock()
        self._opened: tuple[int, RateBudgetStore, Callable[[], object]] | None = None

    def __reduce__(self) -> tuple[Callable[..., SharedPermits], tuple[object, ...]]:
        """Connections stay where they are."""
        return _restored, self._told

    def __repr__(self) -> str:
        return f"SharedPermits({self._budget.pipeline_id!r}, {self._rate})"

    @contextmanager
    def permit(self, chunk: str = "") -> Iterator[int]:
        number, wait_ms = self._given()
        user = User(self._user.run_id, self._user.table, chunk)
        try:
            yield wait_ms
        except BaseException:
            self._tell(lambda store: store.in_doubt(self._budget, number, user, wait_ms))
            raise
        self._tell(lambda store: store.ended(self._budget, self._rate, number, user, wait_ms))

    def _given(self) -> tuple[int, int]:
        """Also how many milliseconds were waited for it."""
        number, wait_ms = None, 0
        try:
            while True:
                asked = since_boot()
                answer = self._asked(number)
                if isinstance(answer, Wait):
                    number = answer.number
                    if wait_ms / 1000 + answer.microseconds / SECOND > self._longest_wait:
                        raise self._used_up(answer)
                    wait_ms += self._sleep(answer.microseconds / SECOND)
                elif since_boot() - asked < _STALE_SECONDS:
                    return answer.number, wait_ms
                else:
                    self._tell(partial(RateBudgetStore.unused, budget=self._budget, number=answer.number))
                    number = None
        except (HeldBack, KeyboardInterrupt, GeneratorExit, SystemExit):
            if number is not None:
                self._tell(partial(RateBudgetStore.gone, budget=self._budget, number=number))
            raise

    def _used_up(self, wait: Wait) -> HeldBack:
        free = datetime.now(UTC) + timedelta(microseconds=wait.freed_in)
        return HeldBack(
            f"the budget of {self._rate} requests is used up until about {free:%H:%M:%S} UTC",
            hint="a tick does not wait for it: a later one looks again",
        )

    def _asked(self, number: int | None) -> Given | Wait:
        """Before it waits it looks whether those are still alive whom it waits for."""
        holder = str(ProcessIdentity.current())
        ask = partial(RateBudgetStore.ask, budget=self._budget, rate=self._rate, holder=holder)
        answer, others = self._patiently(partial(ask, number=number))
        if isinstance(answer, Given) or not (dead := _dead_among(others - {holder})):
            return answer
        return self._patiently(partial(ask, number=answer.number, dead=dead))[0]

    def _patiently(self, work: Callable[[RateBudgetStore], T], at_most: float | None = None) -> T:
        """An audit DB that is locked, or away for a moment, is waited for."""
        at_most = self._patience_seconds if at_most is None else at_most
        began, pause = since_boot(), 0.05
        while True:
            try:
                return work(self._store())
            except AuditUnavailable as error:
                waited = since_boot() - began
                if waited >= at_most:
                    raise type(error)(
                        f"{error.what}, for {waited:.0f} s, and nothing goes without a permit from it",
                        where=error.where,
                        hint=error.hint,
                    ) from error
            self._close()
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(2 * pause, 5.0)

    def _tell(self, work: Callable[[RateBudgetStore], None]) -> None:
        """What is not heard costs time only: a permit counts until its lease is over."""
        with suppress(AuditError):
            self._patiently(work, min(_TELLING_SECONDS, self._patience_seconds))

    def _sleep(self, seconds: float) -> int:
        if seconds > _KEEP_OPEN_SECONDS:
            self._close()
        began = since_boot()
        time.sleep(seconds)
        return round((since_boot() - began) * 1000)

    def _store(self) -> RateBudgetStore:
        with self._opening:
            if self._opened is None or self._opened[0] != os.getpid():  # a fork does not inherit connections
                self._refuse_other_machines()
                transactions = self._address.open()
                close = weakref.finalize(self, transactions.close)
                self._opened = os.getpid(), RateBudgetStore(transactions), close
            return self._opened[1]

    def _close(self) -> None:
        with self._opening:
            if self._opened is not None and self._opened[0] == os.getpid():
                self._opened[2]()
                self._opened = None

    def _refuse_other_machines(self) -> None:
        if self._address.file is not None and self._machine != _machine():
            raise AuditError(
                "the audit DB is a file of another machine, so the workers cannot share its budget",
                where=self._address.file,
                hint="give `[audit] url` a PostgreSQL that all workers reach, or take the budget out",
            )


def _restored(
    budget: BudgetOf,
    rate: Rate,
    address: AuditAddress,
    user: User,
    patience_seconds: float,
    longest_wait: float,
    machine: str,
) -> SharedPermits:
    return SharedPermits(
        budget, rate, address, user, patience_seconds=patience_seconds, longest_wait=longest_wait, machine=machine
    )


def _machine() -> str:
    """The boot alone: containers of one host may share a file."""
    return current_boot_id().partition("/")[0]


def _dead_among(holders: Collection[str]) -> frozenset[str]:
    return frozenset(holder for holder in holders if is_dead(holder))
