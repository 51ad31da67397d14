"""JSON lines end to end: what the target holds is what the source's lines say, or the line is in quarantine."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.orchestration.conftest import ShopProject

Document = dict[str, str]
"""The JSON text of each member."""

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**63), 2**63 - 1).map(str)
NUMBERS = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    st.integers(0, 10**60).map(str) | st.just("0") | st.integers(1, 2**70).map(str),
    st.just("") | st.text("0123456789", min_size=1, max_size=40).map(".".__add__),
    st.just("") | st.builds("{}{:+}".format, st.sampled_from("eE"), st.integers(-300, 300)),
)
SPACES = st.sampled_from(["", " ", "\t"])


def json_text(ascii_only: bool) -> Any:
    return TEXTS.map(lambda text: json.dumps(text, ensure_ascii=ascii_only))


STRINGS = st.booleans().flatmap(json_text)
SCALARS = STRINGS | NUMBERS | INTEGERS | st.sampled_from(["null", "true", "false"])


def an_object(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.lists(TEXTS, max_size=3, unique=True)
    members = keys.flatmap(lambda names: st.tuples(*[st.tuples(st.just(json.dumps(n)), SPACES, values) for n in names]))
    return members.map(lambda found: "{" + ",".join(f"{name}:{space}{value}" for name, space, value in found) + "}")


def a_list(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda found: "[" + " , ".join(found) + "]")


NESTED = st.recursive(SCALARS, lambda inner: an_object(inner) | a_list(inner), max_leaves=6)
COLUMNS: dict[str, st.SearchStrategy[str]] = {
    "i": INTEGERS,
    "n": NUMBERS | INTEGERS,
    "s": STRINGS,
    "doc": an_object(NESTED) | a_list(NESTED),
    "declared": NESTED,
    "any kind": SCALARS | an_object(SCALARS),
    'quo"ted\\é': STRINGS,
    "Case": st.sampled_from(["true", "false"]),
    "case": NUMBERS,
}
# The first line gives each column a value of its kind; members are missing or null in the others.
FIRST = {"i": "1", "n": "1.10", "s": '"x"', "doc": '{"a": 1.10}', "declared": "1", "any kind": '"x"',
         'quo"ted\\é': '"x"', "Case": "true", "case": "1e2"}  # fmt: skip
LINES = st.lists(
    st.fixed_dictionaries({}, optional={name: values | st.just("null") for name, values in COLUMNS.items()}),
    min_size=20,
    max_size=60,
)


def as_line(document: Document) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}:{value}" for name, value in document.items()) + "}"


def decoded(text: str | None) -> Any:
    """With every digit."""
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


def expected(name: str, text: str | None) -> Any:
    value = decoded(text)
    if value is None or (value == "" and name in ("s", 'quo"ted\\é', "any kind")):
        return None  # an empty text is NULL by default
    return value if name != "any kind" or isinstance(value, str) else text


@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(LINES)
def test_every_value_lands_as_it_is_written(shop: ShopProject, documents: list[Document]) -> None:
    numbered = [{"id": str(number)} | document for number, document in enumerate([FIRST, FIRST, *documents])]
    numbered[1]["any kind"] = "1.10"
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data"}},
            "tables": [{"name": "events", "columns": {"declared": "jsonb"}, "load": {"mode": "truncate"}}],
        }
    )
    shop.execute("DROP TABLE IF EXISTS raw.events")
    shop.file("data/events.jsonl", "\n".join(map(as_line, numbered)))
    told = shop.apply()["events"]
    assert (told["error"], told["quarantined"]) == (None, 0)
    names = ["id", *COLUMNS]
    types = dict(
        shop.rows("SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'raw.events'::regclass")
    )
    assert [types[name] for name in names] == [
        "bigint", "bigint", "numeric", "text", "jsonb", "jsonb", "text", "text", "boolean", "numeric",
    ]  # fmt: skip
    texts = ", ".join('"' + name.replace('"', '""') + '"::text' for name in names)
    for row, document in zip(shop.rows(f"SELECT {texts} FROM raw.events ORDER BY events.id"), numbered, strict=True):
        for name, landed in zip(names, row, strict=True):
            wanted = expected(name, document.get(name))
            if types[name] != "text":
                landed = decoded(landed)
            assert landed == wanted, name


REASONS = {
    2: "not JSON: Unterminated string, at character 18",
    3: "the key `id` is there more than once",
    5: "the key `k` is there more than once",
    6: "PostgreSQL cannot store U+0000",
    7: "PostgreSQL cannot store U+0000",
    8: "half of a surrogate pair",
    9: "not UTF-8, at byte 19",
    10: "not JSON: NaN is no JSON value",
    11: "`amount` is no numeric(10,2)",
    12: "a list instead of a JSON object",
    13: "half of a surrogate pair",
    14: "not JSON: Invalid control character, at character 21",
}
BAD_LINES = b"""{"id": 1, "name": "good", "doc": {"a": 1.10}}
{"id": 2, "name":"cut
{"id": 3, "id": 4}

{"id": 5, "doc": [{"k": 1, "k": 2}]}
{"id": 6, "name": "a\\u0000b"}
{"id": 7, "doc": {"a": "\\u0000"}}
{"id": 8, "name": "\\ud800"}
{"id": 9, "name":"\xff"}
{"id": 10, "amount": NaN}
{"id": 11, "amount": 1.001}
[12]
{"id": 13, "doc": ["\\ud800"]}
{"id": 14, "name": "\0"}
{"id": 15, "amount": 1.1e1, "doc": {"a": 12345678901234567890.5}}
"""


def test_bad_lines_are_quarantined_with_file_line_and_reason_and_the_others_load(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data"}},
            "tables": [{"name": "orders", "columns": {"amount": "numeric(10,2)"}}],
        }
    )
    shop.file("data/orders/a.jsonl", BAD_LINES)
    shop.file("data/orders/b.jsonl.gz", gzip.compress(b'\xef\xbb\xbf{"id":21}\r\n\r\n{"id":22'))
    assert shop.apply()["orders"]["error"] is None
    kept = shop.rows(
        'SELECT right("sourceFile", 10), "sourceLine", message FROM hakiri.quarantine_shop_orders ORDER BY 1, 2'
    )
    assert [(line, REASONS[line] in reason) for file, line, reason in kept if file.endswith("/a.jsonl")] == [
        (line, True) for line in REASONS
    ]
    assert [line for file, line, _ in kept if file.endswith("b.jsonl.gz")] == [3]
    assert shop.rows("SELECT id, amount, doc::text FROM raw.orders ORDER BY id") == [
        (1, None, '{"a": 1.10}'),
        (15, Decimal("11.00"), '{"a": 12345678901234567890.5}'),
        (21, None, None),
    ]


def test_numbers_are_cursors_whatever_their_size(shop: ShopProject) -> None:
    """Seconds with a fraction, cut into windows; one file later."""
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data"}},
            "incremental": "at",
            "tables": ["orders"],
            "backfill": {"window": 10},
        }
    )
    shop.file("data/orders/a.jsonl", "\n".join(f'{{"id":{n},"at":{n}.5}}' for n in range(35)) + '\n{"id":90}\nnone')
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 36, 1)
    shop.file("data/orders/b.jsonl", '{"id":40,"at":40.00000000000000000001}\n{"id":41,"at":4.15e1}\n')
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [*range(35), 40, 41, 90]
    assert shop.rows('SELECT "sourceLine" FROM hakiri.quarantine_shop_orders') == [(37,)]
