"""Members of records for which there is no column: counted where rows are staged, and told of once a chunk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import UNSEEN_COLUMN

_MOST_NAMES: Final = 200
"""An API may make up names for ever."""
_OTHERS: Final = "…"
_TOLD_NAMES: Final = 10


def unseen_in(rows: pa.RecordBatch) -> Counter[str]:
    """How many values each has."""
    if UNSEEN_COLUMN not in rows.schema.names:
        return Counter()
    found = rows.column(UNSEEN_COLUMN)
    if found.null_count == rows.num_rows:
        return Counter()
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(found.drop_null().flatten()).to_pylist()})


def added_up(known: Mapping[str, int], more: Mapping[str, int]) -> Counter[str]:
    total = Counter(known)
    for name, values in more.items():
        total[name if name in total or len(total) < _MOST_NAMES else _OTHERS] += values
    return total


def packed(unseen: Mapping[str, int]) -> str | None:
    return json.dumps(unseen) if unseen else None


def unpacked(text: str | None) -> Mapping[str, int]:
    return json.loads(text) if text else {}


def told_of(unseen: Mapping[str, int]) -> str | None:
    if not unseen:
        return None
    most = Counter(unseen).most_common(_TOLD_NAMES)
    names = ", ".join(
        f"`{_shown(name)}` ({values})" if name != _OTHERS else f"others ({values})" for name, values in most
    )
    more = f" and {len(unseen) - len(most)} more" if len(unseen) > len(most) else ""
    return (
        f"{sum(unseen.values())} value(s) were not loaded, as their members have no column: {names}{more}; "
        "declare them under `columns`, and load the chunk again"
    )


def _shown(name: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in name)
    return plain if len(plain) <= 60 else f"{plain[:60]}…"
