"""`hakiri doctor`: what is there, what is missing, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from rich.markup import escape

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.screen import screen
from hakiri_dagster.connectors.contract import Discovery, Known
from hakiri_dagster.engine.cluster_doctor import cluster_checks
from hakiri_dagster.engine.doctor import Check, engine_checks
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.project import read_project
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.pipeline.long_transactions import lookback_of
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.planning.horizon import Lookback
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.security.url_guard import judge
from hakiri_dagster.settings import Settings


def doctor(root: Path, as_json: bool) -> int:
    state_dir = root / ".hakiri"
    cluster = cluster_checks(Settings.from_env(), state_dir)
    checks = [*engine_checks(state_dir), *cluster, *_project_checks(root)]
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        _show(checks)
    return 0 if all(check.ok for check in checks) else 1


def _project_checks(root: Path) -> Iterator[Check]:
    reading = read_project(root)
    if reading.project is None:
        problems = f"{len(reading.problems)} problem(s), the first: {reading.problems[0].message}"
        yield Check("manifests", False, problems, "Run `hakiri validate`.")
        return
    yield Check("manifests", True, f"{len(reading.project.pipelines)} pipeline(s) in {root}")
    yield from _connections(reading.project)


def _connections(project: Project) -> Iterator[Check]:
    """Every source and destination answers, and the audit DB fits the number of hosts."""
    with Runtime(project, Settings.from_env()) as runtime:
        yield _audit(project)
        yield from _alert_webhook(runtime.settings)
        for table in project.tables:
            yield _answers(f"destination of {table.label}", partial(_look_at_target, runtime, table))
            yield _check_source(runtime, table)


def _look_at_target(runtime: Runtime, table: Table) -> None:
    runtime.destination(table).describe(table)


class _SparkWanted(Exception):
    """The source was reached: only its types would take an engine to find out."""


def _check_source(runtime: Runtime, table: Table) -> Check:
    """A source that cannot tell which of its transactions are open answers all the same."""
    name, found = f"source of {table.label}", list[Discovery]()

    def no_spark() -> NoReturn:
        raise _SparkWanted

    def look() -> None:
        with suppress(_SparkWanted):
            source = runtime.source(table)
            found.append(source.discover(cursor=cursor_of(table), known=Known(), spark=no_spark, lookback=Lookback()))

    check = _answers(name, look)
    horizon = found[0].horizon if found else None
    if horizon is None or horizon.unknown is None or table.load.lag is not None:
        return check
    stretch = lookback_of(horizon, found[0].cursor_kind)
    return replace(
        check,
        found=f"answers, but {horizon.unknown.reason}: each load reads {stretch} again",
        cure=horizon.unknown.hint,
    )


def _audit(project: Project) -> Check:
    if project.audit_url:
        return Check("audit DB", True, "PostgreSQL: good for several hosts")
    return Check("audit DB", True, "SQLite in .hakiri/: for one host; several need `[audit] url` with a PostgreSQL")


def _alert_webhook(settings: Settings) -> Iterator[Check]:
    """Nothing is sent: a receiver that is away gets its alerts later."""
    if settings.alert_webhook_url is None:
        return
    try:
        judge(settings.alert_webhook_url, allow_loopback=settings.webhooks_to_loopback)
    except HakiriError as error:
        yield Check(
            "alert webhook", False, error.what, error.hint or "See HAKIRI_ALERT_WEBHOOK_URL in docs/operations.md."
        )
        return
    signed = "signed" if settings.alert_webhook_secret else "not signed: HAKIRI_ALERT_WEBHOOK_SECRET is not set"
    yield Check("alert webhook", True, f"alerts are sent there, {signed}")


def _answers(name: str, ask: Callable[[], object]) -> Check:
    try:
        ask()
    except HakiriError as error:
        return Check(name, False, error.what, error.hint or "See docs/operations.md.")
    return Check(name, True, "answers")


def _show(checks: list[Check]) -> None:
    console = screen()
    for check in checks:
        mark = "[green]✓[/]" if check.ok else "[red]✗[/]"
        console.print(f"{mark} [bold]{escape(check.name)}[/]: {escape(redact(check.found))}")
        if check.cure:
            console.print(f"    {escape(check.cure)}")
