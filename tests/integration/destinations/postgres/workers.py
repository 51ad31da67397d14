"""Processes that tests kill. Each is forked from one that has imported what it needs, so that it starts at once."""

from __future__ import annotations

import multiprocessing

WORKERS = multiprocessing.get_context("forkserver")
# pandas: pyarrow imports it with the first rows, which takes longer than all else that a worker does
WORKERS.set_forkserver_preload(
    [
        "pandas",
        "tests.integration.orchestration.renaming_worker",
        *(
            f"{__package__}.test_{name}"
            for name in (
                "backups_survive_kills",
                "killed_at_each_statement",
                "refused_rows",
                "replaying",
                "restoring",
                "widening",
            )
        ),
    ]
)
