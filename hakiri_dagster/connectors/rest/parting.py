"""Parts of a table that an API keeps apart, such as the issues of several repositories: each is walked by itself, and
its records are told by a column that they do not have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.parting import placeholder
from hakiri_dagster.planning.chunks import Part


def path_of_part(path: str, part: Part | None) -> str:
    """A slash stays one: `owner/name` is two segments of a path."""
    return path if part is None else path.replace(placeholder(part.column), quote(part.value, safe="/"))


def params_of_part(params: Pairs, part: Part | None) -> Pairs:
    if part is None:
        return params
    return tuple((name, value.replace(placeholder(part.column), part.value)) for name, value in params)


def record_of_part(record: Record, part: Part | None) -> Record:
    """With the part's value among its members. What is no object has none: reading sets it aside."""
    if part is None or not isinstance(record.value, Mapping):
        return record
    if part.column in record.value:
        return _its_own(record, part)
    members = record.text.lstrip()[1:]
    more = "," if record.value else ""
    text = (
        f"{{{json.dumps(part.column, ensure_ascii=False)}:{json.dumps(part.value, ensure_ascii=False)}{more}{members}"
    )
    return Record(text, {part.column: part.value, **record.value})


def _its_own(record: Record, part: Part) -> Record:
    found = record.value[part.column]
    if found is None or isinstance(found, bool | dict | list) or str(found) != part.value:
        raise SourceError(
            f"records have a member `{part.column}` of their own, which is not {part.value!r} as the partition key is",
            hint="give the partition key, and its place in `path` or `params`, a name that no record has",
        )
    return record
