"""What changing the load mode or a key of a table does to a target that holds its rows. Pure: told by `plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakiri_dagster.manifest.load_spec import LoadMode


@dataclass(frozen=True, slots=True)
class LastLoad:
    """How the rows that are there were loaded. None: of loads by a version that did not note it."""

    mode: LoadMode
    upsert_key: tuple[str, ...] | None
    primary_key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Switch:
    """`notes` go with the load; `refusals` are in its way."""

    notes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


_WHOLE = "the next load replaces all rows of the target, those that others put there too"
_MISSING = "the next load deletes what the source does not hold, rows that others put there too"
_UNIQUE = (
    "one row a key from now on: a unique index on the key is built over the rows that are there, which duplicates "
    "refuse"
)
_ADDS = (
    "windows and files of the source that the earlier mode did not know are loaded, each in the place of its own rows"
)
_INDEX_STAYS = (
    "rows are added from now on; the unique index on the key stays and refuses a second row of a key: drop it if "
    "keys may repeat"
)
_HISTORY = "history needs a target with valid_from, valid_to and is_current: give the table another `target`"
_PAST = "a target of history takes rows with a time only: give the table another `target`, or drop this one and apply"
_IN_ORDER = "chunks go in order from now on, and what comes below the mark is not loaded"

_INTO: Mapping[LoadMode, str] = {
    "append": _ADDS,
    "incremental_watermark": f"{_ADDS}; {_IN_ORDER}",
    "upsert": _UNIQUE,
    "truncate": _WHOLE,
    "blue_green": _WHOLE,
    "delete_missing": f"{_UNIQUE}; {_MISSING}",
    "scd2": _HISTORY,
}
"""What a mode does to a target that any other one has filled."""

PAIRS: Mapping[tuple[LoadMode, LoadMode], str] = {
    **{(before, after): text for after, text in _INTO.items() for before in _INTO if before != after},
    ("upsert", "append"): _INDEX_STAYS,
    ("upsert", "incremental_watermark"): f"{_INDEX_STAYS}; {_IN_ORDER}",
    ("delete_missing", "append"): _INDEX_STAYS,
    ("delete_missing", "incremental_watermark"): f"{_INDEX_STAYS}; {_IN_ORDER}",
    ("append", "incremental_watermark"): f"what is published stays; {_IN_ORDER}",
    ("incremental_watermark", "append"): "what is published stays; chunks may go in any order from now on",
    ("upsert", "delete_missing"): _MISSING,
    ("delete_missing", "upsert"): "nothing is deleted any more: what the source loses stays in the target",
    ("truncate", "blue_green"): "the rows are the same; the table is exchanged instead of emptied",
    ("blue_green", "truncate"): "the rows are the same; the table is emptied and filled instead of exchanged",
    **{("scd2", after): _PAST for after in _INTO if after != "scd2"},
}
"""Every change of one mode into another, and what it does."""


def switch(last: LastLoad, mode: LoadMode, upsert_key: tuple[str, ...], primary_key: tuple[str, ...]) -> Switch:
    notes = []
    if (last.mode, mode) in PAIRS:
        notes.append(f"load mode {last.mode} becomes {mode}: {PAIRS[last.mode, mode]}")
    refusals = []
    if last.primary_key and primary_key and set(last.primary_key) != set(primary_key):
        refusals.append(_other_primary_key(last.primary_key, primary_key))
    elif last.mode == mode and last.upsert_key and upsert_key and set(last.upsert_key) != set(upsert_key):
        notes.append(
            f"upsert_key ({_names(last.upsert_key)}) becomes ({_names(upsert_key)}): a unique index on the new one is "
            "built over the rows that are there, which duplicates refuse; the one on the old key stays: drop it if "
            "that may repeat"
        )
    return Switch(tuple(notes), tuple(refusals))


def _other_primary_key(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    return (
        f"the primary key was ({_names(old)}) at the last load and is ({_names(new)}) now, which asks for a migration: "
        "set it back; or give the table another `target`, which is loaded anew; or drop the target and apply"
    )


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(columns)
