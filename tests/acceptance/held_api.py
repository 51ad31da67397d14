"""An API that keeps a walk over its pages waiting, so that a test can kill something in the middle of a load."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.command_line import PATIENCE, ProjectFolder
from tests.integration.connectors.rest.api_server import Asked, Said, said

MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")
HELD = MONTHS[1]
FEW, MANY = 3, 8
LONG = "x" * (3 << 20)
"""Some such texts fill a block, which is sent to the publisher before the walk has ended."""


@dataclass
class Readings:
    """An API that lists readings by month, in two pages each. The second page of one month waits until it is let go."""

    held: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Said:
        if "sort" in asked.params:
            return said([_reading(MONTHS[-1], 99)])
        month, page = asked.params.get("since", MONTHS[0])[:7], int(asked.params.get("page", 1))
        if page == 2 and month == HELD:
            self.held.set()
            self.released.wait(PATIENCE)
        if page > 2:
            return said([])
        count = MANY if month == HELD and page == 1 else FEW
        return said([_reading(month, 100 * (page - 1) + number) for number in range(count)])


def _reading(month: str, number: int) -> dict[str, Any]:
    at = f"{month}-{1 + number % 28:02}T00:00:00Z"
    return {"id": f"{month}/{number}", "at": at, "text": LONG if month == HELD and number < 100 else "short"}


def readings_table(project: ProjectFolder, url: str) -> None:
    project.file("manifests/hakiri.toml", '[project]\nname = "lab"\n')
    project.pipeline(
        {
            "id": "lab",
            "source": {"connector": "rest", "config": {"base_url": url, "pagination": {"type": "page"}}},
            "tables": [
                {
                    "name": "readings",
                    "primary_key": ["id"],
                    "incremental": "at",
                    "cursor_params": {"lower": "since", "upper": "until", "inclusive": True, "newest": {"sort": "at"}},
                    "backfill": {"window": "1mo", "start_from": "2024-01-01"},
                    "load": {"mode": "append"},
                }
            ],
        }
    )


def assert_loaded_exactly_once(project: ProjectFolder) -> None:
    counted = "SELECT substr(id, 1, 7), count(*), count(DISTINCT id) FROM public.readings GROUP BY 1 ORDER BY 1"
    rows = project.rows(counted)
    assert rows == [(month, *[(MANY if month == HELD else FEW) + FEW] * 2) for month in MONTHS]
    long = f"SELECT count(*) FROM public.readings WHERE length(text) = {len(LONG)}"
    assert project.rows(long) == [(MANY,)]
    loads = "SELECT chunk_key, count(*) FROM hakiri.ledger GROUP BY 1 ORDER BY 1"
    assert project.rows(loads) == [(month, 1) for month in MONTHS]
