"""The settings of a PostgreSQL source, and what can be wrong with them before anything is asked of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_EMBEDDED = "embedded"
_DEFAULT_SCHEMA = "public"
_DEFAULT_CONNECTIONS = 8
_MOST_CONNECTIONS = 64
_CONNECT_TIMEOUT_SECONDS = 15
APPLICATION_NAME = "hakiri-dagster source reader"
"""By which our own sessions are known: they write nothing, so no cursor waits for their end."""
_HURRIED = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
"""A server that is gone without a word is noticed soon, also in the middle of a statement."""
_LIMITS_IN_A_HURRY = (("lock_timeout", "5s"), ("statement_timeout", "15s"))
_KEYS = ("url", "schema", "max_connections", "text_columns", "row_security")
_ROW_SECURITY = ("on", "off")


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """`max_connections` bounds how many parts of one table are read at once.

    `text_columns` travel in PostgreSQL's own text form: for values that Spark's types cannot hold (`infinity`, NaN).
    `limits` are settings of a session that gives up soon; without them the role's own hold. With `row_security` off
    PostgreSQL refuses to read what a policy would filter.
    """

    conninfo: str = field(repr=False)
    place: str
    schema: str = _DEFAULT_SCHEMA
    max_connections: int = _DEFAULT_CONNECTIONS
    text_columns: frozenset[str] = frozenset()
    limits: tuple[tuple[str, str], ...] = ()
    row_security: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any], *, hurried: bool = False) -> SourceConfig:
        """Without a URL (the embedded server is not up yet) it can name the source, not read it. `hurried`: it is
        looked at within a tick."""
        url = config.get("url")
        parameters = conninfo_to_dict(url or "")
        parameters.setdefault("connect_timeout", _CONNECT_TIMEOUT_SECONDS)
        parameters["client_encoding"] = "UTF8"
        parameters["application_name"] = f"{parameters.get('application_name', '')} {APPLICATION_NAME}".strip()
        if hurried:
            parameters |= _HURRIED
        return cls(
            conninfo=make_conninfo("", **parameters),
            place="/".join(_place(parameters)) if url else _EMBEDDED,
            schema=config.get("schema", _DEFAULT_SCHEMA),
            max_connections=config.get("max_connections", _DEFAULT_CONNECTIONS),
            text_columns=frozenset(config.get("text_columns", ())),
            limits=_LIMITS_IN_A_HURRY if hurried else (),
            row_security=config.get("row_security", "on") == "on",
        )

    @property
    def lineage(self) -> tuple[str, ...]:
        return (*self.place.split("/", 1), self.schema)

    def without_secrets(self, text: str) -> str:
        for name, value in conninfo_to_dict(self.conninfo).items():
            if name in {"password", "sslpassword"} and value:
                text = text.replace(str(value), "***")
        return text


def problems(config: Mapping[str, Any], table: str) -> Iterator[str]:
    for key in config.keys() - set(_KEYS):
        near = difflib.get_close_matches(key, _KEYS, 1)
        yield f"unknown setting `{key}`" + (f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(_KEYS)}")
    yield from _url_problems(config.get("url"))
    if not _is_name(config.get("schema", _DEFAULT_SCHEMA)):
        yield "`schema` must be the name of a schema"
    if not _is_name(table):
        yield "the table must be the name of a table or view"
    connections = config.get("max_connections", _DEFAULT_CONNECTIONS)
    if type(connections) is not int or not 1 <= connections <= _MOST_CONNECTIONS:
        yield f"`max_connections` must be a number from 1 to {_MOST_CONNECTIONS}"
    columns = config.get("text_columns", ())
    if not isinstance(columns, list | tuple) or not all(_is_name(column) for column in columns):
        yield "`text_columns` must be a list of column names"
    if config.get("row_security", "on") not in _ROW_SECURITY:
        yield '`row_security` must be "on" or "off"'


def _url_problems(url: object) -> Iterator[str]:
    if url is None:  # the project's embedded PostgreSQL
        return
    if not isinstance(url, str) or not url.startswith(("postgresql://", "postgres://")):
        yield "`url` must be like `postgresql://user:password@host:5432/database`"
        return
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text repeats the URL, password included
        yield "`url` cannot be parsed; special characters in user and password must be percent-encoded"
        return
    if "@" in str(parameters.get("host", "")):
        yield "`url` has an `@` in user or password; write it as `%40`"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _place(parameters: Mapping[str, Any]) -> Iterator[str]:
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    yield f"{host}:{parameters.get('port') or 5432}".lstrip("/").replace("/", "_")
    yield str(parameters.get("dbname") or parameters.get("user") or "postgres")
