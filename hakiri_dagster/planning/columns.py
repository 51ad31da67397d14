"""How a source describes its columns to a destination."""

from __future__ import annotations

from dataclasses import dataclass


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
