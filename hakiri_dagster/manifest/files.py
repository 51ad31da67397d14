"""Finds and reads the manifest files of a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hakiri_dagster.errors import ManifestError, Problem
from hakiri_dagster.manifest.documents import Document, parse_document
from hakiri_dagster.manifest.places import Entry

MANIFESTS = "manifests"
PROJECT_FILE = f"{MANIFESTS}/hakiri.toml"
PIPELINES = f"{MANIFESTS}/pipelines"


@dataclass(slots=True)
class Manifests:
    """`settings` is the project file without its pipelines. Files that cannot be parsed are only in `problems`."""

    settings: Entry | None = None
    pipelines: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def complain(self, file: str, message: str, hint: str | None = None) -> None:
        self.problems.append(Problem(file, 1, 1, None, message, hint))


def read_manifests(root: Path) -> Manifests:
    found = Manifests()
    project_file = root / PROJECT_FILE
    pipeline_files = _pipeline_files(root, found)
    if project_file.exists():
        _read_project_file(project_file, found)
    elif not pipeline_files:
        found.complain(PROJECT_FILE, "not found: this folder is not a project", _where_else(root))
    for path in pipeline_files:
        _read_pipeline_file(path, root, found)
    return found


def _where_else(root: Path) -> str:
    if (root / "hakiri.toml").is_file() or (root / "pipelines").is_dir():
        return f"move `hakiri.toml` and `pipelines/` into `{MANIFESTS}/`"
    return "run `hakiri init` to begin one, or name another folder with `--project`"


def _pipeline_files(root: Path, found: Manifests) -> list[Path]:
    folder = root / PIPELINES
    if not folder.is_dir():
        return []
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        found.complain(PIPELINES, f"cannot be read: {error.strerror or error}")
        return []
    chosen = []
    for path in inside:
        if path.suffix in (".toml", ".json"):
            chosen.append(path)
        elif path.is_dir() or path.suffix.lower() in (".toml", ".json", ".yaml", ".yml"):
            file = path.relative_to(root).as_posix()
            what = "a folder" if path.is_dir() else f"`{path.suffix}`"
            found.warnings.append(
                Problem(file, 1, 1, None, f"ignored: {what} in `{PIPELINES}/`", "pipelines are *.toml and *.json")
            )
    return chosen


def _parsed(path: Path, file: str, found: Manifests) -> Document | None:
    try:
        return parse_document(path.read_bytes(), file)
    except OSError as error:
        found.complain(file, f"cannot be read: {error.strerror or error}")
    except ManifestError as error:
        found.problems.extend(error.problems)
    return None


def _read_project_file(path: Path, found: Manifests) -> None:
    document = _parsed(path, PROJECT_FILE, found)
    if document is None:
        return
    settings = {key: value for key, value in document.data.items() if key != "pipeline"}
    found.settings = Entry(document, (), settings)
    inline = document.data.get("pipeline", [])
    if isinstance(inline, list):
        found.pipelines += [Entry(document, ("pipeline", i), data) for i, data in enumerate(inline)]
    else:
        whole = Entry(document, (), document.data)
        hint = "write `[[pipeline]]`, with two brackets, above each pipeline"
        found.problems.append(whole.problem(("pipeline",), "`pipeline` must be a list of pipelines", hint))


def _read_pipeline_file(path: Path, root: Path, found: Manifests) -> None:
    document = _parsed(path, path.relative_to(root).as_posix(), found)
    if document is None:
        return
    entry = Entry(document, (), document.data)
    if "pipeline" in document.data:
        message = f"a file in `{PIPELINES}/` holds one pipeline, at its top level"
        hint = f"take the `[[pipeline]]` header away, or move the pipelines to `{PROJECT_FILE}`"
        found.problems.append(entry.problem(("pipeline",), message, hint, at_key=True))
    else:
        found.pipelines.append(entry)
