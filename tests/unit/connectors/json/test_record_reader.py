"""msgspec cuts values out of records, and what it lets pass is checked for many at once. A reading of each record by
itself with Python's parser is what both are compared with."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hakiri_dagster.connectors.json.raw_text import is_whole
from hakiri_dagster.connectors.json.record_reader import RecordReader
from hakiri_dagster.connectors.json.strict import UnreadableRecord, read_members

KEYS = ('"a"', '"b"', '"c:d"', r'"\u0061"', r'"c\u003ad"', r'"q\""', r'"\ud800"', '"é"', "a")
VALUES = (
    "1", "1.10", "-0", "01", "1e999", "NaN", '"x:y"', r'"\""', r'"\ud83d\ude00"', r'"\udc00"', "null", "true", "nul",
    '{"k": 1,"k":2}', '{"k":1,"l":[{}]}', '[1,{"a:":1,"a:":2}]', '{"k" :{"l":":"}}', "[1,]", "\x01", '""',
)  # fmt: skip
MEMBERS = st.tuples(st.sampled_from(KEYS), st.sampled_from([":", " :", ": "]), st.sampled_from(VALUES)).map("".join)
RECORDS = st.lists(MEMBERS, max_size=3).map(lambda members: f"{{{','.join(members)}}}") | st.sampled_from(
    ["", "[1]", "5", "null", '{"a":1}x', '{"a":1}{"a":2}', '{"a":1', "{}", " {} ", '{"a":1}\r']
)


def read_alone(text: str) -> dict[str, str] | str:
    """The texts of its values, or the reason why it has none."""
    try:
        members = read_members(text)
    except UnreadableRecord as reason:
        return str(reason)
    if any(not is_whole(name) for name in members):
        return "half"
    return {name: value for name, value in members.items() if value != "null"}


@example(['{"a":{"k": 1,"k":2}}'], ["a"])
@example([r'{"c\u003ad":1}', '{"a":1,"a":2}'], ["a", "c:d"])
@given(st.lists(RECORDS, max_size=6), st.lists(st.sampled_from(["a", "c:d", 'q"']), unique=True))
def test_records_read_together_are_what_each_is_by_itself(records: list[str], names: list[str]) -> None:
    found = RecordReader(names).read([record.encode() for record in records])
    for index, record in enumerate(records):
        expected = read_alone(record)
        assert (index in found.reasons) == isinstance(expected, str)
        values = {name: texts[index].as_py() for name, texts in found.columns.items() if texts[index].is_valid}
        assert values == ({} if isinstance(expected, str) else expected)


def test_keys_that_are_met_late_are_missing_in_the_records_before() -> None:
    found = RecordReader().read([b'{"a":1}'] * 1500 + [b'{"b":2,"a":null}'])
    assert list(found.columns) == ["a", "b"]
    assert found.columns["a"].null_count == 1
    assert found.columns["b"].drop_null().to_pylist() == ["2"]
    assert found.columns["b"][1500].as_py() == "2"


@pytest.mark.parametrize("bad", [b'{"a":"\xff"}', b'{"a":["\xed\xa0\x80"]}', b'{"\xff":1}', b"\xef\xbb\xbf{}"])
def test_a_record_that_is_not_utf_8_or_begins_with_a_mark_is_refused_alone(bad: bytes) -> None:
    found = RecordReader(["a"]).read([b'{"a":1}', bad, '{"a":"é"}'.encode()])
    assert list(found.reasons) == [1]
    assert found.columns["a"].to_pylist() == ["1", None, '"é"']
