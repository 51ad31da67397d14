"""Partition keys in a manifest: which values a source keeps apart, and where they stand in what it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from hakiri_dagster.manifest.field_types import Text, quoted, wrong
from hakiri_dagster.manifest.part_names import LONGEST_NAME, name_of

MOST_VALUES: Final = 1000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def _partition_keys(value: Any) -> Any:
    if not isinstance(value, dict):
        raise wrong("must name a key and its values", 'write it like `{ repo = ["owner/one", "owner/two"] }`')
    if len(value) > 1:
        raise wrong(
            f"{len(value)} partition keys are more than one", "declare a table for each value of the other key, or none"
        )
    for key, values in value.items():
        _refuse_key(key)
        if not isinstance(values, list | tuple) or not values:
            raise wrong(f"{quoted(key)} has no list of values", "list at least one value")
        _refuse_values(key, values)
    return value


def _refuse_key(key: object) -> None:
    if not isinstance(key, str) or not _NAME.fullmatch(key) or key.startswith("_hakiri") or len(key) > 63:
        raise wrong(f"{quoted(str(key))} cannot be a partition key", "it names a column: use letters, digits and `_`")


def _refuse_values(key: str, values: Iterable[object]) -> None:
    seen: set[str] = set()
    for value in values:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise wrong(f"a value of {quoted(key)} is not text that can be printed", "write numbers in quotes")
        if len(name_of(value)) > LONGEST_NAME:
            raise wrong(f"the value {quoted(value)} of {quoted(key)} is too long to be part of a chunk's key")
        if any(piece in (".", "..") for piece in value.split("/")):
            raise wrong(f"the value {quoted(value)} of {quoted(key)} leads to another path", "take the dots out")
        if value in seen:
            raise wrong(f"the value {quoted(value)} of {quoted(key)} is there twice", "name it once")
        seen.add(value)
    if len(seen) > MOST_VALUES:
        raise wrong(f"{quoted(key)} has {len(seen)} values, more than {MOST_VALUES}", "split them between pipelines")


PartitionKeys = Annotated[
    dict[Text, tuple[Text, ...]],
    Field(examples=[{"repo": ["owner/one", "owner/two"]}]),
    BeforeValidator(_partition_keys),
]


def placeholder(key: str) -> str:
    return f"{{{key}}}"


def placeholders_in(text: str) -> tuple[str, ...]:
    """The names that stand in braces."""
    return tuple(_PLACEHOLDER.findall(text))


def as_if_filled(text: str) -> str:
    """To be judged before values stand in it: these are quoted as a URL has them."""
    return _PLACEHOLDER.sub("x", text)


def keys_in_force(
    own: Mapping[str, Sequence[str]] | None,
    of_source: Mapping[str, Sequence[str]],
    path: str,
    params: Mapping[str, Any],
) -> Mapping[str, Sequence[str]]:
    """A table's own partition keys; where it says nothing of them, those of its source that its requests name."""
    if own is not None:
        return own
    return {key: values for key, values in of_source.items() if mentions(key, path, params)}


def mentions(key: str, path: str, params: Mapping[str, Any]) -> bool:
    return any(placeholder(key) in text for text in (path, *_texts(params)))


def _texts(params: Mapping[str, Any]) -> Iterator[str]:
    for value in params.values():
        yield from (str(one) for one in (value if isinstance(value, list | tuple) else [value]))
