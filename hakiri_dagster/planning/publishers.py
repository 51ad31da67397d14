"""Who has published the rows that a target holds, and whether that stands in the way of a load.

The ledger knows a load by pipeline and table. A load that finds none of its own loads everything: so a pipeline under a
new name would double the rows that it published under the old one, and a second project would mix its rows with those
of the first. Both are found here, before anything moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from hakiri_dagster.manifest.tables import Table

RENAME_COMMAND: Final = "hakiri pipeline rename"
"""A refusal that has it is mended by a rename, and `status` hides it when that is done."""

PublishedBy = Literal["this table", "another table", "an undeclared table", "another project"]


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """By what a destination remembers the project that publishes a table. `source` is what the table is read from."""

    id: str | None
    name: str
    source: str | None = None

    def __str__(self) -> str:
        return f"`{self.name}`" if self.id is None else f"`{self.name}` (id {self.id})"


@dataclass(frozen=True, slots=True)
class Publisher:
    """A pipeline and table whose published rows a target holds. How many these are is not known: the ledger counts
    those of each load, and a load that reads a stretch again leaves the count of the earlier one. `project` is None
    where it was published by a version that did not record it. `newest_run` made the newest of these loads."""

    pipeline_id: str
    table: str
    chunks: int
    project: ProjectIdentity | None = None
    newest_run: str | None = None

    @property
    def label(self) -> str:
        return f"{self.pipeline_id}/{self.table}"


@dataclass(frozen=True, slots=True)
class Move:
    """A table under its new name, as the manifest declares it now, and the name under which it has published."""

    old_pipeline: str
    old_table: str
    table: Table

    @property
    def old_label(self) -> str:
        return f"{self.old_pipeline}/{self.old_table}"


@dataclass(frozen=True, slots=True)
class Moved:
    """What a destination has renamed of a table. `elsewhere` are other targets that hold rows under the old name."""

    move: Move
    loads: int = 0
    quarantined: int = 0
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetPublishers:
    """`recorded` is the project for which the table was last claimed in its target. `doubtful` are publishers whose
    rows the target holds, but for the table itself where the same project has published it: `has_own` tells of that."""

    recorded: ProjectIdentity | None = None
    doubtful: tuple[Publisher, ...] = ()
    has_own: bool = False

    def has_rows_of(self, table: Table) -> bool:
        return any(publisher.label == table.label for publisher in self.doubtful)


@dataclass(frozen=True, slots=True)
class ProjectClaim:
    """For which project a table is claimed. `seen` is what the survey found recorded, and `rows_seen` whether rows of
    that project were in the target: what the survey has not seen is not overwritten."""

    ours: ProjectIdentity
    seen: ProjectIdentity | None
    rows_seen: bool


def identify_source(lineage: Sequence[str], root: PurePath) -> str:
    """Name what a table is read from. Files of the project are named from its folder on, so that a moved or copied
    folder reads from the same source."""
    kind, *parts = lineage
    within = root.parts[1:]
    if tuple(parts[: len(within)]) == within:
        parts = parts[len(within) :]
    return "/".join((kind, *parts))


def identity_of(table: Table, lineage: Sequence[str]) -> ProjectIdentity | None:
    key = table.project
    return None if key is None else ProjectIdentity(key.id, key.name, identify_source(lineage, key.root))


def is_same_project(recorded: ProjectIdentity | None, ours: ProjectIdentity, *, run_known: bool) -> bool:
    """Two declared ids decide. Otherwise a project whose audit DB has recorded the newest run is the one that made it,
    whatever it is called now; one that has lost its audit DB has the same name and reads from the same source."""
    if recorded is None:
        return True
    if recorded.id is not None and ours.id is not None:
        return recorded.id == ours.id
    if run_known:
        return True
    same_source = recorded.source is None or ours.source is None or recorded.source == ours.source
    return recorded.name == ours.name and same_source


def published_by(table: Table, publisher: Publisher, ours: ProjectIdentity, known_runs: frozenset[str]) -> PublishedBy:
    key = table.project
    declared = frozenset() if key is None else key.publishers_of(table)
    run_known = publisher.newest_run in known_runs
    is_declared = (publisher.pipeline_id, publisher.table) in declared
    if is_declared and is_same_project(publisher.project, ours, run_known=run_known):
        return "this table" if publisher.label == table.label else "another table"
    if is_declared or not is_ours_by_name(publisher.project, ours, run_known=run_known):
        return "another project"
    return "an undeclared table"


def is_ours_by_name(recorded: ProjectIdentity | None, ours: ProjectIdentity, *, run_known: bool) -> bool:
    """Under another pipeline or table the source may be any: it does not tell the project."""
    anywhere = ProjectIdentity(ours.id, ours.name)
    return is_same_project(recorded, anywhere, run_known=run_known)


def refuse_publisher(
    table: Table, publisher: Publisher, by: PublishedBy, ours: ProjectIdentity, *, has_own: bool = False
) -> str:
    """Say whose rows are in the way, what would happen, and the ways out. `has_own`: the target has rows of the table,
    too. Then chunks of one name are there for both, and neither is to take over those of the other."""
    target = f"{table.target_schema}.{table.target_name}"
    holds = f"{target} holds rows in {publisher.chunks} chunk(s) that"
    if has_own:
        return (
            f"{holds} were published as {publisher.label}, which this project does not declare with this target, and "
            f"rows of {table.label} beside them, in chunks that may be called alike; give the table another `target`, "
            f"or drop this one, and {table.label} is loaded again"
        )
    adopt = f"set `load.adopt = true` on {table.label} to take over what is published"
    other = "or give the table another `target`"
    if by == "another project":
        who = "another project" if publisher.project is None else f"the project {publisher.project}"
        return (
            f"{holds} {who} has published as {publisher.label}, and this is the project {ours}: "
            f"the rows of {table.label} would be mixed with them; {other.removeprefix('or ')}, or {adopt} "
            "where that project publishes no more"
        )
    return (
        f"{holds} were published as {publisher.label}, which this project does not declare with this target: "
        f"{table.label} would load all of its rows once more beside them; {_advise_rename(publisher, table)}; "
        f"{adopt}; {other}"
    )


def _advise_rename(publisher: Publisher, table: Table) -> str:
    """A name that the project still declares cannot be renamed: neither the table nor, as a whole, its pipeline."""
    declared = frozenset() if table.project is None else table.project.publishes
    if any((one.pipeline_id, one.table) == (publisher.pipeline_id, publisher.table) for one in declared):
        return (
            f"if {publisher.label}, which is declared with another target, and {table.label} have exchanged their "
            f"names, give one of the two a third name in between, and run `{RENAME_COMMAND}` after each step"
        )
    old, new = publisher.label, table.label
    if publisher.table == table.name and all(one.pipeline_id != publisher.pipeline_id for one in declared):
        old, new = publisher.pipeline_id, table.pipeline_id
    return f"if {publisher.label} is called {table.label} now, run `{RENAME_COMMAND} {old} {new}`"
