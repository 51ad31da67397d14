from __future__ import annotations

import json

import pytest

from hakiri_dagster.connectors.rest.flattening import Flattening
from hakiri_dagster.errors import SourceError
from tests.unit.connectors.rest.records import record

NESTED = '{"id":1, "user":{"login":"ann","team":{"name":"x"},"tags":[1, 2]}, "head":{"repo":{"n":1.10},"ref":null}}'


def flat(text: str, said: bool | tuple[str, ...]) -> dict[str, object]:
    found = Flattening.of(said)(record(text))
    assert json.loads(found.text) == found.value
    return dict(found.value)


def test_every_object_becomes_members_of_the_record() -> None:
    assert flat(NESTED, True) == {
        "id": 1, "user_login": "ann", "user_team_name": "x", "user_tags": [1, 2], "head_repo_n": 1.10, "head_ref": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "names"),
    [
        (("user",), ["id", "user_login", "user_team", "user_tags", "head"]),
        (("head.repo",), ["id", "user", "head_repo_n", "head_ref"]),
        (("user", "head"), ["id", "user_login", "user_team", "user_tags", "head_repo", "head_ref"]),
        (("nobody",), ["id", "user", "head"]),
    ],
)
def test_objects_that_are_named_are_flattened_and_no_others(objects: tuple[str, ...], names: list[str]) -> None:
    assert list(flat(NESTED, objects)) == names


def test_values_keep_their_characters() -> None:
    text = '{"a":{"n":1.10,"b":12345678901234567890.50,"s":"\\u00e9"}}'
    assert Flattening.of(True)(record(text)).text == '{"a_n":1.10,"a_b":12345678901234567890.50,"a_s":"\\u00e9"}'


def test_an_object_that_is_null_or_no_object_stays_a_member() -> None:
    assert flat('{"user":null}', True) == {"user": None}
    assert flat('{"user":"ann"}', ("user",)) == {"user": "ann"}


def test_an_object_without_members_leaves_nothing() -> None:
    assert flat('{"id":1,"user":{ }}', True) == {"id": 1}


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match="two members of a record both become `user_id`"):
        Flattening.of(True)(record('{"user_id":1,"user":{"id":2}}'))


@pytest.mark.parametrize("text", ["5", "[1]", "null", '"x"'])
def test_what_is_no_object_is_left_to_be_set_aside(text: str) -> None:
    assert Flattening.of(True)(record(text)).text == text


def test_the_same_flattening_is_told_by_the_same_text() -> None:
    assert str(Flattening.of(("b", "a.c"))) == str(Flattening.of(("a.c", "b"))) == "a,a.c,b"
