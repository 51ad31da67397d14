"""What plans tell that Dagster's partitions depend on: when that changes, the project has to be loaded anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.orchestration.part_partitions import windows_of
from hakiri_dagster.orchestration.partitions import partitions_of
from hakiri_dagster.pipeline.runtime import stored_plans


@dataclass(frozen=True, slots=True)
class LoadedAs:
    """Before the first plan the kind of a cursor is a guess, and of its windows there is only the open one."""

    kind: str
    begins: bool


def loaded_as(project: Project) -> Mapping[str, LoadedAs]:
    """By table label, if Dagster loaded the project now. Asks the audit DB alone."""
    plans = stored_plans(project)
    return {table.label: _loaded_as(table, plans.get(table.label)) for table in project.tables}


def _loaded_as(table: Table, plan: StoredPlan | None) -> LoadedAs:
    windows = windows_of(partitions_of(table, source_table(table), plan))
    return LoadedAs(type(windows).__name__, plan is not None and plan.start is not None)
