"""Plans a project in a process of its own, twice: as new, and as stored. Tells seconds and the peak of memory."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from hakiri_dagster.cli.opening import chosen_pipeline, opened_project
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import remember
from hakiri_dagster.settings import Settings


def planned_seconds(runtime: Runtime) -> tuple[float, int]:
    """The plan is stored, as `apply` stores it."""
    started = time.perf_counter()
    planned = runtime.plan(chosen_pipeline(runtime.project, "work").tables)
    for _, survey in planned.surveys:
        remember(runtime.audit, survey, survey.due)
    return time.perf_counter() - started, sum(len(survey.chunks) for _, survey in planned.surveys)


def main(folder: Path) -> None:
    with Runtime(opened_project(folder), Settings.from_env()) as runtime:
        first, chunks = planned_seconds(runtime)
        again, _ = planned_seconds(runtime)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"first": first, "again": again, "chunks": chunks, "megabytes": megabytes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
