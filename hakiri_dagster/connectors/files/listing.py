"""Which files a table consists of.

Folders are searched to any depth. Files and folders whose names begin with `.` or `_` are left out, as Spark
leaves them out (`_SUCCESS`, `.part-0.crc`); so are files whose extension names no format, unless the source
declares one. Folders named like `dt=2024-01-01` are folders like any other: their names become no columns,
because a name is no value of a known type and the same column may be in the file, too. A warning says so.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePath

from hakiri_dagster.connectors.files.formats import (
    CODECS,
    EXTENSIONS,
    Format,
    compression_of,
    format_of,
    is_unreadable,
)
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.errors import NothingThere, SourceError


@dataclass(frozen=True, slots=True)
class ListedFile:
    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Listing:
    """`files` in the order of their paths."""

    files: tuple[ListedFile, ...]
    format: Format
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table's files are: `pattern`, or what is called `<folder>/<table>`."""

    options: FilesOptions
    table: str
    path: str | None
    label: str

    @property
    def pattern(self) -> str:
        """A file, a folder or a glob, for messages and for the source asset's name."""
        source = self.options.path
        if self.path is not None:
            return os.path.normpath(os.path.join(source, self.path))
        is_folder = os.path.isdir(source) or (format_of(source) is None and not glob.has_magic(source))
        return os.path.normpath(os.path.join(source, self.table) if is_folder else source)

    @property
    def is_folder(self) -> bool:
        """Files may be put there: a folder that is there, or the one below which a glob looks."""
        fixed = self.pattern
        while glob.has_magic(fixed):
            fixed = os.path.dirname(fixed)
        return os.path.isdir(fixed)

    def listing(self) -> Listing:
        warnings: list[str] = []
        paths = sorted(self._paths())
        for path in paths:
            self._refuse_unreadable_name(path)
        format_, paths = self._of_one_format(paths, warnings)
        files = tuple(_stat(paths, warnings))
        if not files:
            raise self._nothing("holds no files" if os.path.isdir(self.pattern) else "matches no files")
        warnings += _partition_folders(self.pattern, paths)
        return Listing(files, format_, tuple(warnings))

    def _paths(self) -> Iterator[str]:
        pattern = self.pattern
        if os.path.isfile(pattern):
            yield pattern
        elif os.path.isdir(pattern):
            self._refuse_file_beside(pattern)
            yield from _below(pattern, self.label)
        elif glob.has_magic(pattern):
            for path in glob.iglob(pattern, recursive=True):
                visible = not _is_hidden(os.path.basename(path))
                yield from (_below(path, self.label) if os.path.isdir(path) else [path] if visible else [])
        else:
            yield self._named_after_table(pattern)

    def _named_after_table(self, pattern: str) -> str:
        found = list(_with_extensions(pattern, self.options.format))
        if self.path is None and len(found) == 1:
            return found[0]
        if len(found) > 1 and self.path is None:
            raise SourceError(
                f"more than one file is called `{self.table}`: {', '.join(found)}",
                where=self.label,
                hint="give the table a `path`, or the source a `format`",
            )
        raise self._nothing("does not exist")

    def _refuse_file_beside(self, folder: str) -> None:
        beside = list(_with_extensions(folder, self.options.format)) if self.path is None else []
        if beside and os.path.basename(folder) == self.table:
            raise SourceError(
                f"both the folder {folder} and the file {beside[0]} are called `{self.table}`",
                where=self.label,
                hint="give the table a `path`",
            )

    def _of_one_format(self, paths: list[str], warnings: list[str]) -> tuple[Format, list[str]]:
        if self.options.format is not None:
            return self.options.format, paths
        formats = {path: format_of(path) for path in paths}
        known = {found for found in formats.values() if found is not None}
        if len(known) > 1:
            examples = ", ".join(next(p for p in paths if formats[p] == f) for f in sorted(known))
            raise SourceError(
                f"{self.pattern} holds files of several formats: {examples}",
                where=self.label,
                hint="declare `format`, or narrow `path` with a glob such as `*.csv`",
            )
        unknown = [path for path in paths if formats[path] is None]
        if not known:
            what = "has no known extension" if unknown else "holds no files"
            raise self._nothing(what, 'declare `format = "csv"`, `jsonl`, `parquet` or `orc`')
        if unknown:
            warnings.append(f"left out, for their extensions name no format: {_some(unknown)}")
        return known.pop(), [path for path in paths if formats[path] is not None]

    def _refuse_unreadable_name(self, path: str) -> None:
        declared = self.options.declared_compression
        reason = _unreadable_name(path)
        if reason is None and declared is not None and compression_of(path) != declared:
            reason = f"its extension says compression `{compression_of(path)}`, the manifest says `{declared}`"
        if reason is not None:
            raise SourceError(f"{path!r} cannot be read: {reason}", where=self.label, hint="rename or rewrite it")

    def _nothing(self, what: str, hint: str | None = None) -> NothingThere:
        return NothingThere(
            f"{self.pattern} {what}",
            where=self.label,
            hint=hint
            or f"expected {self.pattern}.csv (jsonl, parquet, orc), or a folder of such files; "
            "names that begin with `.` or `_` are left out",
        )


def _with_extensions(stem: str, format_: Format | None) -> Iterator[str]:
    extensions = [e for e, f in EXTENSIONS.items() if format_ in (None, f)]
    for extension, codec in product(extensions, ("", *CODECS)):
        if os.path.isfile(stem + extension + codec):
            yield stem + extension + codec


def _below(folder: str, label: str) -> Iterator[str]:
    """Linked folders are followed, each once."""
    seen: set[str] = set()

    def refuse(error: OSError) -> None:
        raise SourceError(f"{error.filename} cannot be listed: {error.strerror}", where=label) from error

    for root, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        real = os.path.realpath(root)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        yield from (os.path.join(root, name) for name in names if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _unreadable_name(path: str) -> str | None:
    name = os.path.basename(path)
    if _is_hidden(name):
        return "Spark leaves out names that begin with `.` or `_`"
    if ":" in name:
        return "Hadoop takes the colon in its name for a URL"
    if is_unreadable(path):
        return f"Spark has no codec for `{PurePath(path).suffix}`; gzip, bzip2 and zstd (`.zst`) work"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return None


def _stat(paths: Iterable[str], warnings: list[str]) -> Iterator[ListedFile]:
    for path in paths:
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            warnings.append(f"{path} vanished while the files were listed")
            continue
        yield ListedFile(path, status.st_size, status.st_mtime_ns)


def _partition_folders(pattern: str, paths: Iterable[str]) -> list[str]:
    names = {part for path in paths for part in PurePath(path).parts[:-1] if "=" in part}
    names -= set(PurePath(pattern).parts)
    if not names:
        return []
    return [f"names of folders become no columns: {_some(sorted(names))}"]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
