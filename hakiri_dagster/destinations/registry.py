"""Destinations by their connector's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.errors import NotYet


def open_destination(connector: str, config: Mapping[str, Any], *, label: str, tenant: str) -> Destination:
    match connector:
        case "postgres" | "context":
            from hakiri_dagster.destinations.postgres.destination import open_destination as open_postgres

            return open_postgres(config, label=label, tenant=tenant)
        case _:
            raise NotYet(f"not yet: the destination connector `{connector}`", where=label)
