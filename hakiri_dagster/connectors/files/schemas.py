"""One schema for all files of a table. Columns keep the order in which they were first seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hakiri_dagster.connectors.files.arrow_types import FileColumn
from hakiri_dagster.connectors.files.footers import Footer
from hakiri_dagster.connectors.files.headers import Header
from hakiri_dagster.connectors.files.types import can_become, declared_column, is_text, widened
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column, is_ours


def merged_names(headers: Sequence[Header], known: Sequence[str], label: str) -> tuple[str, ...]:
    """Every name of every header, what is known first."""
    names = list(known)
    for header in headers:
        if header.names and names and not set(header.names) & set(names):
            raise _strangers(header.path, header.names, names, label)
        names += [name for name in header.names if name not in names and not is_ours(name)]
    return tuple(names)


def merged_columns(footers: Sequence[Footer], declared: Mapping[str, str], label: str) -> tuple[Column, ...]:
    found: dict[str, tuple[FileColumn, str]] = {}
    for footer in footers:
        names = [column.name for column in footer.columns]
        if found and names and not set(names) & set(found):
            raise _strangers(footer.path, names, list(found), label)
        for column in footer.columns:
            if is_ours(column.name):
                continue
            first = found.get(column.name)
            if first is None or first[0].conversion == "absent":
                found[column.name] = (column, footer.path)
            elif column.conversion == "absent":
                continue
            elif column.name in declared:
                _table_column(column, declared, footer.path, label)
            else:
                found[column.name] = (_widest(first, column, footer.path, label), first[1])
    return tuple(_table_column(column, declared, path, label) for column, path in found.values())


def _widest(first: tuple[FileColumn, str], other: FileColumn, path: str, label: str) -> FileColumn:
    column, first_path = first
    wide = widened(column.spark_type, other.spark_type)
    if wide is None:
        raise SourceError(
            f"{path}: column `{other.name}` is {other.spark_type}, but {column.spark_type} in {first_path}",
            where=label,
            hint=f'declare its type, for example `columns = {{ {other.name} = "text" }}`, '
            "or give the files of the other schema a table of their own",
        )
    return column if wide == column.spark_type else FileColumn(other.name, wide, wide)


def _table_column(column: FileColumn, declared: Mapping[str, str], path: str, label: str) -> Column:
    if column.name not in declared:
        return Column(column.name, column.spark_type, native_type=column.native_type)
    wanted = declared_column(column.name, declared[column.name])
    if wanted.spark_type == "string" and not is_text(declared[column.name]):
        return Column(column.name, column.spark_type, native_type=declared[column.name])
    if not can_become(column.spark_type, wanted.spark_type):
        raise SourceError(
            f"{path}: column `{column.name}` is {column.spark_type}, which cannot become {declared[column.name]}",
            where=label,
            hint="declare another type under `columns`",
        )
    return wanted


def unknown_declared(columns: Iterable[str], declared: Mapping[str, str]) -> tuple[str, ...]:
    missing = [name for name in declared if name not in set(columns)]
    return tuple(f"`columns` names `{name}`, which no file has" for name in missing)


def alike_names(names: Iterable[str]) -> tuple[str, ...]:
    """PostgreSQL tells them apart; the people who wrote the files may not have."""
    first: dict[str, str] = {}
    warnings = []
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            warnings.append(f"`{other}` and `{name}` differ in case only and become two columns")
    return tuple(warnings)


def _strangers(path: str, names: Sequence[str], others: Sequence[str], label: str) -> SourceError:
    return SourceError(
        f"{path} has no column of this table: it has {_list(names)}, the other files have {_list(others)}",
        where=label,
        hint="is it a file of another table, or does it lack its header line (`header = false`)?",
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:5]) + (" …" if len(names) > 5 else "")
