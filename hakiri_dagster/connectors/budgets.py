"""How many requests a pipeline's source may see, as the operator says, or else as its connector tells; and how many of
them it takes to look at it."""

from __future__ import annotations

from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.manifest.tables import Pipeline


def request_budget(pipeline: Pipeline) -> Rate | None:
    """Of what the tables' connectors tell the least: it is one budget for all of them."""
    if pipeline.rate_budget is not None or not pipeline.sends_requests:
        return pipeline.rate_budget
    from hakiri_dagster.connectors.registry import source_table  # and with it Spark, which `status` can do without

    told = (source_table(table).hint.rate_budget for table in pipeline.tables if not table.streams)
    rates = [Rate.parse(text) for text in told if text is not None]
    return min(rates, key=lambda rate: rate.count / rate.seconds, default=None)


def requests_a_look(pipeline: Pipeline) -> int:
    """At all of its tables."""
    if not pipeline.sends_requests:
        return 0
    from hakiri_dagster.connectors.registry import source_table

    return sum(source_table(table).hint.requests_a_look for table in pipeline.tables if not table.streams)
