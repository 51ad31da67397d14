"""What SQL a hook may hold: maintenance, never a change of rows, of definitions or of rights.

Judged on PostgreSQL's own tokens and parse tree: a first word says nothing of what an EXPLAIN runs or a SET sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.security.harmless_select import named_relations, refuse_what_could_run
from hakiri_dagster.security.settable import SETTABLE

if TYPE_CHECKING:
    from pglast import ast

ALLOWED = (
    "a hook may hold one statement without comments: ANALYZE, VACUUM, CLUSTER, REINDEX, REFRESH MATERIALIZED VIEW, "
    "EXPLAIN of a SELECT from schema.table (never ANALYZE), or SET of a planner, memory, timeout or search-path setting"
)
PROBES = (
    "a validator may ask one SELECT without comments, from {table} or schema.table: no row, or one true value, passes"
)
_NOT_READ = frozenset({"pg_catalog", "pg_toast", "information_schema", "hakiri"})
TABLE = "{table}"

_MAX_LENGTH = 10_000
"""The parser recurses: a quarter of a million characters of nesting end the whole process."""

_STAND_IN = '"schema"."table"'
_QUOTED_RELATION = re.compile(r'"(?:[^"\0]|"")+"(?:\."(?:[^"\0]|"")+")?')
_PLAIN_CONSTANT = re.compile(r"'(?:[^'\\]|'')*'")
_EXPLAIN_OPTIONS = frozenset({"buffers", "costs", "format", "generic_plan", "memory", "settings", "summary", "verbose"})


@dataclass(frozen=True, slots=True)
class HookSql:
    """`text` is without its semicolon. `sets`: it changes nothing but the session that it runs in. `explains`: the
    relations of the SELECT that it explains, None if it explains nothing."""

    text: str
    sets: bool
    explains: frozenset[tuple[str, str]] | None = None


class _Token(NamedTuple):
    """`end` is the place behind its last character."""

    name: str
    text: str
    start: int
    end: int


def judge(text: str) -> HookSql:
    """`{table}` must have been replaced before, so that no name of a table escapes judgement."""
    with _allowing(ALLOWED):
        tokens = _tokens(text)
        statement = _only_statement(text, tokens)
        judgement = _JUDGEMENTS.get(type(statement).__name__)
        if judgement is None:
            raise UnsafeSql(f"{_first_word(tokens)} is not among the statements of a hook")
        explains = judgement(statement)
        return HookSql(_bare(text, tokens), type(statement).__name__ == "VariableSetStmt", explains)


@dataclass(frozen=True, slots=True)
class ProbeSql:
    """One SELECT, without its semicolon, and the relations that it reads."""

    text: str
    reads: frozenset[tuple[str, str]]


def judge_probe(text: str) -> ProbeSql:
    """As for hooks, `{table}` must have been replaced before."""
    with _allowing(PROBES):
        tokens = _tokens(text)
        statement = _only_statement(text, tokens)
        if statement is None or type(statement).__name__ != "SelectStmt":
            raise UnsafeSql(f"{_first_word(tokens)} is not a SELECT, which is all that a validator may ask")
        refuse_what_could_run(statement)
        reads = named_relations(statement)
        for schema, name in sorted(reads):
            if schema in _NOT_READ:
                raise UnsafeSql(f"it reads {schema}.{name}, and a validator shows what it finds")
        return ProbeSql(_bare(text, tokens), reads)


def judge_probe_template(text: str) -> ProbeSql:
    """While no table is known."""
    with _allowing(PROBES):
        return judge_probe(with_table(text, _STAND_IN))


def judge_template(text: str) -> HookSql:
    """While no table is known."""
    with _allowing(ALLOWED):
        return judge(with_table(text, _STAND_IN))


@contextmanager
def _allowing(allowed: str) -> Iterator[None]:
    """What reads a statement refuses it in the same words, whatever it is for."""
    try:
        yield
    except UnsafeSql as error:
        raise UnsafeSql(error.what, hint=error.hint or allowed) from None


def with_table(text: str, quoted_relation: str) -> str:
    """Only where `{table}` is a name of its own: inside quotes, the quotes of the name would end them."""
    if _QUOTED_RELATION.fullmatch(quoted_relation) is None:
        raise UnsafeSql(f"{quoted_relation} is not the quoted name of a relation")
    if TABLE not in text:
        return text
    filled = text.replace(TABLE, quoted_relation)
    tokens = _tokens(filled)
    starts, ends = {token.start for token in tokens}, {token.end for token in tokens}
    place = 0
    for before in text.split(TABLE)[:-1]:
        start = place + len(before)
        place = start + len(quoted_relation)
        if start not in starts or place not in ends:
            raise UnsafeSql(f"{TABLE} stands inside of something else; it is quoted already and stands for itself")
    return filled


def _tokens(text: str) -> list[_Token]:
    if len(text) > _MAX_LENGTH:
        raise UnsafeSql(f"it is longer than {_MAX_LENGTH} characters")
    hidden = next((c for c in text if not (c.isprintable() or c in "\t\r\n")), None)
    if hidden is not None:
        raise UnsafeSql(f"it holds the invisible character U+{ord(hidden):04X}")
    # Imported here, for it takes 50 to 100 ms, and most commands meet no hook.
    from pglast.parser import ParseError, scan

    try:
        tokens = [_Token(t.name, text[t.start : t.end + 1], t.start, t.end + 1) for t in scan(text)]
    except ParseError as error:
        raise UnsafeSql(f"PostgreSQL cannot read it: {error.args[0]}") from None
    for token in tokens:
        _refuse_odd(token)
    return tokens


def _refuse_odd(token: _Token) -> None:
    shown = token.text[:20]
    if token.name in ("SQL_COMMENT", "C_COMMENT"):
        raise UnsafeSql("it holds a comment")
    # A constant that goes on in another line hides comments from the scanner; what a backslash means, the server sets.
    if token.name.endswith("CONST") and "'" in token.text and not _PLAIN_CONSTANT.fullmatch(token.text):
        raise UnsafeSql(f"{shown} is not a plain constant: one pair of single quotes, no escapes")
    if token.name == "UIDENT" or token.text.startswith("$"):
        raise UnsafeSql(f"{shown} is not a plain name or constant")
    if not token.text.isascii() and token.text[0] not in "\"'":
        raise UnsafeSql(f"{shown} is not ASCII; a name that is not stands in double quotes")


def _only_statement(text: str, tokens: list[_Token]) -> ast.Node | None:
    from pglast.parser import ParseError, parse_sql

    try:
        statements = parse_sql(text)
    except ParseError as error:
        raise UnsafeSql(f"PostgreSQL cannot parse it: {error.args[0]}") from None
    if not statements:
        raise UnsafeSql("it holds no statement")
    if any(token.text == ";" for token in tokens[:-1]):
        raise UnsafeSql("it holds more than one statement")
    return statements[0].stmt


def _bare(text: str, tokens: list[_Token]) -> str:
    last = tokens[-1]
    return text[tokens[0].start : last.start if last.text == ";" else last.end].rstrip()


def _first_word(tokens: list[_Token]) -> str:
    return next(token.text for token in tokens if token.text[0].isalpha()).upper()


def _harmless(_: ast.Node) -> None: ...


def _reindex(statement: ast.ReindexStmt) -> None:
    if any(option.defname == "tablespace" for option in statement.params or ()):
        raise UnsafeSql("REINDEX may not move indexes to another tablespace")


def _set(statement: ast.VariableSetStmt) -> None:
    if statement.kind is None or statement.kind.name not in ("VAR_SET_VALUE", "VAR_SET_DEFAULT"):
        raise UnsafeSql("of SET and RESET, only SET name = value is allowed")
    if statement.name not in SETTABLE:
        raise UnsafeSql(f"{statement.name} is not a setting that a hook may set")
    if "pg_catalog" in _values(statement)[1:]:
        # It is the first without being named; behind others, their functions pass for PostgreSQL's own.
        raise UnsafeSql("search_path may name pg_catalog in the first place only")


def _values(statement: ast.VariableSetStmt) -> list[object]:
    return [getattr(argument.val, "sval", None) for argument in statement.args or ()]


def _explain(statement: ast.ExplainStmt) -> frozenset[tuple[str, str]]:
    for option in statement.options or ():
        if option.defname not in _EXPLAIN_OPTIONS:
            raise UnsafeSql(f"EXPLAIN with {option.defname.upper()} is not allowed")
    if statement.query is None or type(statement.query).__name__ != "SelectStmt":
        raise UnsafeSql("EXPLAIN is allowed of a SELECT only")
    refuse_what_could_run(statement.query)
    return named_relations(statement.query)


_JUDGEMENTS: Mapping[str, Callable[[Any], frozenset[tuple[str, str]] | None]] = {
    "VacuumStmt": _harmless,
    "ClusterStmt": _harmless,
    "ReindexStmt": _reindex,
    "RefreshMatViewStmt": _harmless,
    "VariableSetStmt": _set,
    "ExplainStmt": _explain,
}
