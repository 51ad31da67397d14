"""What an expression may hold, and what is refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.functions import ALIKE, PLAIN
from hakiri_dagster.expressions.judging import holds
from hakiri_dagster.expressions.reading import MOST_CHARACTERS, read_expression
from hakiri_dagster.expressions.tree import columns_of
from hakiri_dagster.expressions.written import Judged
from tests.unit.expressions.samples import ACCEPTED, KINDS

COLUMNS = {name: Judged(kind, f"v{place}") for place, (name, kind) in enumerate(KINDS.items())}

REFUSED = [
    # reaching out of the row
    ("reflect('java.lang.System', 'exit', 0) = t", "the function reflect is not allowed"),
    ("try_reflect('java.lang.System', 'getenv', t) = t", "the function try_reflect is not allowed"),
    ("java_method('java.lang.Runtime', 'getRuntime') = t", "the function java_method is not allowed"),
    ("input_file_name() = t", "the function input_file_name is not allowed"),
    ("_metadata.file_path = t", "_metadata.file_path is a field of a struct"),
    ("spark_catalog.default.f(t) = t", "it looks into a struct"),
    ("default.upper(t) = t", "it looks into a struct"),
    ("`reflect`('java.lang.System', 'exit', 0) = t", "a function is called in a way that is not allowed"),
    ("identifier('reflect')(t) = t", "it cannot be read"),
    ("IDENTIFIER('t') = t", "the function IDENTIFIER is not allowed"),
    ("from_avro(bin, t) IS NULL", "the function from_avro is not allowed"),
    ("from_csv(t, u) IS NULL", "the function from_csv is not allowed"),
    ("xpath_boolean(t, u)", "the function xpath_boolean is not allowed"),
    ("aes_decrypt(bin, bin) IS NULL", "the function aes_decrypt is not allowed"),
    ("raise_error(t) IS NULL", "the function raise_error is not allowed"),
    ("assert_true(b) IS NULL", "the function assert_true is not allowed"),
    ("ai_query(t) = t", "the function ai_query is not allowed"),
    # another result at each try
    ("rand() < 0.5 OR b", "the function rand is not allowed"),
    ("uuid() = t", "the function uuid is not allowed"),
    ("now() > ts", "the function now is not allowed"),
    ("current_timestamp() > ts", "the function current_timestamp is not allowed"),
    ("current_timestamp > ts", "current_timestamp is not allowed"),
    ("CURRENT_DATE > d", "CURRENT_DATE is not allowed"),
    ("localtimestamp > nt", "localtimestamp is not allowed"),
    ("unix_timestamp() > l", "the function unix_timestamp is not allowed"),
    ("monotonically_increasing_id() > l", "the function monotonically_increasing_id is not allowed"),
    ("spark_partition_id() > i", "the function spark_partition_id is not allowed"),
    ("current_user = t", "current_user is not allowed"),
    ("session_user() = t", "the function session_user is not allowed"),
    # other rows
    ("i IN (SELECT 1)", "IN has no list"),
    ("EXISTS (SELECT 1)", "it holds a subquery"),
    ("i = (SELECT max(i) FROM t)", "it holds a subquery"),
    ("i = ANY (SELECT 1)", "is not allowed"),
    ("count(*) > 1", "the function count is not allowed"),
    ("sum(i) > 1", "the function sum is not allowed"),
    ("sum(i) OVER () > 1", "it looks at other rows"),
    ("row_number() OVER (PARTITION BY t ORDER BY i) = 1", "it looks at other rows"),
    ("sum(i) FILTER (WHERE b) > 1", "is not allowed"),
    ("count(DISTINCT i) > 1", "the function count is not allowed"),
    ("lag(i) IGNORE NULLS > 1", "is not allowed"),
    ("explode(list) = 1", "the function explode is not allowed"),
    ("stack(2, i, j) = 1", "the function stack is not allowed"),
    # without bounds of time or size
    ("t RLIKE '(a+)+$'", "RLIKE is not allowed"),
    ("regexp(t, '(a+)+$')", "the function regexp is not allowed"),
    ("regexp_like(t, u)", "the function regexp_like is not allowed"),
    ("regexp_replace(t, '(a+)+$', '') = t", "the function regexp_replace is not allowed"),
    ("split(t, u) IS NULL", "the function split is not allowed"),
    ("t LIKE '%a%b'", "more than one %"),
    ("t LIKE '%a%b%'", "more than one %"),
    ("t LIKE 'a%b%c'", "more than one %"),
    ("t LIKE u", "the pattern of a LIKE is not a text"),
    ("t LIKE concat('%', u)", "the pattern of a LIKE is not a text"),
    ("t LIKE ANY ('a', 'b')", "the pattern of a LIKE is not a text"),
    ("t LIKE 'a!b' ESCAPE '!'", "stands before what needs none"),
    ("t LIKE 'a!' ESCAPE '!'", "stands before what needs none"),
    ("repeat(t, 1000000000) = t", "the function repeat is not allowed"),
    ("lpad(t, 1000000000, 'x') = t", "the function lpad is not allowed"),
    ("space(1000000000) = t", "the function space is not allowed"),
    ("sequence(1, 1000000000) IS NULL", "the function sequence is not allowed"),
    ("format_string('%1000000000d', i) = t", "the function format_string is not allowed"),
    ("replace(t, 'a', 'aaaaaaaaaa') = t", "replace takes two texts"),
    ("replace(t, '', 'x') = t", "replace takes two texts"),
    ("replace(t, u, 'x') = t", "replace takes two texts"),
    ("date_add(d, 2147483647) > d", "not a whole number up to 100000"),
    ("date_add(d, i) > d", "not a whole number up to 100000"),
    ("round(i, -5) = i", "not a whole number from 0 to 18"),
    ("levenshtein(t, u) > 3", "the function levenshtein is not allowed"),
    # lambdas, structures, parameters
    ("transform(list, x -> x + 1) IS NULL", "the function transform is not allowed"),
    ("forall(list, x -> x > 0)", "the function forall is not allowed"),
    ("x -> x", "it looks into JSON, or holds a lambda"),
    ("t[0] = 1", "it looks into a list or a map"),
    ("array(i, j) IS NULL", "the function array is not allowed"),
    ("(i, j) = (1, 2)", "is not allowed"),
    ("a.b = 1", "a.b is a field of a struct"),
    ("* = 1", "* is not a column"),
    ("i = :x", "it holds a parameter"),
    ("i = ?", "it holds a parameter"),
    ("i = $x", "it holds a parameter"),
    ("i = @x", "it holds a parameter"),
    ("i = {x}", "it holds a parameter"),
    ("d > ts - INTERVAL 1 DAY", "it holds an interval"),
    ("CAST(t AS ARRAY<INT>) IS NULL", "is not among the types of a CAST"),
    ("CAST(t AS DECIMAL(39, 0)) > 0", "is not among the types of a CAST"),
    ("CAST(t AS INTERVAL DAY) IS NULL", "is not among the types of a CAST"),
    ("d > DATE '2024-02-30'", "'2024-02-30' is not a date"),
    ("i DIV 2 = 1", "DIV is not allowed"),
    ("i & 1 = 1", "is not allowed"),
    ("~i = 1", "is not allowed"),
    ("t COLLATE UTF8_LCASE = u", "is not allowed"),
    ("ts AT TIME ZONE 'Europe/Berlin' > nt", "is not allowed"),
    ("i BETWEEN SYMMETRIC 1 AND 5", "is not allowed"),
    ("upper(t => 'x') = 'X'", "is not allowed"),
    ("upper(t, u) = 'X'", "upper takes 1 argument(s), and here it has 2"),
    ("coalesce() = 1 OR b", "coalesce takes 1 or more argument(s), and here it has 0"),
    ("i > 1e999", "1e999 is beyond all numbers"),
    (f"m > {'1' * 39}", "has more than 38 digits"),
    # what two readers would understand differently
    ("i = j = b", "it is not clear what belongs to `i = j`"),
    ("i < j < l", "it is not clear what belongs to `i < j`"),
    ("i > j IN (1)", "it is not clear what belongs to `j IN (1)`"),
    ("b = t LIKE 'a%'", "it is not clear what belongs to"),
    ('"t" = 1', 'it holds "'),
    ("t = 'a\\nb'", "it holds \\"),
    ("t = 'a' 'b'", "two texts stand next to one another"),
    ("t = r'a'", "it cannot be read"),
    ("bin = X'1F'", "it cannot be read"),
    ("b -- AND c", "it holds --"),
    ("b /* AND c */", "it holds /*"),
    ("b AND\u202e c", "the invisible character U+202E"),
    ("t = 'a\x00b'", "the invisible character U+0000"),
    # no expression at all
    ("", "it is empty"),
    ("  ", "it is empty"),
    ("b; DROP TABLE orders", "it cannot be read"),
    ("b; c", "it is more than one expression"),
    ("b, c", "it cannot be read"),
    ("b AS x", "it cannot be read"),
    ("i >", "it cannot be read: a value is missing near `>`"),
    ("(b", "it cannot be read: a parenthesis is not closed near `b`"),
    ("b)", "it cannot be read: something stands there that does not belong near `)`"),
    ("t = 'x", "it cannot be read"),
    ("SELECT 1", "it cannot be read"),
    ("DROP TABLE orders", "it cannot be read"),
    ("SET spark.sql.ansi.enabled = false", "it cannot be read"),
    ("CASE WHEN b", "it cannot be read"),
    ("1 = 1", "it names no column"),
    ("TRUE", "it names no column"),
    # too large
    ("(" * 400 + "b" + ")" * 400, "it is nested too deep"),
    ("NOT " * 900 + "b", "it is nested"),
    ("- " * 60 + "i > 1", "it is nested more than 16 deep"),
    ("i" + " + i" * 100 + " > 1", "it is nested more than 16 deep"),
    ("i IN (" + ", ".join(str(n) for n in range(1500)) + ")", "it has more than 1000 parts"),
    ("b OR " * 3000 + "b", f"it is longer than {MOST_CHARACTERS} characters"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_more_than_an_expression_over_the_row_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnsafeExpression) as refused:
        read_expression(text)
    assert why in refused.value.what


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_harmless_is_accepted_and_written_again_in_our_own_words(text: str) -> None:
    written = holds(read_expression(text), COLUMNS)
    assert "$" not in written
    assert not any(name in written for name in ("first name", "back`tick", "a.b"))


def test_every_function_of_the_list_has_an_example() -> None:
    told = {name for name in (*PLAIN, *ALIKE) if any(f"{name}(" in text for text in ACCEPTED)}
    assert told == {*PLAIN, *ALIKE}


def test_every_function_of_the_list_is_in_the_docs() -> None:
    told = (Path(__file__).parents[3] / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = told[told.index("### Expressions") : told.index("## Quarantine")]
    assert [name for name in (*PLAIN, *ALIKE) if f"`{name}`" not in section] == []


def test_a_long_chain_is_one_step_deep() -> None:
    read_expression("i = 1" + " OR i = 2" * 300)


def test_what_doubles_with_each_step_is_refused_at_once() -> None:
    text = "i"
    for _ in range(14):
        text = f"CASE {text} WHEN 1 THEN i WHEN 2 THEN j END"
    with pytest.raises(UnsafeExpression, match="it has more than 1000 parts"):
        read_expression(f"{text} = 1")


def test_columns_are_told_each_once() -> None:
    assert columns_of(read_expression("`a.b` > i AND coalesce(i, `a.b`) IN (j, 1)")) == ("a.b", "i", "j")


def test_a_pattern_is_pointed_to_the_rule_for_it() -> None:
    for text in ("t RLIKE 'x'", "regexp_like(t, 'x')", "t LIKE '%a%b%'"):
        with pytest.raises(UnsafeExpression) as refused:
            read_expression(text)
        assert 'type = "regex"' in str(refused.value.hint)


def test_the_parser_is_imported_by_whoever_has_an_expression_only() -> None:
    code = "import sys, hakiri_dagster.cli.main, hakiri_dagster.manifest.spec; print('sqlglot' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
