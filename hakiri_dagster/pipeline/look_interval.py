"""How often the planner looks at a pipeline's sources."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hakiri_dagster.connectors.budgets import request_budget, requests_a_look
from hakiri_dagster.manifest.durations import parse_duration
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.planning.looks import EVERY, EVERY_OF_APIS, within_budget


@dataclass(frozen=True, slots=True)
class LookInterval:
    """`wished`: what holds where the budget bears it. `requests`: of one look."""

    every: timedelta
    wished: timedelta
    requests: int

    @classmethod
    def of(cls, pipeline: Pipeline) -> LookInterval:
        wished, requests = _wished(pipeline), requests_a_look(pipeline)
        return cls(within_budget(wished, requests, request_budget(pipeline)), wished, requests)


def _wished(pipeline: Pipeline) -> timedelta:
    if pipeline.source_trigger is not None:
        return parse_duration(pipeline.source_trigger.every)
    return EVERY_OF_APIS if pipeline.sends_requests else EVERY
