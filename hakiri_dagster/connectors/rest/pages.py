"""One page of an API: its records, and what it says of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPMessage
from typing import Any

from hakiri_dagster.connectors.json.raw_text import Document, NotJson, Record, TooMany, read_document
from hakiri_dagster.connectors.rest.client import Client, beginning_of
from hakiri_dagster.connectors.rest.exchange import Answer
from hakiri_dagster.connectors.rest.trying import MayPass
from hakiri_dagster.connectors.rest.urls import one_line
from hakiri_dagster.errors import SourceError
from hakiri_dagster.security.url_guard import SafeUrl

_SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class Page:
    at: SafeUrl
    headers: HTTPMessage
    records: tuple[Record, ...]
    document: Document


def fetch(client: Client, at: SafeUrl, records: str | None) -> Page:
    """`records`: the dotted path of the list of records; None: the body itself is the list."""
    path = path_of(records)
    return client.get(at, lambda answer: _page(client, at, answer, path))


def path_of(dotted: str | None) -> tuple[str, ...]:
    return () if dotted is None else tuple(dotted.split("."))


def _page(client: Client, at: SafeUrl, answer: Answer, path: Sequence[str]) -> Page:
    shown = client.shown(at)
    if answer.status == HTTPStatus.NO_CONTENT:  # how some APIs say that a list is empty
        return Page(at, answer.headers, (), Document(None, ()))
    try:
        document = read_document(answer.body, path, client.most_bytes)
    except TooMany as error:
        raise SourceError(
            f"{shown}: the answer holds more than {error}",
            hint="ask for smaller pages, or raise `max_body_mib`, which allows for them, if there is memory for it",
        ) from None
    except NotJson as error:
        if answer.may_be_cut and answer.body.lstrip()[:1] in (b"{", b"["):
            raise MayPass(f"{shown}: the connection broke off in the middle of the answer") from None
        raise _not_json(shown, answer, error) from None
    if document.records is None:
        raise _no_records(shown, document, path)
    return Page(at, answer.headers, document.records, document)


def _not_json(shown: str, answer: Answer, error: NotJson) -> SourceError:
    body = answer.body.lstrip()
    is_html = answer.headers.get_content_type() in ("text/html", "application/xhtml+xml") or body[:1] == b"<"
    said = f"{shown}: answered {answer.status}"
    if is_html:
        return SourceError(
            f"{said} with HTML, not JSON{beginning_of(answer.body)}",
            hint="a page for people, such as a login: check `base_url`, `path` and `auth`",
        )
    if not body:
        return SourceError(f"{said} with an empty body, not JSON", hint="check `base_url` and the table's `path`")
    return SourceError(
        f"{said} with invalid JSON ({error}){beginning_of(answer.body)}",
        hint="check `base_url` and the table's `path`; the API may have another endpoint, or parameter, for JSON",
    )


def _no_records(shown: str, document: Document, path: Sequence[str]) -> SourceError:
    if not path:
        return SourceError(
            f"{shown}: the answer is {_kind(document.instead)}, not a list of records{_keys(document.instead)}",
            hint='say where the list is, such as `records = "data"`',
        )
    dotted = ".".join(path)
    if document.instead is not None:
        return SourceError(
            f"{shown}: `{dotted}` of the answer is {_kind(document.instead)}, not a list of records",
            hint="`records` is the dotted path of the list",
        )
    missing, where = _missing(document.around, path)
    return SourceError(
        f"{shown}: the answer has no `{missing}`, where `records` says the records are{_keys(where)}",
        hint="`records` is the dotted path of the list",
    )


def _missing(value: Any, path: Sequence[str]) -> tuple[str, Any]:
    """How far the path leads, and what is there."""
    for index, name in enumerate(path):
        if not isinstance(value, dict) or name not in value:
            return ".".join(path[: index + 1]), value
        value = value[name]
    return ".".join(path), value


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a text"
        case bool() | None:
            return str(value).lower().replace("none", "null")
        case _:
            return "a number"


def _keys(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return ""
    names = [f"`{one_line(str(name), 40)}`" for name in list(value)[:_SHOWN_KEYS]]
    return f"; it has {', '.join(names)}" + (" …" if len(value) > _SHOWN_KEYS else "")
