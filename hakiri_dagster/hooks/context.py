"""What a hook is told of the run that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Phase = Literal["pre_hook", "post_hook"]


@dataclass(frozen=True, slots=True)
class HookContext:
    """`target` is `schema.table`. `chunks` are the keys of what is to be loaded (pre_hook), or was (post_hook), in the
    loads `load_ids` of the destination's ledger. `rows`, `run_id` and `at` are those of the loads; before them `rows`
    is None, and `run_id` that of the run that begins."""

    pipeline: str
    table: str
    target: str
    phase: Phase
    run_id: str
    rows: int | None
    chunks: tuple[str, ...]
    load_ids: tuple[int, ...]
    at: datetime
