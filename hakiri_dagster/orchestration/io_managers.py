"""The IO manager owns publishing: whatever runs a chunk, the rows become visible here and nowhere else."""

from __future__ import annotations

from typing import Any

import dagster as dg

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.pipeline.steps import FailedChunk, PreparedChunk, PublishedChunk


class LoadIOManager(dg.IOManager):
    """The asset publishes chunk by chunk: an error that Dagster meets in `handle_output` would end the whole run."""

    def publish(self, chunk: PreparedChunk) -> PublishedChunk | FailedChunk:
        return chunk.publish()

    def handle_output(self, context: dg.OutputContext, obj: LedgerEntry) -> None:
        """The output tells steps downstream that its rows are published."""

    def load_input(self, context: dg.InputContext) -> Any:
        raise dg.DagsterInvariantViolationError(
            f"{context.asset_key.to_user_string()} lives in its destination, not in Dagster: "
            "read the target table with your own client instead of taking the asset as an input."
        )
