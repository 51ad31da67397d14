"""What somebody wiped in Dagster's UI: published chunks of which it shows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.partitions import not_shown, partitions_of
from hakiri_dagster.orchestration.storage import STORAGE_ERRORS, storage_lost
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey


def chunks_not_shown(
    runtime: Runtime, surveys: Sequence[tuple[Table, Survey]]
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """By pipeline and table."""
    storage = psycopg2_url(runtime.dagster_url)
    try:
        with runtime.keep_server(), opened_instance(runtime.project.root, storage) as instance:
            return {
                (table.pipeline_id, table.name): not_shown(
                    instance, table, partitions_of(table, survey.source, survey.stored_plan), survey
                )
                for table, survey in surveys
            }
    except STORAGE_ERRORS as error:
        raise storage_lost(error, "plan --partitions") from error
