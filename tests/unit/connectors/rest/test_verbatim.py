from __future__ import annotations

import json

import pytest

from hakiri_dagster.connectors.rest.verbatim import Verbatim
from hakiri_dagster.planning.columns import Column
from tests.unit.connectors.rest.records import record

AS_SENT = Verbatim.of([Column("doc", "string", native_type="jsonb"), Column("text", "string"), Column("n", "bigint")])


@pytest.mark.parametrize(
    ("sent", "doc"),
    [
        ('{"a": 1.50, "b":[1e400]}', '{"a": 1.50, "b":[1e400]}'),
        ('"quoted \\"text\\""', '"quoted \\"text\\""'),
        ("0.1234567890123456789012345", "0.1234567890123456789012345"),
        ("null", None),
    ],
)
def test_a_document_comes_as_it_was_sent(sent: str, doc: str | None) -> None:
    found = json.loads(AS_SENT(record(f'{{"n":1, "doc": {sent} , "other":{{"x":1}}}}')))
    assert found == {"n": 1, "doc": doc, "other": {"x": 1}}


@pytest.mark.parametrize(
    ("sent", "text"), [('"é"', "é"), ("1.10", "1.10"), ("true", "true"), ("[1, 2]", "[1, 2]"), ("null", None)]
)
def test_what_is_no_text_becomes_one_in_a_column_of_text(sent: str, text: str | None) -> None:
    assert json.loads(AS_SENT(record(f'{{"text":{sent}}}'))) == {"text": text}


@pytest.mark.parametrize("text", ['{"n": 1.10,"text":"x"}', "5", "[]", '{"doc":null}', "{}"])
def test_all_else_is_left_alone(text: str) -> None:
    assert AS_SENT(record(text)) == text
