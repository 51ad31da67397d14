"""What the manifest language has and this version does not build. Who builds a feature deletes its line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.spec import BUILT_SOURCES
from hakiri_dagster.manifest.spelling import closest

FEATURES: Mapping[KeyPath, str] = {
    ("transforms",): "`transforms`",
}

PROJECT_FEATURES: Mapping[KeyPath, str] = {
    ("sync",): "`[sync]`",
}

BUILT_DESTINATIONS = ("postgres", "context")


def pipeline_not_yet(entry: Entry) -> Iterator[Problem]:
    yield from _connector(entry, ("source", "connector"), "source", BUILT_SOURCES)
    yield from _connector(entry, ("destination", "connector"), "destination", BUILT_DESTINATIONS)
    yield from _remote_files(entry, ("source", "config", "path"))
    yield from _features(entry, ())
    tables = entry.value(("tables",))
    for index in range(len(tables) if isinstance(tables, list) else 0):
        yield from _remote_files(entry, ("tables", index, "path"))
        yield from _features(entry, ("tables", index))


def project_not_yet(entry: Entry) -> Iterator[Problem]:
    for path, name in PROJECT_FEATURES.items():
        if _asks_for_it(entry.value(path)):
            yield entry.problem(path, f"{name} is not yet built", "take it out for now", at_key=True)
    destinations = entry.value(("destinations",))
    for name in destinations if isinstance(destinations, dict) else ():
        yield from _connector(entry, ("destinations", name, "connector"), f"destination `{name}`", BUILT_DESTINATIONS)


def _features(entry: Entry, at: KeyPath) -> Iterator[Problem]:
    for feature, name in FEATURES.items():
        path = (*at, *feature)
        if _asks_for_it(entry.value(path)):
            yield entry.problem(path, f"{name} are not yet built", "take it out for now", at_key=True)


def _remote_files(entry: Entry, path: KeyPath) -> Iterator[Problem]:
    place = entry.value(path)
    if isinstance(place, str) and "://" in place and entry.value(("source", "connector")) == "files":
        scheme = place.partition("://")[0][:20]
        hint = "files on a disk are: a path, without `://`"
        yield entry.problem(path, f"reading files from `{scheme}://` is not yet built", hint)


def _asks_for_it(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], {})


def _connector(entry: Entry, path: KeyPath, what: str, built: tuple[str, ...]) -> Iterator[Problem]:
    connector = entry.value(path)
    if not isinstance(connector, str) or not connector or connector in built:
        return
    near = closest(connector, built)
    hint = f"did you mean `{near}`?" if near else f"connectors that are: {', '.join(built)}"
    yield entry.problem(path, f"{what}: the connector `{connector[:60]}` is not yet built", hint)
