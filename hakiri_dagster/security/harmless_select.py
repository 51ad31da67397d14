"""What a SELECT may hold that a hook explains or a validator asks.

PostgreSQL runs functions while it plans: those of casts, operators and function calls on constants. So everything in
the tree has to be known to be harmless; what is not known is refused. The names mean PostgreSQL's own things only where
the SELECT is planned with pg_catalog as the search path, and of its relations the catalog has to be asked
(`destinations/postgres/plannable`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hakiri_dagster.errors import UnsafeSql

if TYPE_CHECKING:
    from pglast import ast


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NODES = _words(
    """
    SelectStmt WithClause CommonTableExpr ResTarget ColumnRef A_Star A_Const String Integer Float Boolean
    RangeVar RangeSubselect JoinExpr Alias GroupingSet GroupingFunc WindowDef SortBy
    A_Expr BoolExpr NullTest BooleanTest CaseExpr CaseWhen CoalesceExpr MinMaxExpr SubLink RowExpr A_ArrayExpr
    CollateClause SQLValueFunction TypeCast TypeName FuncCall
    """
)
_FUNCTIONS = _words(
    """
    abs array_agg avg bool_and bool_or btrim ceil char_length concat count date_part date_trunc dense_rank
    every extract first_value floor lag last_value lead left length like_escape lower ltrim max min mod now ntile
    position rank replace right round row_number rtrim similar_to_escape string_agg substring sum timezone upper
    """
)
_OPERATORS = _words("+ - * / % ^ = <> < > <= >= || ~ ~* !~ !~* ~~ ~~* !~~ !~~* -> ->> #> #>> @> <@ && ?") | {
    "BETWEEN",
    "NOT BETWEEN",
    "BETWEEN SYMMETRIC",
    "NOT BETWEEN SYMMETRIC",
}
"""As the parser calls them: LIKE is ~~, != is <>."""

_TYPES = _words(
    """
    bit bool bpchar bytea date float4 float8 int2 int4 int8 interval json jsonb numeric text time timestamp
    timestamptz timetz uuid varbit varchar
    """
)
_CONSEQUENCES = {
    "InsertStmt": "an INSERT in it would change rows",
    "UpdateStmt": "an UPDATE in it would change rows",
    "DeleteStmt": "a DELETE in it would change rows",
    "MergeStmt": "a MERGE in it would change rows",
    "IntoClause": "its INTO would make a table",
    "LockingClause": "it would lock rows",
    "RangeFunction": "it calls a function in FROM",
    "RangeTableSample": "its TABLESAMPLE calls a function",
    "ParamRef": "it holds a parameter, which nothing fills",
}


def refuse_what_could_run(select: ast.Node) -> None:
    for node in _nodes(select):
        kind = type(node).__name__
        if kind not in _NODES:
            raise _refusal(_CONSEQUENCES.get(kind, f"it holds what PostgreSQL calls {kind}"))
        for names, known, noun in _names(node):
            if not _is_known(names, known):
                raise _refusal(f"the {noun} {'.'.join(names)} is not among those known to be harmless")


def named_relations(select: ast.Node) -> frozenset[tuple[str, str]]:
    """Schema and name. A name of a WITH query that is used outside of it is at worst one of pg_catalog."""
    nodes: list[Any] = list(_nodes(select))
    queries = {node.ctename for node in nodes if type(node).__name__ == "CommonTableExpr"}
    tables = [node for node in nodes if type(node).__name__ == "RangeVar"]
    for table in tables:
        if table.catalogname is not None or (table.schemaname is None and table.relname not in queries):
            raise _refusal(f"{table.relname} is not written as schema.table, and a search path would say what it is")
    return frozenset((table.schemaname, table.relname) for table in tables if table.schemaname is not None)


def _nodes(root: ast.Node) -> Iterator[ast.Node]:
    from pglast.ast import Node

    pending: list[Any] = [root]
    while pending:
        found = pending.pop()
        if isinstance(found, Node):
            yield found
            pending.extend(getattr(found, name) for name in found)
        elif isinstance(found, tuple):
            pending.extend(found)


def _names(node: Any) -> Iterator[tuple[list[str], frozenset[str], str]]:
    """What the node names that PostgreSQL may run."""
    match type(node).__name__:
        case "FuncCall":
            yield _parts(node.funcname), _FUNCTIONS, "function"
        case "TypeName":
            yield _parts(node.names), _TYPES, "type"
        case "A_Expr":
            yield _parts(node.name), _OPERATORS, "operator"
        case "SubLink" if node.operName:
            yield _parts(node.operName), _OPERATORS, "operator"
        case "SortBy" if node.useOp:
            yield _parts(node.useOp), _OPERATORS, "operator"


def _parts(names: Sequence[Any]) -> list[str]:
    return [name.sval for name in names]


def _is_known(names: list[str], known: frozenset[str]) -> bool:
    return names[-1] in known and names[:-1] in ([], ["pg_catalog"])


def _refusal(what: str) -> UnsafeSql:
    return UnsafeSql(
        f"this SELECT is not allowed: {what}",
        hint="even planning runs functions, so a SELECT may hold columns, constants, joins, aggregates and "
        "PostgreSQL's plain operators and functions only",
    )
