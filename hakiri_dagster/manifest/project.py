"""The manifests of a project, merged by id, checked and resolved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from hakiri_dagster.errors import ManifestError, Problem
from hakiri_dagster.manifest.budget_checks import budget_problems, budget_warnings
from hakiri_dagster.manifest.children import child_problems, children_of, with_parents
from hakiri_dagster.manifest.conflicts import checks_called_alike, ids_defined_twice, tables_in_conflict
from hakiri_dagster.manifest.files import Manifests, read_manifests
from hakiri_dagster.manifest.hook_checks import hook_problems, hook_secrets
from hakiri_dagster.manifest.landing import EMBEDDED, Landings
from hakiri_dagster.manifest.merge_settings import merge_problems, merge_warnings
from hakiri_dagster.manifest.not_yet import pipeline_not_yet, project_not_yet
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.presets.registry import known_tables, preset_problems, written_out
from hakiri_dagster.manifest.problems import problems_of
from hakiri_dagster.manifest.references import PIPELINE_SCOPES, PROJECT_SCOPES, Filled, fill, is_variable
from hakiri_dagster.manifest.resolve import Declared, pipeline_warnings, resolve_pipeline
from hakiri_dagster.manifest.rest_checks import (
    cursor_problems,
    part_problems,
    part_warnings,
    rest_problems,
    rest_secrets,
)
from hakiri_dagster.manifest.spec import PipelineSpec, ProjectSpec
from hakiri_dagster.manifest.table_checks import table_problems
from hakiri_dagster.manifest.tables import Pipeline, Project, ProjectKey, Publishes
from hakiri_dagster.manifest.trigger_checks import (
    arrival_problems,
    change_problems,
    shared_queue_problems,
    trigger_problems,
    trigger_secrets,
)
from hakiri_dagster.manifest.verify_spec import verify_problems
from hakiri_dagster.security import secrets
from hakiri_dagster.settings import allows_loopback


@dataclass(frozen=True, slots=True)
class ProjectReading:
    """`project` is None where there are problems. `pipeline_ids` are those that are written, right or wrong."""

    project: Project | None
    pipeline_ids: tuple[str, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def load_project(root: Path, env: Mapping[str, str] | None = None) -> Project:
    """Raises ManifestError with everything that is wrong."""
    reading = read_project(root, env)
    if reading.project is None:
        raise ManifestError(reading.problems)
    return reading.project


def read_project(root: Path, env: Mapping[str, str] | None = None) -> ProjectReading:
    """Reads manifests and environment, and nothing else."""
    return _Reader(root, os.environ if env is None else env, read_manifests(root)).read()


@dataclass(slots=True)
class _Reader:
    root: Path
    env: Mapping[str, str]
    manifests: Manifests
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def read(self) -> ProjectReading:
        entries = self.manifests.pipelines
        self.problems += self.manifests.problems
        self.warnings += self.manifests.warnings
        settings = self._settings()
        declared = [pipeline for entry in entries if (pipeline := self._declared(entry)) is not None]
        self.problems += ids_defined_twice(entries)
        pipelines = self._resolved(declared, settings) if settings is not None else ()
        ids = dict.fromkeys(entry.pipeline_id for entry in entries if entry.pipeline_id is not None)
        project = None
        if settings is not None and not self.problems:
            key = _project_key(settings, self.root.absolute(), pipelines)
            project = Project(
                self.root.absolute(),
                settings.project.name,
                settings.audit.url,
                tuple(_belonging_to(key, pipeline) for pipeline in pipelines),
                settings.project.max_parallel_chunks,
            )
        return ProjectReading(project, tuple(ids), _in_order(self.problems), _in_order(self.warnings))

    def _settings(self) -> ProjectSpec | None:
        """None where the project file is wrong, so that nothing is said about what depends on it."""
        entry = self.manifests.settings
        if entry is None:
            return None if self.manifests.problems else ProjectSpec()
        filled = fill(entry.data, PROJECT_SCOPES, self.env)
        self._note_references(entry, filled)
        self.problems += project_not_yet(entry)
        try:
            settings = ProjectSpec.model_validate(filled.data)
        except ValidationError as error:
            self.problems += problems_of(error, entry, filled, ProjectSpec)
            return None
        self.problems += _default_destination(settings, entry)
        if settings.context.path is not None:
            message = "`path` has no effect: the embedded PostgreSQL lives in `.hakiri/`"
            self.warnings.append(entry.problem(("context", "path"), message, at_key=True))
        return settings

    def _declared(self, entry: Entry) -> Declared | None:
        filled = fill(entry.data, PIPELINE_SCOPES, self.env)
        self._note_references(entry, filled)
        self.problems += pipeline_not_yet(entry)
        self.problems += self._unset_secrets(entry)
        self.problems += table_problems(entry)
        self.problems += merge_problems(entry)
        self.problems += budget_problems(entry)
        self.problems += verify_problems(entry)
        self.problems += arrival_problems(entry)
        self.warnings += merge_warnings(entry)
        self.warnings += budget_warnings(entry)
        self._check_hooks(entry, filled)
        self._check_api(entry, filled)
        self._check_triggers(entry, filled)
        try:
            spec = PipelineSpec.model_validate(filled.data)
        except ValidationError as error:
            self.problems += problems_of(error, entry, filled, PipelineSpec)
            return None
        self.problems += preset_problems(entry, spec)
        known, spec = known_tables(spec), written_out(spec)
        children = children_of(spec, known)
        self.problems += child_problems(entry, spec, children)
        return Declared(entry, with_parents(spec, children), children)

    def _check_hooks(self, entry: Entry, filled: Filled) -> None:
        secrets.register(hook_secrets(entry, filled, self.env))
        self.problems += hook_problems(entry, filled, allow_loopback=allows_loopback(self.env))

    def _check_api(self, entry: Entry, filled: Filled) -> None:
        secrets.register(rest_secrets(entry, self.env))
        self.problems += rest_problems(entry, filled, allow_loopback=allows_loopback(self.env))

    def _check_triggers(self, entry: Entry, filled: Filled) -> None:
        secrets.register(trigger_secrets(entry, self.env))
        self.problems += trigger_problems(entry, filled, allow_loopback=allows_loopback(self.env))

    def _note_references(self, entry: Entry, filled: Filled) -> None:
        for value in filled.values:
            secrets.register_url(value)
        for gap in filled.gaps:
            if gap.well_formed:
                message = f"the environment variable `{gap.name}` is not set"
                hint = f"set {gap.name} before you run hakiri"
            else:
                message, hint = "not a reference to the environment", "write `${NAME}`, or `$${` for a plain `${`"
            self.problems.append(entry.problem(gap.path, message, hint))

    def _unset_secrets(self, entry: Entry) -> Iterator[Problem]:
        names = entry.value(("secrets",))
        for index, name in enumerate(names if isinstance(names, list) else ()):
            if not isinstance(name, str) or not is_variable(name):
                continue
            if self.env.get(name):
                secrets.register([self.env[name]])
            else:
                hint = f"set {name} before you run hakiri"
                yield entry.problem(("secrets", index), f"the secret `{name}` is not set", hint)

    def _resolved(self, declared: Sequence[Declared], settings: ProjectSpec) -> list[Pipeline]:
        landings = Landings(settings.destinations, settings.context.default_destination)
        for entry in self.manifests.pipelines:
            self.problems += _named_destination(entry, ("destination",), landings)
        pairs: list[tuple[Declared, Pipeline]] = []
        for one in declared:
            self.warnings += pipeline_warnings(one, landings)
            pipeline = resolve_pipeline(one, landings, self.root)
            if pipeline is not None:
                pairs.append((one, pipeline))
        self.problems += tables_in_conflict(pairs)
        self.problems += checks_called_alike(pairs)
        self.problems += cursor_problems(pairs)
        self.problems += part_problems(pairs)
        self.warnings += part_warnings(pairs)
        self.problems += change_problems(pairs)
        self.problems += shared_queue_problems(pairs)
        return [pipeline for _, pipeline in pairs]


def _project_key(settings: ProjectSpec, root: Path, pipelines: Sequence[Pipeline]) -> ProjectKey:
    publishes = (
        Publishes(table.pipeline_id, table.name, table.target_schema, table.target_name)
        for pipeline in pipelines
        for table in pipeline.tables
    )
    return ProjectKey(settings.project.id, settings.project.name, root, frozenset(publishes))


def _belonging_to(key: ProjectKey, pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, tables=tuple(replace(table, project=key) for table in pipeline.tables))


def _default_destination(settings: ProjectSpec, entry: Entry) -> Iterator[Problem]:
    if EMBEDDED in settings.destinations:
        message = f"`{EMBEDDED}` is the name of the embedded PostgreSQL"
        yield entry.problem(("destinations", EMBEDDED), message, "choose another name", at_key=True)
    yield from _named_destination(entry, ("context", "default_destination"), Landings(settings.destinations, None))


def _named_destination(entry: Entry, path: KeyPath, landings: Landings) -> Iterator[Problem]:
    name = entry.value(path)
    if isinstance(name, str) and name and (complaint := landings.complaint(name)) is not None:
        message, hint = complaint
        yield entry.problem(path, message, hint)


def _in_order(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (p.file, p.line, p.column, p.message)))
