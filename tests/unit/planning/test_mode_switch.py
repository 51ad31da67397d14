from __future__ import annotations

import re
from itertools import permutations
from typing import get_args

from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.mode_switch import PAIRS, LastLoad, Switch, switch
from tests.unit.docs.pages import ROOT


def test_every_change_of_one_built_mode_into_another_says_what_it_does() -> None:
    loading = [mode for mode in get_args(LoadMode) if mode != "cdc_mirror"]
    assert set(PAIRS) == set(permutations(loading, 2))
    assert all(PAIRS.values())


def test_the_same_mode_with_the_same_keys_says_nothing() -> None:
    last = LastLoad("upsert", ("b", "a"), ("id",))
    assert switch(last, "upsert", ("a", "b"), ("id",)) == Switch()
    assert switch(LastLoad("upsert", None, None), "upsert", ("a",), ("a",)) == Switch()


def test_a_changed_mode_is_told() -> None:
    (note,) = switch(LastLoad("append", (), ()), "truncate", (), ()).notes
    assert note.startswith("load mode append becomes truncate: the next load replaces all rows")


def test_a_changed_upsert_key_is_told() -> None:
    (note,) = switch(LastLoad("upsert", ("a",), ()), "upsert", ("b",), ()).notes
    assert "upsert_key (a) becomes (b)" in note
    assert "the one on the old key stays" in note


def test_a_changed_primary_key_is_refused_with_the_ways_out() -> None:
    found = switch(LastLoad("upsert", ("a",), ("a",)), "upsert", ("b",), ("b",))
    assert found.notes == ()
    (refusal,) = found.refusals
    assert "the primary key was (a) at the last load and is (b) now" in refusal
    assert "drop the target and apply" in refusal


def test_the_page_on_concepts_says_of_every_change_what_happens() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    table = page.partition("| from | to | what happens |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    told = {(before, after): text for befores, into, text in rows for before in modes(befores) for after in modes(into)}
    of_history = {pair: text for pair, text in PAIRS.items() if "scd2" in pair}
    assert told == {pair: text for pair, text in PAIRS.items() if pair not in of_history}
    for text in of_history.values():
        assert f" any other | {text} |" in page or f"| any other | `scd2` | {text} |" in page


def modes(cell: str) -> list[str]:
    return re.findall("`([a-z_0-9]+)`", cell)
