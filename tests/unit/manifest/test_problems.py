"""What is wrong is told in plain words, with a cure, at the character where it is written."""

from __future__ import annotations

import pytest

from hakiri_dagster.errors import Problem
from tests.unit.manifest.conftest import Read
from tests.unit.manifest.samples import files_pipeline, postgres_pipeline

HEAD = 'id = "shop"\nsource = { connector = "files", config = { path = "data" } }\n'
"""Two lines; what a case adds begins on the third."""


def only_problem(read: Read, text: str, env: dict[str, str] | None = None) -> Problem:
    (problem,) = read(None, {"shop.toml": text}, env).problems
    assert problem.file == "manifests/pipelines/shop.toml"
    return problem


@pytest.mark.parametrize(
    ("line", "column", "message", "hint"),
    [
        ('tables = ["a"]\nschedul = "x"', 1, "unknown key `schedul`", "did you mean `schedule`?"),
        ('tables = ["a"]\nnonsense = 1', 1, "unknown key `nonsense`", "known here: "),
        ('tables = ["a"]\nwindow = "1mo"', 1, "unknown key `window`", "it belongs under `backfill`"),
        (
            'tables = [{ name = "a", primaryKeys = ["x"] }]',
            25,
            "unknown key `primaryKeys` in table `a`",
            "did you mean `primaryKey`?",
        ),
        (
            'tables = [{ name = "a", primry_key = ["x"] }]',
            25,
            "unknown key `primry_key` in table `a`",
            "did you mean `primary_key`?",
        ),
        (
            'tables = [{ name = "a", load = { modus = "append" } }]',
            34,
            "unknown key `modus` in `load` of table `a`",
            "did you mean `mode`?",
        ),
        ('tables = [{ path = "x" }]', 11, "`name` is missing in table 1", "add `name`"),
        ("tables = []", 10, "`tables` is empty", "name at least one"),
        ('tables = "a"', 10, "`tables` must be a list, not text", 'write `["a"]`'),
        ("tables = [1]", 11, "table 1 must be a table, not a number", None),
        ("tables = ['']", 11, "table ``: the name is empty", None),
        ('tables = ["a\\nb"]', 11, "control character", None),
        ('tables = ["a", "b", "a"]', 21, "the table `a` is named twice", "keep one of them"),
        ('tables = ["Orders", "orders"]', 21, "only the case differs", "keep one of them"),
        ('tables = ["Straße", "STRASSE"]', 21, "only the case differs", "keep one of them"),
        (f'tables = ["{"ü" * 32}"]', 11, "64 bytes long, and PostgreSQL cuts names at 63", "choose a shorter name"),
        (
            'tables = [{ name = "a", load = { mode = "upsert" } }]',
            41,
            "table `a`: load mode `upsert` needs a key",
            "set `primary_key`, or `load.upsert_key`",
        ),
        ('tables = [{ name = "a", loadMode = "upsert" }]', 36, "load mode `upsert` needs a key", "set `primary_key`"),
        ('loadMode = "upsert"\ntables = ["a"]', 11, "load mode `upsert` needs a key", "set `primary_key`"),
        (
            'tables = [{ name = "a", primary_key = ["x", "y", "x"] }]',
            39,
            "`primary_key` of table `a`: `x` is named twice",
            None,
        ),
        ('tables = [{ name = "a", upsertKey = ["x", "x"] }]', 37, "`upsertKey` of table `a`: `x` is named twice", None),
        ('tables = [{ name = "a", primary_key = [] }]', 39, "the list is empty", "name at least one column"),
        ('tables = [{ name = "a", load = { mode = "apend" } }]', 41, "`apend` is not one of append", "`append`?"),
        ('tables = [{ name = "a", columns = { x = "text; drop" } }]', 41, "not a PostgreSQL type", "use a type like"),
        ('tables = ["a"]\nschedule = "every 7m"', 12, "`every 7m` is not a schedule", "divide an hour"),
        ('tables = ["a"]\ntimezone = "Europe/Berln"', 12, "is not a time zone", "did you mean `Europe/Berlin`?"),
        ('tables = ["a"]\ntimezone = "../../etc/passwd"', 12, "is not a time zone", "use a name like"),
        ('tables = ["a"]\ntimezone = ""', 12, "is not a time zone", "use a name like"),
        ('tables = ["a"]\nbackfill.window = "1 month"', 19, "is not a window", "use `15m`"),
        ('tables = ["a"]\nbackfill.window = "100000"', 19, "is not a window", "without quotes"),
        ('tables = ["a"]\nbackfill.window = "0d"', 19, "is not a window", "use `15m`"),
        ('tables = ["a"]\nbackfill.window = 0', 19, "at least 1", "use `15m`"),
        ('tables = ["a"]\nbackfill.window = true', 19, "not a window", "use `15m`"),
        ('tables = ["a"]\nbackfill.start_from = "2020-02-30"', 23, "not a place to start from", "use a date"),
        ('tables = ["a"]\nbackfill.startFrom = "yesterday"', 22, "not a place to start from", "use a date"),
        ('tables = ["a"]\nbackfill.start_from = 1.5', 23, "not a place to start from", "use a date"),
        ('tables = ["a"]\nbackfill.parallelism = 0', 24, "`backfill.parallelism` must be at least 1", None),
        ('tables = ["a"]\nbackfill.parallelism = 65', 24, "must be at most 64", None),
        ('tables = ["a"]\nbackfill.parallelism = "4"', 24, "must be a whole number, not text", None),
        ('tables = ["a"]\nbackfill.parallelism = true', 24, "must be a whole number, not true or false", None),
        ('tables = ["a"]\nbackfill.rate_budget = "60"', 24, "is not a rate", "write it like `60/min`"),
        ('tables = ["a"]\nbackfill.rate_budget = "0/s"', 24, "is not a rate", "write it like `60/min`"),
        ('tables = ["a"]\nbackfill.rate_budget = "9999/s"', 24, "more than 200 requests a second", "take it out"),
        ('tables = ["a"]\nbackfill.destination_writes_per_sec = 0', 39, "must be at least 1", None),
        ('tables = ["a"]\nbackfill = "1mo"', 12, "`backfill` must be a table, not text", None),
        ('tables = ["a"]\nload.fail_on_empty_source = "no"', 29, "must be true or false, not text", None),
        ('tables = ["a"]\nquarantine.table = "a.b.c"', 20, "is not a table name", "`schema.table`"),
        ('tables = ["a"]\nquarantine.table = ".b"', 20, "is not a table name", "`schema.table`"),
        ('tables = ["a"]\nincremental = true', 15, "must be the name of a column", "`false`"),
        ('tables = ["a"]\nowners = ["ann"]', 11, "`ann` is not an owner", "use an e-mail address"),
        ('tables = ["a"]\ntags = { "a b" = "c" }', 10, "`a b` is not a tag key", "use up to 63 letters"),
        ('tables = ["a"]\ntags = { a = "b c" }', 14, "`b c` is not a tag value", "use up to 63 letters"),
        ('tables = ["a"]\nsecrets = ["A-B"]', 12, "is not the name of an environment variable", "use letters"),
        ('tables = ["a"]\nsecrets = ["UNSET_ONE"]', 12, "the secret `UNSET_ONE` is not set", "set UNSET_ONE before"),
        ('tables = ["a"]\ndestination = "nowhere"', 15, "there is no `[destinations.nowhere]`", "`context`"),
        (
            'tables = ["a"]\ndestination = "contxt"',
            15,
            "there is no `[destinations.contxt]`",
            "did you mean `context`?",
        ),
        ('tables = ["a"]\ndestination = 5', 15, "`destination` must be a name or a table, not a number", None),
        (
            'tables = ["a"]\ndestination = { connector = "context", config = { schema = "hakiri" } }',
            60,
            "the schema `hakiri` holds our own tables",
            "choose another schema",
        ),
        (
            'tables = ["a"]\ndestination = { connector = "postgres", config = { schema = "pg_temp" } }',
            61,
            "a schema of PostgreSQL's own",
            "choose another schema",
        ),
        (
            'tables = ["a"]\ndestination = { connector = "postgres", config = { url = "mysql://h/d" } }',
            58,
            "not a PostgreSQL URL",
            "write it like `postgresql://",
        ),
        (
            'tables = ["a"]\ndestination = { connector = "postgres", config = { url = "postgresql://h:port/d" } }',
            58,
            "not a PostgreSQL URL",
            "write it like `postgresql://",
        ),
        (
            'tables = ["a"]\ndestination = { connector = "postgres", config = { uri = "postgresql://h/d" } }',
            52,
            "unknown key `uri` in `destination.config`",
            "did you mean `url`?",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(read: Read, line: str, column: int, message: str, hint: str | None) -> None:
    problem = only_problem(read, HEAD + line + "\n")
    last_line = 3 + line.count("\n")
    assert message in problem.message
    assert (problem.line, problem.column, problem.pipeline_id) == (last_line, column, "shop")
    assert hint in (problem.hint or "") if hint else problem.hint is None


@pytest.mark.parametrize(
    ("config", "column", "message", "hint"),
    [
        ("{ }", 42, "`path` is missing in `source.config`", "add `path`"),
        ('{ path = "d", fromat = "csv" }', 56, "unknown key `fromat` in `source.config`", "did you mean `format`?"),
        ('{ path = "d", format = "xml" }', 65, "`xml` is not one of csv, jsonl, parquet, orc", None),
        ('{ path = "d", quote = "ab" }', 64, "must be exactly one character", None),
        ('{ path = "d", delimiter = ";;" }', 68, "must be exactly one character", 'a tab is "\\t"'),
        ('{ path = "d", encoding = "utf-88" }', 67, "no such encoding", "use a name like `UTF-8`"),
        ('{ path = "d", compression = "rar" }', 70, "`rar` is not one of none, uncompressed", None),
        ('{ path = "d", nullValues = "NA" }', 69, "must be a list, not text", 'write `["NA"]`'),
        ('{ path = "${NOT_SET}/x" }', 51, "the environment variable `NOT_SET` is not set", "set NOT_SET before"),
        ('{ path = "${}" }', 51, "not a reference to the environment", "write `${NAME}`"),
        ('{ path = "${A-B}" }', 51, "not a reference to the environment", "write `${NAME}`"),
        ('{ path = "a${B" }', 51, "not set", "set B before"),
        ('"data"', 42, "`source.config` must be a table, not text", None),
    ],
)
def test_a_mistake_in_the_settings_of_a_source_is_told(
    read: Read, config: str, column: int, message: str, hint: str | None
) -> None:
    text = f'id = "shop"\nsource = {{ connector = "files", config = {config} }}\ntables = ["a"]\n'
    problem = only_problem(read, text)
    assert message in problem.message
    assert (problem.line, problem.column) == (2, column)
    assert hint in (problem.hint or "") if hint else problem.hint is None


@pytest.mark.parametrize("pipeline_id", ["A", "a b", "-a", "ä", "a\u200b", "a/b", "a.b", "", "a\\n", "💥"])
def test_an_id_that_no_name_can_be_made_of_is_refused(read: Read, pipeline_id: str) -> None:
    problem = only_problem(read, files_pipeline(pipeline_id))
    assert "is not a pipeline id" in problem.message
    assert problem.message.isprintable()
    assert (problem.line, problem.column) == (1, 6)


def test_an_id_that_is_too_long_is_refused_with_the_reason(read: Read) -> None:
    problem = only_problem(read, files_pipeline("a" * 64))
    assert "64 characters long" in problem.message
    assert "PostgreSQL" in problem.message


def test_a_key_below_the_wrong_toml_header_is_told_where_it_belongs(read: Read) -> None:
    problem = only_problem(read, HEAD + 'tables = ["a"]\n[backfill]\nwindow = "1mo"\nowners = []\n')
    assert (problem.line, problem.column) == (6, 1)
    assert problem.message == "unknown key `owners` in `backfill`"
    assert problem.hint == "it belongs one level up: write it above this section's header"


def test_a_path_is_for_files_only(read: Read) -> None:
    problem = only_problem(read, postgres_pipeline('[{ name = "a", path = "x" }]'))
    assert (problem.line, problem.column) == (3, 25)
    assert "`path` is for sources with" in problem.message


def test_a_pipeline_without_anything_is_told_all_that_is_missing(read: Read) -> None:
    problems = read(None, {"x.json": "{}"}).problems
    assert [problem.message for problem in problems] == [
        "`id` is missing",
        "`source` is missing",
        "`tables` is missing",
    ]
    assert all(problem.hint and problem.hint.startswith("add `") for problem in problems)


def test_an_unset_reference_is_told_once_and_not_also_as_a_wrong_value(read: Read) -> None:
    text = postgres_pipeline('["a"]').replace('schema = "shop"', 'url = "${SHOP_URL}"')
    assert only_problem(read, text).message == "the environment variable `SHOP_URL` is not set"


def test_two_tables_with_one_target_are_refused(read: Read) -> None:
    other = files_pipeline("other", "orders")
    (problem,) = read(None, {"a.toml": files_pipeline("a", "orders"), "b.toml": other}).problems
    assert problem.message == (
        "other/orders and a/orders (manifests/pipelines/a.toml:3) both load into `public.orders`"
    )
    assert (problem.file, problem.line, problem.column) == ("manifests/pipelines/b.toml", 3, 11)


def test_one_database_under_two_logins_is_one_database(read: Read) -> None:
    def landing(url: str) -> str:
        return f'destination = {{ connector = "postgres", config = {{ url = "{url}" }} }}\n'

    first = files_pipeline("a", more=landing("postgresql://ann:x@db.example.com/shop"))
    second = files_pipeline("b", more=landing("postgres://bob:y@DB.example.com:5432/shop"))
    third = files_pipeline("c", more=landing("postgres://bob:y@db.example.com:5433/shop"))
    socket = files_pipeline("d", more=landing("postgresql:///shop?host=/tmp/a"))
    other_socket = files_pipeline("e", more=landing("postgresql:///shop?host=/tmp/b"))
    cluster = files_pipeline("f", more=landing("postgresql://ann@one:5432,two:5433/shop"))
    files = {"a": first, "b": second, "c": third, "d": socket, "e": other_socket, "f": cluster}
    (problem,) = read(None, {f"{name}.toml": text for name, text in files.items()}).problems
    assert "b/orders and a/orders" in problem.message


def test_an_at_sign_in_a_password_is_told_without_the_password(read: Read) -> None:
    url = "postgresql://app:p@ss@db.example.com/shop"
    problem = only_problem(read, postgres_pipeline('["a"]').replace('schema = "shop"', f'url = "{url}"'))
    assert problem.message == "`source.config.url`: the URL has an `@` in its user or password"
    assert problem.hint == "write it as `%40`"


def test_a_table_is_not_loaded_into_itself(read: Read) -> None:
    problem = only_problem(
        read, 'id = "shop"\nsource.connector = "postgres"\ntables = ["a", { name = "b", target = "c" }]\n'
    )
    assert "would load `public.a` into itself" in problem.message


def test_mistakes_in_the_project_file_are_told(read: Read) -> None:
    text = """\
[projekt]
name = "x"
[context]
default_destination = "warehose"
[destinations.warehouse]
connector = "postgres"
[destinations.context]
connector = "postgres"
"""
    assert [(p.line, p.message) for p in read(text).problems] == [(1, "unknown key `projekt`")]
    problems = read(text.replace("projekt", "project")).problems
    assert [(p.line, p.message, p.hint) for p in problems] == [
        (4, "there is no `[destinations.warehose]`", "did you mean `warehouse`?"),
        (7, "`context` is the name of the embedded PostgreSQL", "choose another name"),
    ]


def test_single_brackets_around_pipeline_are_explained(read: Read) -> None:
    (problem,) = read('[pipeline]\nid = "a"\n').problems
    assert problem.hint == "write `[[pipeline]]`, with two brackets, above each pipeline"


def test_a_pipeline_header_in_a_pipelines_file_is_explained(read: Read) -> None:
    problem = only_problem(read, "[[pipeline]]\n" + files_pipeline())
    assert "holds one pipeline, at its top level" in problem.message
    assert problem.hint is not None
    assert "`[[pipeline]]` header" in problem.hint


def test_a_row_rule_of_an_unknown_type_is_told_with_all_types(read: Read) -> None:
    text = HEAD + 'tables = ["a"]\n[[rowLevel]]\ntype = "regexp"\nfield = "x"\n[[rowLevel]]\nfield = "y"\n'
    problems = [p for p in read(None, {"shop.toml": text}).problems if "not yet" not in p.message]
    assert [(p.line, p.hint) for p in problems] == [(4, "did you mean `regex`?"), (7, "add `type`")]


def test_everything_that_is_wrong_with_one_pipeline_is_told_at_once(read: Read) -> None:
    text = """\
id = "Shop"
source = { connector = "files", config = { path = "${UNSET}", formt = "csv" } }
schedule = "sometimes"
secrets = ["UNSET_TOO"]
destination = "nowhere"
tables = ["a", "A", { name = "b", load = { mode = "upsert" }, colour = 1 }, { name = "c", loadMode = "scd" }]
"""
    problems = read(None, {"shop.toml": text}).problems
    assert [(p.line, p.column) for p in problems] == [
        (1, 6),
        (2, 51),
        (2, 63),
        (3, 12),
        (4, 12),
        (5, 15),
        (6, 16),
        (6, 51),
        (6, 63),
        (6, 102),
    ]


@pytest.mark.parametrize(
    ("renamed", "message"),
    [
        ('{ a = "x", b = "x" }', "table `t`: `x` cannot become both `a` and `b`"),
        ('{ "a.b" = "a.b" }', "table `t`: `a.b` is renamed to itself"),
    ],
)
def test_renames_that_contradict_themselves_are_told(read: Read, renamed: str, message: str) -> None:
    assert only_problem(read, f'{HEAD}tables = [{{ name = "t", renamed = {renamed} }}]\n').message == message


def test_a_contract_is_the_tables_or_the_pipelines(read: Read) -> None:
    text = f'{HEAD}contract = "freeze"\ntables = ["a", {{ name = "b", contract = "discard_row" }}]\n'
    reading = read(None, {"shop.toml": text})
    assert reading.problems == ()
    assert reading.project is not None
    assert [table.contract for table in reading.project.tables] == ["freeze", "discard_row"]
    assert "evolve" in str(only_problem(read, text.replace("freeze", "frozen")))
