"""This package as a zip file, which Spark sends to workers elsewhere: they need what it depends on, and not itself."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from functools import cache
from pathlib import Path

from hakiri_dagster.errors import EngineError

_PACKAGE = Path(__file__).resolve().parents[1]
_MOMENT = (2000, 1, 1, 0, 0, 0)
_LEFT_OUT = "__pycache__"


def package_archive(state_dir: Path) -> Path:
    """Where it lies. The name tells its content, so that two versions are never taken for each other."""
    digest = hashlib.sha256(_packed()).hexdigest()[:12]
    return state_dir / "spark" / f"{_PACKAGE.name}-{digest}.zip"


def write_package(state_dir: Path) -> Path:
    """To be called before a session is opened that is told of it."""
    archive = package_archive(state_dir)
    if archive.exists():
        return archive
    partial = archive.with_name(f"{archive.name}.{os.getpid()}.new")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_packed())
        partial.replace(archive)
    except OSError as error:
        raise EngineError(
            f"cannot write the package for Spark's workers: {error}",
            where=str(archive),
            hint="the state folder must be writable, and have some room left",
        ) from error
    return archive


@cache
def _packed() -> bytes:
    """The same bytes each time, whenever and wherever the package was installed."""
    files = (path for path in _PACKAGE.rglob("*") if path.is_file() and _LEFT_OUT not in path.parts)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(str(path.relative_to(_PACKAGE.parent)), _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
