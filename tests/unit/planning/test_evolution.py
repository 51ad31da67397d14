"""The matrix: what a source changes, and what becomes of it under each contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakiri_dagster.manifest.contracts import Contract
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.evolution import Evolution, Terms, evolution_of, warnings_of
from hakiri_dagster.planning.schema_diff import Change, KnownSchema, Reading, first_known


def reading(*columns: tuple[str, str], key: tuple[str, ...] = (), **more: Any) -> Reading:
    return Reading(SourceSchema(tuple(Column(name, kind) for name, kind in columns)), key, **more)


BEFORE = reading(("id", "bigint"), ("v", "int"))
KNOWN = first_known(BEFORE)


def evolved(now: Reading, contract: Contract = "evolve", known: KnownSchema = KNOWN, **terms: Any) -> Evolution:
    return evolution_of(known, now, Terms(contract, **terms), is_new=False)


MATRIX: list[tuple[str, Reading, dict[Contract, str]]] = [
    ("added", reading(("id", "bigint"), ("v", "int"), ("w", "string")),
     {"evolve": "applied", "freeze": "refused", "discard_row": "discarded", "discard_value": "discarded"}),
    ("dropped", reading(("id", "bigint")),
     {"evolve": "applied", "freeze": "refused", "discard_row": "applied", "discard_value": "applied"}),
    ("widened", reading(("id", "bigint"), ("v", "bigint")),
     {"evolve": "applied", "freeze": "refused", "discard_row": "discarded", "discard_value": "discarded"}),
    ("narrowed", reading(("id", "bigint"), ("v", "smallint")),
     {"evolve": "refused", "freeze": "refused", "discard_row": "applied", "discard_value": "applied"}),
    ("changed", reading(("id", "bigint"), ("v", "string")),
     {"evolve": "refused", "freeze": "refused", "discard_row": "discarded", "discard_value": "discarded"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "now", "contract", "verdict"),
    [(kind, now, contract, verdict) for kind, now, row in MATRIX for contract, verdict in row.items()],
)
def test_the_matrix(kind: str, now: Reading, contract: Contract, verdict: str) -> None:
    evolution = evolved(now, contract)
    (change,) = evolution.changes
    assert change.kind == kind
    assert getattr(evolution, verdict) == (change,)
    assert evolution.applied + evolution.refused + evolution.discarded == (change,)


@pytest.mark.parametrize("contract", ["evolve", "freeze"])
@pytest.mark.parametrize(("kind", "now"), [(kind, now) for kind, now, row in MATRIX])
def test_what_was_accepted_is_followed_and_is_then_what_is_known(kind: str, now: Reading, contract: Contract) -> None:
    (change,) = evolved(now, contract).changes
    evolution = evolved(now, contract, accepted={change.identity})
    assert evolution.applied == (change,)
    assert evolved(now, contract, known=evolution.known_after()).changes == ()


def test_a_permission_is_of_one_change_only() -> None:
    (narrowed,) = evolved(reading(("id", "bigint"), ("v", "smallint"))).refused
    other = reading(("id", "bigint"), ("v", "string"))
    assert evolved(other, accepted={narrowed.identity}).refused
    followed = evolved(reading(("id", "bigint"), ("v", "smallint")), accepted={narrowed.identity}).known_after()
    back = evolved(BEFORE, known=followed)
    assert [change.kind for change in back.applied] == ["widened"]
    again = evolved(
        reading(("id", "bigint"), ("v", "smallint")), known=back.known_after(), accepted={narrowed.identity}
    )
    assert again.refused, "it was narrowed once more"


def test_a_column_that_comes_back_as_something_else_is_no_new_one() -> None:
    gone = evolved(reading(("id", "bigint"))).known_after()
    assert evolved(reading(("id", "bigint")), known=gone).changes == ()
    assert [change.kind for change in evolved(BEFORE, known=gone).applied] == ["added"]
    assert [change.kind for change in evolved(reading(("id", "bigint"), ("v", "string")), known=gone).refused] == [
        "changed"
    ]


def test_a_declared_rename_is_one_change() -> None:
    now = reading(("id", "bigint"), ("amount", "int"), renamed={"amount": "v"})
    for contract in ("evolve", "freeze", "discard_row", "discard_value"):
        (change,) = evolved(now, contract).applied
        assert (change.kind, change.before, change.column) == ("renamed", "v", "amount")
    known = evolved(now).known_after()
    assert [column.name for column in known.columns] == ["id", "amount"]
    assert evolved(now, known=known).changes == (), "and is done once"


def test_a_rename_that_is_not_declared_is_a_column_less_and_one_more() -> None:
    changes = evolved(reading(("id", "bigint"), ("amount", "int"))).applied
    assert [(change.kind, change.column) for change in changes] == [("added", "amount"), ("dropped", "v")]


def test_a_rename_waits_for_the_source() -> None:
    assert evolved(replace(BEFORE, renamed={"amount": "v"})).changes == ()


def test_a_renamed_column_of_another_type_is_both() -> None:
    now = reading(("id", "bigint"), ("amount", "string"), renamed={"amount": "v"})
    evolution = evolved(now)
    assert [change.kind for change in evolution.applied] == ["renamed"]
    assert [(change.kind, change.column) for change in evolution.refused] == [("changed", "amount")]


def test_a_renamed_key_is_the_same_key() -> None:
    known = first_known(reading(("id", "bigint"), ("v", "int"), key=("id",)))
    now = reading(("nr", "bigint"), ("v", "int"), key=("nr",), renamed={"nr": "id"})
    evolution = evolved(now, known=known, held_key=True)
    assert [change.kind for change in evolution.changes] == ["renamed"]
    assert evolution.known_after().key == ("nr",)


@pytest.mark.parametrize("contract", ["evolve", "freeze", "discard_row", "discard_value"])
def test_another_key_is_refused_while_the_target_has_the_earlier_one(contract: Contract) -> None:
    known = replace(KNOWN, key=("id",))
    now = replace(BEFORE, key=("v", "id"))
    (change,) = evolved(now, contract, known, held_key=True).refused
    assert (change.kind, change.before, change.after) == ("key_changed", "id", "v, id")
    assert evolved(now, contract, known, held_key=True, accepted={change.identity}).refused, "it cannot be permitted"
    migrated = evolved(now, contract, known, held_key=False)
    assert migrated.applied == (change,)
    assert evolved(now, contract, migrated.known_after(), held_key=True).changes == ()


def test_the_order_of_a_keys_columns_says_nothing() -> None:
    assert evolved(replace(BEFORE, key=("v", "id")), known=replace(KNOWN, key=("id", "v")), held_key=True).changes == ()


def test_types_that_were_read_off_texts_are_a_guess() -> None:
    for kind in ("string", "smallint", "boolean"):
        assert evolved(reading(("id", "bigint"), ("v", kind), inferred=True)).changes == ()
    assert [c.kind for c in evolved(reading(("id", "bigint"), ("v", "bigint"), inferred=True)).applied] == ["widened"]


@pytest.mark.parametrize(
    ("declared", "kind"), [("text", "widened"), ("bigint", "widened"), ("smallint", "narrowed"), ("date", "changed")]
)
def test_what_the_manifest_declares_is_permitted_by_that(declared: str, kind: str) -> None:
    for contract in ("evolve", "freeze"):
        evolution = evolved(replace(BEFORE, declared={"v": declared}), contract)
        assert [change.kind for change in evolution.applied] == [kind]


def test_a_declared_type_stands_whatever_the_source_says() -> None:
    known = first_known(replace(BEFORE, declared={"v": "numeric"}))
    assert evolved(reading(("id", "bigint"), ("v", "string"), declared={"v": "numeric"}), known=known).changes == ()


def test_a_new_target_takes_the_source_as_it_is() -> None:
    now = reading(("id", "string"), key=("id",))
    evolution = evolution_of(KNOWN, now, Terms("freeze", held_key=True), is_new=True)
    assert evolution.changes == ()
    assert evolution.known_after() == first_known(now, KNOWN.version + 1)


def test_the_first_look_at_a_target_that_is_there_takes_the_source_as_accepted() -> None:
    evolution = evolution_of(None, BEFORE, Terms("freeze"), is_new=False)
    assert evolution.changes == ()
    assert evolution.known_after() == KNOWN


def test_a_column_that_the_manifest_names_is_loaded_whatever_the_contract() -> None:
    now = reading(("id", "bigint"), ("v", "int"), ("at", "timestamp"), ("w", "int"))
    evolution = evolved(now, "discard_row", needed={"at"})
    assert [column.name for column in evolution.loaded.columns] == ["id", "v", "at"]
    assert evolution.left_out == {"w"}
    known = evolution.known_after()
    assert known.column("w") is None
    assert known.column("at") is not None


def test_what_is_gone_or_kept_out_is_told() -> None:
    (gone,) = warnings_of(evolved(reading(("id", "bigint"))))
    assert "column v is gone from the source: what is stored of it stays" in gone
    (out,) = warnings_of(evolved(reading(("id", "bigint"), ("v", "int"), ("w", "int")), "discard_value"))
    assert 'column w is new at the source and not loaded, as contract = "discard_value"' in out


def test_what_a_contract_makes_of_another_type_is_told_before_the_load() -> None:
    (wider,) = warnings_of(evolved(reading(("id", "bigint"), ("v", "bigint")), "discard_value"))
    assert "column v was integer and is now bigint, and the target's type stays" in wider
    assert "values that do not fit it become NULL" in wider


def test_a_new_name_that_the_source_does_not_have_is_told() -> None:
    told = warnings_of(evolved(reading(("id", "bigint"), ("v", "int"), renamed={"nosuch": "v"})))
    assert list(told) == ["`renamed` says that v is called nosuch now, and the source has no column nosuch"]


def test_identities_tell_hostile_names_apart() -> None:
    changes = [Change("added", name, None, "text") for name in ('a", "b', 'a\\", \\"b', "a", "b", "")]
    assert len({change.identity for change in changes}) == len(changes)
