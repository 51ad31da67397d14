"""Bounds of chunks as the audit DB keeps them."""

from __future__ import annotations

import pytest

from hakiri_dagster.audit.chunk_rows import bounds_from_json, bounds_to_json
from hakiri_dagster.errors import AuditTooNew
from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorRange,
    Interval,
    NullCursor,
    Part,
    Segment,
    SourceFile,
    WholeTable,
)

PART = Part("repo", "a/x")


@pytest.mark.parametrize(
    "bounds",
    [
        CursorRange(Interval(None, 5)),
        CursorRange(Interval(0, None), PART),
        NullCursor(),
        NullCursor(PART),
        SourceFile("a.csv", "11" * 16),
        Segment(1),
        Segment(2, "/page?after=2"),
        WholeTable(),
    ],
)
def test_bounds_survive_the_audit_db(bounds: Bounds) -> None:
    assert bounds_from_json(bounds_to_json(bounds)) == bounds


@pytest.mark.parametrize("text", ['{"snapshot": 7}', '{"segment": 1}', "[]"])
def test_bounds_of_a_kind_that_is_not_known_are_not_taken_for_the_whole_table(text: str) -> None:
    with pytest.raises(AuditTooNew, match="unknown kind") as found:
        bounds_from_json(text)
    assert text in str(found.value)
    assert "upgrade hakiri-dagster" in str(found.value)
