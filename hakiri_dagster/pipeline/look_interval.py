"""How often the planner looks at a pipeline's sources."""

from __future__ import annotations

from datetime import timedelta

from hakiri_dagster.connectors.budgets import request_budget, requests_a_look
from hakiri_dagster.manifest.durations import parse_duration
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.planning.looks import EVERY, EVERY_OF_APIS, LookInterval, within_budget


def look_interval(pipeline: Pipeline) -> LookInterval:
    wished, requests = _wished(pipeline), requests_a_look(pipeline)
    return LookInterval(within_budget(wished, requests, request_budget(pipeline)), wished, requests)


def _wished(pipeline: Pipeline) -> timedelta:
    if pipeline.source_trigger is not None:
        return parse_duration(pipeline.source_trigger.every)
    return EVERY_OF_APIS if pipeline.sends_requests else EVERY
