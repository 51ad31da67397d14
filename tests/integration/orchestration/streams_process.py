"""Applies a project over streams in a process of its own, to be killed: it says what it reads, and waits to be told
that it may go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import dagster as dg

from hakiri_dagster.cli.apply_command import work_through
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.settings import Settings
from tests.integration.orchestration.streams import over_streams, registered, streams_of


def _told_and_waited(slices: Sequence[Slice]) -> None:
    sys.stdout.write(" ".join(["reads", *(one.chunk.key for one in slices)]) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


def main(root: Path, data: Path, *names: str) -> None:
    table = streams_of(data, names, reads=_told_and_waited, slices_a_pass=len(names))
    project = over_streams(load_project(root, env={}))
    with registered(table), dg.DagsterInstance.ephemeral() as instance, Runtime(project, Settings()) as runtime:
        work_through(runtime, project.tables, Tally(), lambda: nullcontext(Applier(runtime, instance)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
