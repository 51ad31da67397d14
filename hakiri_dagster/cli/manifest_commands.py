"""The commands that need nothing but the manifests: validate, init, schema export, pipeline list and show."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline
from hakiri_dagster.errors import ManifestError, Problem, UsageError
from hakiri_dagster.manifest.project import load_project, read_project
from hakiri_dagster.manifest.scaffold import write_scaffold
from hakiri_dagster.manifest.schema import pipeline_schema, project_schema, schema_text
from hakiri_dagster.manifest.tables import Endpoint, Pipeline, Table
from hakiri_dagster.manifest.trigger_spec import told
from hakiri_dagster.security.secrets import redact, safe_url


def validate(project_dir: Path, as_json: bool) -> int:
    reading = read_project(project_dir)
    if as_json:
        print_json(
            {
                "ok": not reading.problems,
                "pipelines": list(reading.pipeline_ids),
                "errors": [asdict(problem) for problem in reading.problems],
                "warnings": [asdict(warning) for warning in reading.warnings],
            }
        )
    else:
        _print_problems("warning", reading.warnings)
        _print_problems("error", reading.problems)
        if not reading.problems:
            print(f"valid: {_count(len(reading.pipeline_ids), 'pipeline')}")
    return ManifestError.exit_code if reading.problems else 0


def init(directory: Path, extra_files: Mapping[str, str] | None = None) -> int:
    scaffold = write_scaffold(directory, extra_files)
    _write_schemas(directory)
    for name in scaffold.written:
        print(f"wrote {directory / name}")
    if scaffold.kept_gitignore:
        print(f"kept {directory / '.gitignore'}: add `.hakiri/` to it")
    there = "" if directory.resolve() == Path.cwd() else f" --project {directory}"
    print(f"next: hakiri{there} plan, then hakiri{there} apply")
    return 0


def schema_export(project_dir: Path) -> int:
    print(_write_schemas(project_dir))
    return 0


def pipeline_list(project_dir: Path, as_json: bool) -> int:
    pipelines = load_project(project_dir).pipelines
    if as_json:
        print_json({"pipelines": [_summary(pipeline) for pipeline in pipelines]})
        return 0
    width = max((len(pipeline.id) for pipeline in pipelines), default=0)
    for pipeline in pipelines:
        tables = ", ".join(table.name for table in pipeline.tables)
        print(f"{pipeline.id:<{width}}  {pipeline.schedule or 'no schedule'}  {tables}")
    return 0


def pipeline_show(project_dir: Path, pipeline_id: str, as_json: bool) -> int:
    pipeline = chosen_pipeline(load_project(project_dir), pipeline_id)
    if as_json:
        print_json(_details(pipeline))
    else:
        _print_pipeline(pipeline)
    return 0


def _write_schemas(project_dir: Path) -> Path:
    folder = project_dir / ".hakiri" / "schema"
    path = folder / "pipeline.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(schema_text(pipeline_schema()), encoding="utf-8")
        (folder / "hakiri.json").write_text(schema_text(project_schema()), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", where=str(folder)) from error
    return path


def _print_problems(kind: str, problems: Sequence[Problem]) -> None:
    for problem in problems:
        place = f"{problem.file}:{problem.line}:{problem.column}"
        print(redact(f"{place}: {kind}: {problem.message}"), file=sys.stderr)
        if problem.hint:
            print(redact(f"  hint: {problem.hint}"), file=sys.stderr)
    if kind == "error" and problems:
        print(_count(len(problems), "error"), file=sys.stderr)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _summary(pipeline: Pipeline) -> dict[str, Any]:
    first = pipeline.tables[0]
    return {
        "id": pipeline.id,
        "connector": first.source.known_as,
        "destination": first.destination.name,
        "tables": [table.name for table in pipeline.tables],
        "schedule": pipeline.schedule,
        "timezone": pipeline.timezone,
        "description": pipeline.description,
        "file": pipeline.origin.file,
        "line": pipeline.origin.line,
    }


def _details(pipeline: Pipeline) -> dict[str, Any]:
    first = pipeline.tables[0]
    return {
        **_summary(pipeline),
        "source": _endpoint(first.source),
        "destination": _endpoint(first.destination),
        "triggers": [told(trigger, pipeline.id) for trigger in pipeline.triggers],
        "secrets": list(pipeline.secrets),
        "owners": list(pipeline.owners),
        "tags": dict(pipeline.tags),
        "tables": [_table(table) for table in pipeline.tables],
    }


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    config = dict(endpoint.config)
    if config.get("url"):
        config["url"] = safe_url(config["url"])
    return {"connector": endpoint.connector, "name": endpoint.name, "config": config}


def _table(table: Table) -> dict[str, Any]:
    return {
        "table": table.name,
        "target": f"{table.target_schema}.{table.target_name}",
        "quarantine": ".".join(table.quarantine_table),
        "mode": table.mode,
        "primary_key": list(table.primary_key),
        "upsert_key": list(table.upsert_key),
        "incremental": table.cursor,
        "path": table.path,
        "columns": dict(table.columns),
        "renamed": dict(table.renamed),
        "contract": table.contract,
        "load": table.load.model_dump(mode="json"),
        "backfill": table.backfill.model_dump(mode="json"),
        "validate": table.validation.model_dump(mode="json"),
        "description": table.description,
        "owners": list(table.owners),
        "tags": dict(table.tags),
        "file": table.origin.file,
        "line": table.origin.line,
    }


def _print_pipeline(pipeline: Pipeline) -> None:
    first = pipeline.tables[0]
    source, destination = _endpoint(first.source)["config"], _endpoint(first.destination)["config"]
    place = source.get("url") or source.get("base_url") or source.get("path") or "embedded"
    lines = [
        f"{pipeline.id}  ({pipeline.origin.file}:{pipeline.origin.line})",
        *([f"  {pipeline.description}"] if pipeline.description else []),
        f"  from      {first.source.known_as} {place}",
        f"  to        {first.destination.connector} {destination['url'] or 'embedded'}",
        f"  schedule  {pipeline.schedule or 'none'} ({pipeline.timezone})",
        *(f"  trigger   {told(trigger, pipeline.id)}" for trigger in pipeline.triggers),
    ]
    for table in pipeline.tables:
        cursor = f", by {table.cursor}" if table.cursor else ""
        lines.append(f"  {table.name} → {table.target_schema}.{table.target_name}  {table.mode}{cursor}")
    print(redact("\n".join(lines)))
