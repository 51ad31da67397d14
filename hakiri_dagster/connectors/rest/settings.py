"""What a manifest says of an API and of a table, as the values that requests are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from pydantic import Field

from hakiri_dagster.connectors.rest.api import Api, Credentials, Pairs, Patience, Timeouts
from hakiri_dagster.connectors.rest.explosion import Continued, Explosion
from hakiri_dagster.connectors.rest.flattening import Flattening
from hakiri_dagster.connectors.rest.moments import Moments
from hakiri_dagster.connectors.rest.pages import path_of
from hakiri_dagster.connectors.rest.pagination import (
    BodyCursor,
    LastRecord,
    LinkHeader,
    NextUrl,
    Offset,
    OnePage,
    PageNumber,
    Pagination,
)
from hakiri_dagster.connectors.rest.ranges import CursorParams
from hakiri_dagster.connectors.rest.walk import Collection
from hakiri_dagster.manifest import rest_spec as spec
from hakiri_dagster.manifest.field_types import Model, Text
from hakiri_dagster.manifest.parting import PartitionKeys, keys_in_force
from hakiri_dagster.planning.backfill_hint import BackfillHint, PartitionKey

_MIB = 1 << 20


class ExplosionConfig(Model):
    """As `manifest/children.py` writes it."""

    path: spec.DottedPath
    kept: dict[Text, Text]
    position: Text
    cursor: Text | None = None
    continued: spec.ContinuedSpec | None = None
    flatten: spec.Flatten = False
    epochs: tuple[Text, ...] = ()
    needs_parents: bool = False


class EndpointConfig(Model):
    """The keys of a table that are an API's affair."""

    params: spec.Params = Field(default_factory=dict)
    records: spec.DottedPath | None = None
    flatten: spec.Flatten = False
    epochs: tuple[Text, ...] = ()
    pagination: spec.PaginationSpec | None = None
    cursor_params: spec.CursorParams | None = None
    partition_keys: PartitionKeys | None = None
    explosion: ExplosionConfig | None = None
    segments: spec.SegmentsSpec | None = None


def api_of(config: spec.RestConfig) -> Api:
    return Api(
        base_url=config.base_url,
        credentials=_credentials(config.auth),
        headers=tuple(config.headers.items()),
        timeouts=Timeouts(**config.timeout.model_dump()),
        patience=Patience(**config.retry.model_dump()),
        most_bytes=config.max_body_mib * _MIB,
    )


def collection_of(config: spec.RestConfig, endpoint: EndpointConfig, path: str, *, has_key: bool) -> Collection:
    return Collection(
        path=path,
        params=pairs_of(endpoint.params),
        records=endpoint.records,
        pagination=_pagination(endpoint.pagination or config.pagination),
        most_pages=config.max_pages,
        has_key=has_key,
        flattening=Flattening.of(endpoint.flatten),
        moments=Moments(frozenset(endpoint.epochs)),
        explosion=None if endpoint.explosion is None else _explosion(endpoint.explosion),
    )


def _continued(said: spec.ContinuedSpec) -> Continued:
    return Continued(path_of(said.more), path_of(said.url), pairs_of(said.params))


def _explosion(said: ExplosionConfig) -> Explosion:
    continued = said.continued
    return Explosion(
        path=path_of(said.path),
        kept=tuple(said.kept.items()),
        position=said.position,
        cursor=said.cursor,
        continued=None if continued is None else _continued(continued),
        flattening=Flattening.of(said.flatten),
        moments=Moments(frozenset(said.epochs)),
    )


def hint_of(config: spec.RestConfig, endpoint: EndpointConfig, path: str) -> BackfillHint:
    asked = endpoint.cursor_params
    pages = 1 if asked is None else 1 + bool(asked.newest) + bool(asked.oldest)
    if endpoint.segments is not None:
        return BackfillHint("opaque-token", requests_a_look=pages)
    said = keys_in_force(endpoint.partition_keys, config.partition_keys, path, endpoint.params)
    keys = tuple(PartitionKey(column, tuple(values)) for column, values in said.items())
    hint = BackfillHint("partitioned-monotonic", keys) if keys else BackfillHint()
    return replace(hint, requests_a_look=pages * max(1, len(hint.parts)))


def cursor_params_of(said: spec.CursorParams | None) -> CursorParams | None:
    if said is None:
        return None
    return CursorParams(
        lower=said.lower,
        upper=said.upper,
        format=said.format,
        inclusive=said.inclusive,
        ascending=said.order == "ascending",
        descending=said.order == "descending",
        newest=pairs_of(said.newest),
        oldest=pairs_of(said.oldest),
        restart=said.restart,
    )


def pairs_of(params: Mapping[str, Any]) -> Pairs:
    """A list is a parameter that is given several times."""
    several = ((name, value if isinstance(value, list | tuple) else [value]) for name, value in params.items())
    return tuple((name, _text(value)) for name, values in several for value in values)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _credentials(auth: spec.AuthSpec | None) -> Credentials:
    match auth:
        case None:
            return Credentials()
        case spec.BearerAuth():
            return Credentials.bearer(auth.token)
        case spec.BasicAuth():
            return Credentials.basic(auth.username, auth.password)
        case spec.HeaderAuth():
            return Credentials.header(auth.name, auth.value)
        case spec.QueryAuth():
            return Credentials.query(auth.name, auth.value)
        case _:
            assert_never(auth)


def _pagination(said: spec.PaginationSpec) -> Pagination:
    match said:
        case spec.NoPages():
            return OnePage()
        case spec.LinkPages():
            return LinkHeader()
        case spec.NextUrlPages():
            return NextUrl(said.next)
        case spec.CursorPages():
            return BodyCursor(said.next, said.param, said.more)
        case spec.LastRecordPages():
            return LastRecord(said.id, said.param, said.more)
        case spec.NumberedPages():
            return PageNumber(said.param, said.first, _size(said), said.total)
        case spec.OffsetPages():
            return Offset(said.param, said.first, _size(said), said.total)
        case _:
            assert_never(said)


def _size(said: spec.NumberedPages | spec.OffsetPages) -> Pairs:
    if said.size is None:
        return ()
    return ((said.size_param or "", str(said.size)),)
