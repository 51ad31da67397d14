"""Our statements run as the loading role under a search path that others may own a schema of. Of functions of one name
PostgreSQL takes the one whose arguments fit best, wherever it is: so a call that pg_catalog answers by a cast, or for
any type, names pg_catalog. (The exchange runs with an empty search path.)"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hakiri_dagster

_PACKAGE = Path(hakiri_dagster.__file__).parent
_LOADING = _PACKAGE / "destinations" / "postgres"
_ANSWERED_LOOSELY = (
    "array_agg", "brin_summarize_new_values", "concat_ws", "format", "hashtextextended", "lag", "lead", "nextval",
    "num_nulls", "pg_partition_tree", "pg_table_size", "pg_terminate_backend", "unnest",
)  # fmt: skip
# several arrays in one unnest are PostgreSQL's own syntax, which means pg_catalog's
_UNNAMED = re.compile(rf"(?<![.\w])(?:{'|'.join(_ANSWERED_LOOSELY)})\((?![^\n]*\[\], )")

_EXACT_HASH = re.compile(r"pg_catalog\.hashtextextended\((?:(?!hashtextextended).)*?, 0::bigint\)", re.DOTALL)


def texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def modules() -> Iterator[Path]:
    yield from (path for path in _LOADING.rglob("*.py") if "swap" not in path.relative_to(_LOADING).parts)


@pytest.mark.parametrize("path", sorted(modules()), ids=lambda path: str(path.relative_to(_LOADING)))
def test_what_others_could_answer_better_is_called_in_pg_catalog(path: Path) -> None:
    assert [found for text in texts(path) for found in _UNNAMED.findall(text)] == []


def test_hashes_are_asked_for_with_their_exact_types() -> None:
    for path in _PACKAGE.rglob("*.py"):
        for text in texts(path):
            asked = text.count("hashtextextended(")
            assert asked == len(_EXACT_HASH.findall(text)), path
