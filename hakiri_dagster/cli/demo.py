"""`hakiri demo`: a made-up tea shop, loaded end to end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from rich.markup import escape

from hakiri_dagster.cli.apply_command import load_due
from hakiri_dagster.cli.demo_data import write_shop_data
from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.manifest.generate import generated_files
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.settings import Settings

FOLDER = "hakiri-demo"
DATA = "demo-data"
MANIFESTS = ("manifests/hakiri.toml", "manifests/pipelines/tea-shop-items.json")


def demo(root: Path) -> int:
    folder = _demo_project(root)
    print(f"writing made-up data to {folder / DATA} …", file=sys.stderr)
    write_shop_data(folder / DATA, datetime.now(UTC).date())
    print("loading it (the first start of PostgreSQL and Spark takes a few seconds) …", file=sys.stderr)
    project = opened_project(folder)
    tally = Tally()
    with Runtime(project, Settings.from_env(), tally) as runtime:
        planned = load_due(runtime, project.tables, tally)
        landed = list(_landed(runtime, project, tally))
    _report(landed, converged=planned.plan.is_converged)
    _say_next(folder, root, broken=tally.anything_broken)
    return 1 if tally.anything_broken else 0


def _demo_project(root: Path) -> Path:
    """The folder itself if it is the demo (as the repository is), else a new one in it."""
    if (root / MANIFESTS[1]).is_file():
        return root
    folder = root / FOLDER
    for name in MANIFESTS:
        target = folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((files("hakiri_dagster") / "scaffold" / "demo" / Path(name).name).read_text())
    for name, text in generated_files().items():
        if name.startswith("schemas/"):  # what editors check the manifests with
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def _landed(runtime: Runtime, project: Project, tally: Tally) -> Iterator[tuple[Table, Survey, Tally]]:
    for table in project.tables:
        yield table, runtime.survey(table), tally


def _report(landed: list[tuple[Table, Survey, Tally]], *, converged: bool) -> None:
    console = screen()
    if converged:
        console.print("Nothing to do: every table is converged. What is there:")
    shown = grid(("table", "target", "load mode"), ("chunks", "rows loaded now", "set aside now"))
    for table, survey, tally in landed:
        counts = tally.of(table)
        shown.add_row(
            escape(table.label),
            escape(f"{table.target_schema}.{table.target_name}"),
            table.mode,
            f"{len(survey.due.done)} of {len(survey.chunks)}",
            f"{counts.rows:,}",
            f"{counts.quarantined:,}",
        )
    console.print(shown)
    for table, _, tally in landed:
        counts = tally.of(table)
        if counts.error:
            console.print(
                f"[red]error[/]: {escape(table.label)}: {escape(counts.error.removeprefix(f'{table.label}: '))}"
            )
        if counts.quarantined:
            kept = table.quarantine_place
            console.print(f"{escape(table.label)}: {counts.quarantined} set aside, kept in {escape(kept)}")


def _say_next(folder: Path, root: Path, *, broken: bool) -> None:
    if broken:
        return
    if folder == root and (root / "Makefile").is_file():
        command = "make serve"
    else:
        command = "hakiri serve" if folder == root else f"hakiri --project {folder.name} serve"
    screen().print(f"\nnext: [bold]{escape(command)}[/]  — Dagster's UI on http://127.0.0.1:3000")
