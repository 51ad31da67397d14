"""How a source describes its columns to a destination."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


def is_ours(name: str) -> bool:
    """Columns that loads write themselves, or mark rows with on the way: what a source has of that name stays there."""
    return name.startswith("_hakiri_") or name == "_source_file_hash"


def left_out(names: Iterable[str]) -> tuple[str, ...]:
    """As warnings."""
    ours = sorted({name for name in names if is_ours(name)})
    return tuple(f"`{name}` is not loaded: every load writes columns of that name of its own" for name in ours)


@dataclass(frozen=True, slots=True)
class Column:
    """`spark_type` is Spark DDL (`decimal(15,2)`), what the frame holds.

    `native_type` is the source's own PostgreSQL type (`numeric(15,2)`, `uuid`, `text[]`) when the source is a
    PostgreSQL; types that Spark lacks travel as strings and are restored from it.
    """

    name: str
    spark_type: str
    nullable: bool = True
    native_type: str | None = None


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """`primary_key` is what the source itself declares; the manifest's word wins over it."""

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)
