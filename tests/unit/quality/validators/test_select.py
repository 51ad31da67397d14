"""sql"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hakiri_dagster.quality.measures import Probe, Unanswered, Violations
from tests.unit.quality.validators.judging import declared, judged

STATEMENT = "SELECT id FROM {table} WHERE price < 0"
PROBE = Probe(STATEMENT, 600)


def test_rows_that_come_back_do_not_pass() -> None:
    validator = declared("sql", statement=STATEMENT)
    assert judged(validator, {PROBE: Violations(0)}).passed
    assert judged(validator, {PROBE: Violations(3, ("1", "2"))}).observed == "3 row(s): 1; 2"
    assert judged(validator, {PROBE: Unanswered("it took too long")}).observed == "it took too long"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM {table}", "DELETE is not a SELECT"),
        ("WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT FROM gone", "a DELETE in it would change rows"),
        ("SELECT pg_sleep(1000) FROM {table}", "function pg_sleep"),
        ("SELECT 1 INTO raw.copy FROM {table}", "INTO would make a table"),
        ("SELECT * FROM {table} FOR UPDATE", "lock rows"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("SELECT 1 FROM {table} -- all of them", "holds a comment"),
        ("SELECT lo_import('/etc/passwd')", "function lo_import"),
        ("SELECT * FROM dblink('x', 'y') AS t(a int)", "calls a function in FROM"),
        ("SELECT * FROM orders", "schema.table"),
        ("SELECT rolpassword FROM pg_catalog.pg_authid", "a validator shows what it finds"),
        ("SELECT '{table}'", "stands inside of something else"),
        ("SELEC", "cannot parse"),
    ],
)
def test_what_could_do_more_than_look_is_refused(statement: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told.replace("{", "\\{")):
        declared("sql", statement=statement)
