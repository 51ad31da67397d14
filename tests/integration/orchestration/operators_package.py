"""A package that an operator has installed: it registers functions for hooks, and is found by this process and those
that it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_FUNCTIONS = """
import os, signal, sys, threading
from pathlib import Path

HERE = Path(__file__).parent
called = []
going_on = threading.Event()
reached = threading.Event()


def _note(name, context):
    with open(HERE / "calls", "a") as calls:
        calls.write(f"{name} {','.join(map(str, context.load_ids))} {context.rows}\\n")


def first(context):
    _note("first", context)


def last(context):
    _note("last", context)


def keeps(context):
    called.append(context)


def changes(context):
    context.rows = 0


def fails(context):
    raise RuntimeError(f"no room for {os.environ['KEY']}")


def leaves(context):
    sys.exit(3)


def cuts(context):
    import psycopg

    with psycopg.connect(os.environ["SHOP_URL"]) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^hakiri:hooks:'"
        )


def waits(context):
    called.append(context)
    reached.set()
    assert going_on.wait(30)


def _dies_once(name, context):
    _note(name, context)
    marker = HERE / f"{name}-died"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def dies(context):
    _dies_once("dies", context)


def dies_too(context):
    _dies_once("dies_too", context)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *functions: str) -> Path:
    """Answers the folder, in which `calls` is what was called."""
    inside = folder / "operators_package-1.0.dist-info"
    inside.mkdir(parents=True)
    (inside / "METADATA").write_text("Metadata-Version: 2.1\nName: operators-package\nVersion: 1.0\n")
    lines = [f"{name} = operators_functions:{name}" for name in functions]
    (inside / "entry_points.txt").write_text("\n".join(["[hakiri_dagster.hooks]", *lines, ""]))
    (folder / "operators_functions.py").write_text(_FUNCTIONS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "operators_functions", raising=False)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return folder


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()
