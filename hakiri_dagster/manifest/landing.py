"""Where a pipeline lands: a named destination, one of its own, or the embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakiri_dagster.manifest.source_config import EmbeddedTargetConfig, as_config
from hakiri_dagster.manifest.spec import (
    ContextDestination,
    DestinationSpec,
    OtherDestination,
    PostgresDestination,
)
from hakiri_dagster.manifest.spelling import closest
from hakiri_dagster.manifest.tables import Endpoint

EMBEDDED = "context"


@dataclass(frozen=True, slots=True)
class Landings:
    """The destinations of a project. None as an answer: what is wrong is told elsewhere."""

    named: Mapping[str, DestinationSpec]
    default: str | None

    def choose(self, chosen: str | DestinationSpec | None) -> Endpoint | None:
        if chosen is None:
            chosen = self.default or EMBEDDED
        return self.by_name(chosen) if isinstance(chosen, str) else endpoint_of(chosen, None)

    def by_name(self, name: str) -> Endpoint | None:
        if name in self.named:
            return endpoint_of(self.named[name], name)
        if name == EMBEDDED:
            return endpoint_of(ContextDestination(connector="context"), name)
        return None

    def complaint(self, name: str) -> tuple[str, str] | None:
        """What is wrong with the name of a destination, and a hint."""
        if name == EMBEDDED or name in self.named:
            return None
        near = closest(name, [*self.named, EMBEDDED])
        names = ", ".join(sorted(self.named)) or "none is defined"
        hint = f"did you mean `{near}`?" if near else f"destinations: {names}; or `context`, the embedded one"
        return f"there is no `[destinations.{name[:60]}]`", hint


def endpoint_of(spec: DestinationSpec, name: str | None) -> Endpoint | None:
    match spec:
        case PostgresDestination():
            return Endpoint("postgres", as_config(spec.config), name)
        case ContextDestination(config=EmbeddedTargetConfig() as config):
            return Endpoint("postgres", {"url": None, **as_config(config)}, name or EMBEDDED)
        case OtherDestination():
            return None
