"""What the registry knows of the `files` connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hakiri_dagster.connectors.contract import NO_NETWORK, NOTHING_SAID, Connector, SourceTable
from hakiri_dagster.connectors.files.listing import Place
from hakiri_dagster.connectors.files.options import FilesOptions, option_problems
from hakiri_dagster.connectors.files.table import FilesTable
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds


class FilesConnector:
    def check_config(self, config: Mapping[str, Any], table: str, path: str | None) -> Sequence[str]:
        problems = option_problems(config)
        for place in (str(config.get("path", "")), path or ""):
            if "://" in place:
                problems.append(f"`{table}`: {place.split('://')[0]}://… is not built yet; files on a disk are")
        return problems

    def table(
        self,
        *,
        config: Mapping[str, Any],
        name: str,
        path: str | None,
        columns: Mapping[str, str],
        label: str,
        keeps_misfits: bool = False,
        endpoint: Mapping[str, Any] = NOTHING_SAID,
        key: Sequence[str] = (),
        network: Network = NO_NETWORK,
        sub_microseconds: SubMicroseconds = "warn",
    ) -> SourceTable:
        problems = self.check_config(config, name, path)
        if problems:
            raise SourceError("; ".join(problems), where=label)
        options = FilesOptions.model_validate(dict(config))
        place = Place(options, name, path, label)
        return FilesTable(options, place, dict(columns), label, keeps_misfits, sub_microseconds)


FILES: Connector = FilesConnector()
