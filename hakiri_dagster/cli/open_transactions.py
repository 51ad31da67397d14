"""Transactions that are open at a source, as `plan --json` and `status --json` name them."""

from __future__ import annotations

from typing import Any

from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.planning.horizon import OpenTransaction


def transaction_document(transaction: OpenTransaction) -> dict[str, Any]:
    """An open transaction of a source, as documents name it."""
    began_at = transaction.began_at
    return {
        "pid": transaction.pid,
        "prepared": transaction.prepared,
        "application": transaction.application,
        "user": transaction.user,
        "state": transaction.state,
        "began_at": None if began_at is None else shown_position("timestamp", began_at),
    }
