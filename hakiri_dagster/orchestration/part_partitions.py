"""Tables in parts as Dagster's partitions of two dimensions: `key`, the part, and `window`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from hakiri_dagster.manifest.part_names import name_of
from hakiri_dagster.planning.backfill_hint import BackfillHint
from hakiri_dagster.planning.parts import DELIMITER, part_name

KEY = "key"
WINDOW = "window"
"""Dagster sorts dimensions by name, and writes keys in that order."""

Range = tuple[str, str, int]
"""The first and the last key, and how many there are."""


def in_parts(windows: dg.PartitionsDefinition, hint: BackfillHint) -> dg.PartitionsDefinition:
    if not hint.parts:
        return windows
    names = [name_of(part.value) for part in hint.parts]
    return dg.MultiPartitionsDefinition({KEY: dg.StaticPartitionsDefinition(names), WINDOW: windows})


def windows_of(partitions: dg.PartitionsDefinition) -> dg.PartitionsDefinition:
    """The dimension of the windows, or the only one."""
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        return partitions.get_partitions_def_for_dimension(WINDOW)
    return partitions


def event_key(partitions: dg.PartitionsDefinition, key: str) -> str:
    """As events name a partition: one of two dimensions tells both."""
    if not isinstance(partitions, dg.MultiPartitionsDefinition):
        return key
    part, _, window = key.partition(DELIMITER)
    return dg.MultiPartitionKey({KEY: part, WINDOW: window})


def open_windows(ordered: Iterable[str]) -> Mapping[str, str]:
    """The last key of each part."""
    return {part_name(key): key for key in ordered}


def contiguous_ranges(ordered: Sequence[str], wanted: Iterable[str], longest: int) -> list[Range]:
    """Each unbroken run of wanted keys in Dagster's own order, cut at `longest`."""
    chosen = set(wanted)
    ranges: list[Range] = []
    unbroken = False
    for key in ordered:
        if key not in chosen:
            unbroken = False
            continue
        if unbroken and ranges[-1][2] < longest:
            first, _, count = ranges[-1]
            ranges[-1] = (first, key, count + 1)
        else:
            ranges.append((key, key, 1))
        unbroken = True
    return ranges


def rectangles(ordered: Sequence[str], wanted: Iterable[str], longest: int) -> list[Range]:
    """Of two dimensions a range means each key from the first part to the last, with each window from the first to the
    last. So parts that follow one another, and owe the same windows, make one run."""
    chosen = set(wanted)
    by_part: dict[str, list[str]] = {}
    for key in ordered:
        by_part.setdefault(part_name(key), []).append(key)
    ranges: list[Range] = []
    reaching: dict[tuple[str, str], int] = {}
    for keys in by_part.values():
        here: dict[tuple[str, str], int] = {}
        for first, last, count in contiguous_ranges(keys, chosen, longest):
            windows = first.partition(DELIMITER)[2], last.partition(DELIMITER)[2]
            at = reaching.get(windows)
            if at is not None and ranges[at][2] + count <= longest:
                ranges[at] = (ranges[at][0], last, ranges[at][2] + count)
            else:
                at = len(ranges)
                ranges.append((first, last, count))
            here[windows] = at
        reaching = here
    return ranges


def ranges_of(
    partitions: dg.PartitionsDefinition, ordered: Sequence[str], wanted: Iterable[str], longest: int
) -> list[Range]:
    find = rectangles if isinstance(partitions, dg.MultiPartitionsDefinition) else contiguous_ranges
    return find(ordered, wanted, longest)
