"""What keys a model knows at a place, for `did you mean`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from hakiri_dagster.manifest.flat_keys import LOAD_KEYS, VALIDATE_KEYS
from hakiri_dagster.manifest.spec import PipelineSpec, TableSpec

ModelType = type[BaseModel]
FLAT_MODELS: tuple[ModelType, ...] = (PipelineSpec, TableSpec)


def spellings(name: str, info: FieldInfo) -> tuple[str, ...]:
    """snake_case first."""
    match info.validation_alias:
        case AliasChoices(choices=choices):
            return tuple(str(choice) for choice in choices)
        case str() as alias:
            return (alias,)
        case _:
            return (name,)


def field_named(model: ModelType, written: str) -> FieldInfo | None:
    fields = model.model_fields.items()
    return next((info for name, info in fields if written in spellings(name, info)), None)


def known_names(model: ModelType) -> tuple[str, ...]:
    """In snake_case."""
    own = tuple(spellings(name, info)[0] for name, info in model.model_fields.items())
    return (*own, *LOAD_KEYS, *VALIDATE_KEYS) if model in FLAT_MODELS else own


def models_at(root: ModelType, location: Sequence[str | int]) -> tuple[ModelType, ...]:
    """The models that may stand at a location of a pydantic error; several where a union was not decided."""
    candidates: tuple[ModelType, ...] = (root,)
    for step in location:
        if not isinstance(step, str):
            continue
        infos = [info for model in candidates if (info := field_named(model, step)) is not None]
        inner = tuple(model for info in infos for model in _models_in(info.annotation))
        tagged = tuple(model for model in candidates if step in _tags(model))
        candidates = inner or (() if infos else tagged or candidates)
    return candidates


def _models_in(annotation: Any) -> Iterator[ModelType]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _tags(model: ModelType) -> tuple[Any, ...]:
    for name in ("type", "connector"):
        info = model.model_fields.get(name)
        if info is not None:
            return get_args(info.annotation) if get_origin(info.annotation) is Literal else ("other",)
    return ()
