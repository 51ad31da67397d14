"""What can be told of an engine elsewhere without giving it work: a session there takes minutes to fail."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from hakiri_dagster.engine.doctor import Check, existing_part
from hakiri_dagster.engine.spark_config import is_local, is_remote, workers_python
from hakiri_dagster.settings import Settings

_PATIENCE_SECONDS = 3.0
_PORTS = {"spark": 7077, "sc": 15002, "https": 443, "http": 80}


def cluster_checks(settings: Settings, state_dir: Path) -> Iterator[Check]:
    """None where Spark runs in a process of this machine."""
    if is_local(settings):
        return
    yield _reachable(settings.spark)
    yield _candidates(settings, state_dir)
    yield _python(settings)


def places_of(master: str) -> tuple[tuple[str, int], ...]:
    """Of the master, or of each of several. None of one that Spark finds by itself, as YARN's."""
    scheme, _, rest = master.removeprefix("k8s://").partition("://")
    if scheme not in _PORTS:
        return ()
    parts = (urlsplit(f"//{place}") for place in rest.partition("/")[0].split(","))
    return tuple((part.hostname or "", part.port or _PORTS[scheme]) for part in parts)


def _reachable(master: str) -> Check:
    places = places_of(master)
    shown = master.partition("/;")[0]  # a session id and a token may follow
    if not places:
        return Check("spark master", True, f"{shown}: found when a session is opened")
    failures = [told for place in places if (told := _no_answer(*place)) is not None]
    if len(failures) < len(places):
        return Check("spark master", True, f"{shown} answers")
    cure = "Start it, open the port for this machine, or set HAKIRI_SPARK to where it is."
    return Check("spark master", False, "; ".join(failures), cure)


def _no_answer(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), timeout=_PATIENCE_SECONDS).close()
    except OSError as error:
        return f"{host}:{port} does not answer: {error}"
    return None


def _candidates(settings: Settings, state_dir: Path) -> Check:
    """Whether workers see it too is told by the first load."""
    folder = Path(settings.candidates_dir) if settings.candidates_dir else state_dir / "candidates"
    nearest = existing_part(folder)
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        return Check("candidates", False, f"{folder} cannot be written", "Mount it here and on the workers.")
    if settings.candidates_dir is None:
        return Check("candidates", True, f"{folder}: good if the workers share the project's folder; HAKIRI_CANDIDATES")
    return Check("candidates", True, f"{folder} can be written here")


def _python(settings: Settings) -> Check:
    version = ".".join(platform.python_version_tuple()[:2])
    if is_remote(settings):
        return Check("workers' python", True, f"is to be {version}; the Connect server says where it is")
    chosen = workers_python(settings) or os.environ.get("PYSPARK_PYTHON") or "python3"
    return Check("workers' python", True, f"`{chosen}`, which is to be {version} (spark.pyspark.python)")
