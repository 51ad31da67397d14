"""Where a pipeline lands: a named destination, one of its own, or the embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


class UnknownDestinationError(ValueError):
    def __init__(self, name: str, known: Mapping[str, Any]) -> None:
        near = closest(name, [*known, EMBEDDED])
        names = ", ".join(sorted(known)) or "none is defined"
        self.hint = f"did you mean `{near}`?" if near else f"destinations: {names}; or `context`, the embedded one"
        super().__init__(f"there is no `[destinations.{name[:60]}]`")


@dataclass(frozen=True, slots=True)
class Landings:
    """The destinations of a project. None as an answer: it is refused elsewhere, as not yet built."""

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
        raise UnknownDestinationError(name, self.named)


def endpoint_of(spec: DestinationSpec, name: str | None) -> Endpoint | None:
    match spec:
        case PostgresDestination():
            return Endpoint("postgres", as_config(spec.config), name)
        case ContextDestination(config=EmbeddedTargetConfig() as config):
            return Endpoint("postgres", {"url": None, **as_config(config)}, name or EMBEDDED)
        case OtherDestination():
            return None
