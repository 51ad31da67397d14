"""Work on the next items while the current one is still being used; results in order, errors as values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hakiri_dagster.errors import HakiriError

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    items: Sequence[Item], work: Callable[[Item], Result], *, ahead: int, abandon: Callable[[Result], None]
) -> Iterator[tuple[Item, Result | HakiriError]]:
    """`ahead` items are worked on at once; what was finished and never asked for is abandoned."""
    waiting = deque(items)
    running: deque[tuple[Item, Future[Result]]] = deque()
    with ThreadPoolExecutor(max_workers=ahead, thread_name_prefix="prepare") as pool:
        try:
            while waiting or running:
                while waiting and len(running) < ahead:
                    item = waiting.popleft()
                    running.append((item, pool.submit(work, item)))
                item, future = running.popleft()
                yield item, _outcome(future)
        finally:
            for _, future in running:
                outcome = _outcome(future)
                if not isinstance(outcome, HakiriError):
                    abandon(outcome)


def _outcome(future: Future[Result]) -> Result | HakiriError:
    try:
        return future.result()
    except HakiriError as error:
        return error
