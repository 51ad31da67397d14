"""Looking again and again until Ctrl-C, and telling what has changed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import RenderableType
from rich.live import Live

from hakiri_dagster.cli.screen import screen
from hakiri_dagster.errors import HakiriError

SECONDS_BETWEEN_LOOKS = 1.0
_REST_FOR_WORK = 9.0
"""A look at a hundred thousand chunks takes a while: it is to leave the machine to those who load them."""

Seen = TypeVar("Seen")


def watch(look: Callable[[], Seen], show: Callable[[Seen], None], *, seconds: float = SECONDS_BETWEEN_LOOKS) -> None:
    """Ctrl-C is how it ends. What passes, a database that is restarted for one, is told and waited for."""
    shown: Seen | None = None
    trouble: str | None = None
    try:
        while True:
            began = time.monotonic()
            try:
                seen = look()
            except HakiriError as error:
                if error.kind != "transient":
                    raise
                if str(error) != trouble:
                    trouble = str(error)
                    print(f"error: {error}", file=sys.stderr, flush=True)
            else:
                trouble = None
                if seen != shown:
                    show(seen)
                    shown = seen
            time.sleep(max(seconds, _REST_FOR_WORK * (time.monotonic() - began)))
    except KeyboardInterrupt:
        return


@contextmanager
def shown_in_place() -> Iterator[Callable[[RenderableType], None]]:
    """On a terminal: each look takes the place of the one before."""
    with Live(console=screen(), auto_refresh=False) as live:
        yield lambda what: live.update(what, refresh=True)
