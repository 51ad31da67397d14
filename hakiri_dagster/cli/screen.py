"""Where people read: as wide as the terminal, and wide enough for tables where there is none."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

_WIDTH_WITHOUT_TERMINAL = 160


def screen() -> Console:
    return Console(soft_wrap=True, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)


def grid(texts: tuple[str, ...], numbers: tuple[str, ...] = ()) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in texts:
        made.add_column(title, overflow="fold")
    for title in numbers:
        made.add_column(title, justify="right")
    return made
