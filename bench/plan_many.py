"""Plans a project in a process of its own, and stores the plan as `apply` does. Tells seconds and peak of memory."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from hakiri_dagster.cli.opening import chosen_pipeline, opened_project
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


def main(folder: Path) -> None:
    with Runtime(opened_project(folder), Settings.from_env()) as runtime:
        tables = chosen_pipeline(runtime.project, "work").tables
        started = time.perf_counter()
        surveys = [survey for _, survey in runtime.plan(tables).surveys]
        for survey in surveys:
            remember(runtime.audit, survey, survey.due)
        seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    chunks = sum(len(survey.chunks) for survey in surveys)
    print(json.dumps({"seconds": seconds, "chunks": chunks, "megabytes": megabytes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
