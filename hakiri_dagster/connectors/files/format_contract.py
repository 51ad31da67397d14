"""What each format offers: its schema, its rows, and its cursor's statistics where they cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.contract import DirectRows, FileState, SparkProvider
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.footers import CursorStatistics
from hakiri_dagster.connectors.files.source_lines import Begins
from hakiri_dagster.connectors.files.types import declared_text_column
from hakiri_dagster.planning.chunks import Bounds
from hakiri_dagster.planning.columns import Column, SourceSchema

Statistics = Mapping[str, tuple[CursorStatistics, int]]
"""By path: where the cursor lies, and the number of rows."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a schema is found from. `fresh`: those of `paths` that were not seen before."""

    paths: Sequence[str]
    fresh: Collection[str]
    known: SourceSchema | None
    spark: SparkProvider

    @property
    def news(self) -> Sequence[str]:
        """The files that `known` does not speak of."""
        return [path for path in self.paths if path in self.fresh] if self.known else self.paths

    @property
    def known_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.known.columns) if self.known else ()

    def text_column(self, name: str, declared: Mapping[str, str], found: Mapping[str, Column]) -> Column:
        """A column of a text format: what is declared, else what is known, else what was found."""
        known = self.known.column(name) if self.known else None
        if name not in declared:
            return known or found[name]
        return declared_text_column(name, declared[name])


@dataclass(frozen=True, slots=True)
class FoundSchema:
    schema: SourceSchema
    warnings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Those of `bounds`, which are of `cursor` unless they are files."""

    cursor: str | None
    bounds: Sequence[Bounds]
    files: Mapping[str, FileState]


Direct = Callable[[WantedRows], DirectRows | None]


Narrowed = Callable[[Collection[str]], DataFrame]


def _only_by_spark(_wanted: WantedRows) -> None: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """`frame`: the schema's columns, MALFORMED_COLUMN, FILE_COLUMN. `direct`: at least the wanted rows,
    without Spark's reader, where that gives the same values. `begins`, where the format has lines: the frame has
    SPLIT_COLUMN and RECORD_COLUMN as well. `warnings` are about values that are changed."""

    frame: DataFrame
    has_malformed: bool
    direct: Direct = _only_by_spark
    warnings: tuple[str, ...] = ()
    begins: Begins | None = None
    narrowed: Narrowed | None = None
    wanted: Callable[[WantedRows], DataFrame] | None = None
    """The frame without the rows that are not wanted, where it need not be asked for that."""

    def frame_with(self, names: Collection[str]) -> DataFrame:
        """The same rows; columns other than these may be missing. It is for who reads few columns of many rows."""
        return self.frame if self.narrowed is None else self.narrowed(names)


class FileFormat(Protocol):
    def check(self, path: str) -> None:
        """Raises a SourceError if this one file cannot be read, whatever the others are like."""
        ...

    def schema(self, look: Look) -> FoundSchema: ...

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows: ...

    def statistics(self, paths: Sequence[str], cursor: Cursor, /) -> Statistics:
        """For the files that tell it without being read."""
        ...
