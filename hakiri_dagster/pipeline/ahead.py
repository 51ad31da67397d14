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
    items: Sequence[Item],
    work: Callable[[Item], Result],
    *,
    ahead: int,
    abandon: Callable[[Result], None],
    hurry: Callable[[], None],
) -> Iterator[tuple[Item, Result | HakiriError]]:
    """`ahead` items are worked on at once; what was finished and never asked for is abandoned. `hurry` makes work come
    to an end that nobody waits for any more."""

    def outcome(item: Item) -> Result | HakiriError:
        try:
            return work(item)
        except HakiriError as error:
            return error

    waiting = deque(items)
    running: deque[tuple[Item, Future[Result | HakiriError]]] = deque()
    with ThreadPoolExecutor(max_workers=ahead, thread_name_prefix="prepare") as pool:
        try:
            while waiting or running:
                while waiting and len(running) < ahead:
                    item = waiting.popleft()
                    running.append((item, pool.submit(outcome, item)))
                item, future = running.popleft()
                yield item, future.result()
        finally:
            if running:
                hurry()
            for _, future in running:
                unused = future.result()
                if not isinstance(unused, HakiriError):
                    abandon(unused)
