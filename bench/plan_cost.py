"""What a look at a table costs, by how many of its chunks are published. In a process of its own, for a project with
the table `many` (`pipelines.MANY_CHUNKS`) of which one chunk was loaded. Tells seconds by chunks published.

Publishing a hundred thousand chunks would take an hour. So the ledger is told of loads that were none, and the audit DB
takes its word for it, as it does when it was lost.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from hakiri_dagster.cli.opening import chosen_pipeline, opened_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import CursorRange
from hakiri_dagster.settings import Settings

_LOADED = """
INSERT INTO hakiri.ledger (pipeline_id, table_name, target, chunk_key, bounds, rows, bytes,
                           cursor_committed, cursor_max, run_id, attempt, mode, is_replay)
SELECT pipeline_id, table_name, target, key,
       pg_catalog.jsonb_build_object('kind', 'range', 'lower', lower, 'upper', upper), rows, bytes,
       upper, upper - 1, run_id, 1, mode, false
FROM (SELECT * FROM hakiri.ledger LIMIT 1) AS one,
     unnest(%s::text[], %s::bigint[], %s::bigint[]) AS chunk (key, lower, upper)
"""


def main(folder: Path, published: Sequence[int]) -> None:
    project = opened_project(folder)
    (table,) = chosen_pipeline(project, "work").tables
    url = str(table.destination.config["url"])
    told = {}
    with Runtime(project, Settings.from_env()) as runtime:
        for count in published:
            _publish(url, runtime.survey(table), count)
            _look(runtime, table)  # which brings the audit DB up to date
            told[count] = _look(runtime, table)
    print(json.dumps(told))


def _publish(url: str, survey: Survey, count: int) -> None:
    ranges = [(chunk.key, chunk.bounds.interval) for chunk in survey.chunks if isinstance(chunk.bounds, CursorRange)]
    done = {entry.chunk_key for entry in survey.ledger}
    chosen = [(key, part.lower, part.upper) for key, part in ranges[:count] if key not in done]
    with psycopg.connect(url) as connection:
        connection.execute(_LOADED, [list(column) for column in zip(*chosen, strict=True)] or [[], [], []])
        connection.execute("ANALYZE hakiri.ledger")


def _look(runtime: Runtime, table: Table) -> float:
    """As each run does before it claims its chunks."""
    started = time.perf_counter()
    survey = runtime.survey(table)
    remember(runtime.audit, survey, survey.due)
    return time.perf_counter() - started


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(count) for count in sys.argv[2:]])
