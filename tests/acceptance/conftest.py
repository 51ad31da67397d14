"""Projects on disk, used through the real command line in real processes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.command_line import ProjectFolder

NewProject = Callable[[str], ProjectFolder]


@pytest.fixture(scope="module")
def new_project(open_folder: Path) -> Iterator[NewProject]:
    """Folders that PostgreSQL's account may enter. Whatever was started in one is dead when the module is done."""
    made: list[ProjectFolder] = []

    def make(name: str) -> ProjectFolder:
        root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=open_folder))
        root.chmod(0o755)
        made.append(ProjectFolder(root))
        return made[-1]

    yield make
    for project in made:
        project.kill_everything()
        shutil.rmtree(project.root, ignore_errors=True)
