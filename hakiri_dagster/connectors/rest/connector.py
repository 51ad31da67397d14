"""What the registry knows of the `rest` connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hakiri_dagster.connectors.contract import NO_NETWORK, NOTHING_SAID, Connector, SourceTable
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.settings import EndpointConfig, api_of, collection_of, cursor_params_of, hint_of
from hakiri_dagster.connectors.rest.table import RestTable
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.manifest.rest_spec import RestConfig


class _Rest:
    def check_config(self, config: Mapping[str, Any], table: str, path: str | None) -> Sequence[str]:
        try:
            RestConfig.model_validate(dict(config))
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)
            return [f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}" for problem in problems]
        return []

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
        api, said = RestConfig.model_validate(dict(config)), EndpointConfig.model_validate(dict(endpoint))
        place = name if path is None else path
        return RestTable(
            api=api_of(api).hurried() if network.hurried else api_of(api),
            collection=collection_of(api, said, place, has_key=bool(key)),
            asked=cursor_params_of(said.cursor_params),
            columns=dict(columns),
            network=network,
            label=label,
            max_connections=api.max_connections,
            hint=hint_of(api, said, place),
            pages_a_segment=None if said.segments is None else said.segments.pages,
            needs_parents=said.explosion is not None and said.explosion.needs_parents,
            sub_microseconds=sub_microseconds,
        )


REST: Connector = _Rest()
