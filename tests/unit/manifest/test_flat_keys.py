"""The seed's flat names on a table or pipeline mean the same as the keys under `load` and `validate`."""

from __future__ import annotations

import json

import pytest

from hakiri_dagster.manifest.flat_keys import FLAT_KEYS, flat_spellings
from hakiri_dagster.manifest.spec import PipelineSpec, TableSpec
from tests.unit.manifest.conftest import Read
from tests.unit.manifest.samples import files_pipeline

VALUES = {
    "mode": "truncate",
    "upsert_key": ["a"],
    "watermark_column": "w",
    "cdc_source": "c",
    "fail_on_empty_source": False,
    "on_miss_action": "alert",
    "expected_row_count_delta": {"window_runs": 3},
    "backup_before_load": True,
    "pre_hook": {"type": "sql", "statement": "ANALYZE"},
    "post_hook": [{"type": "webhook", "url": "https://example.com"}],
    "dataset_level": {"rowCount": {"min": 1}},
    "row_level": [{"type": "notNull", "field": "x"}],
    "quarantine": {"enabled": False},
}
PIPELINE = {"id": "a", "source": {"connector": "postgres"}, "tables": ["t"]}


@pytest.mark.parametrize("flat", FLAT_KEYS)
def test_a_flat_key_is_the_key_in_its_section(flat: str) -> None:
    section, field = FLAT_KEYS[flat]
    value = VALUES[field]
    nested = {section: {field: value}}
    assert PipelineSpec.model_validate({**PIPELINE, flat: value}) == PipelineSpec.model_validate({**PIPELINE, **nested})
    assert TableSpec.model_validate({"name": "t", flat: value}) == TableSpec.model_validate({"name": "t", **nested})


@pytest.mark.parametrize("flat", FLAT_KEYS)
def test_a_flat_key_beside_the_key_in_its_section_is_refused_at_the_flat_one(read: Read, flat: str) -> None:
    section, field = FLAT_KEYS[flat]
    text = json.dumps({**PIPELINE, section: {field: VALUES[field]}, flat: VALUES[field]}, indent=1)
    told = [p for p in read(None, {"a.json": text}).problems if "given twice" in p.message]
    assert [problem.hint for problem in told] == ["keep one of them"]
    assert text.split("\n")[told[0].line - 1].startswith(f' "{flat}":')


@pytest.mark.parametrize(("section", "field"), sorted(set(FLAT_KEYS.values())))
def test_both_spellings_of_one_flat_key_are_refused(read: Read, section: str, field: str) -> None:
    spellings = flat_spellings(section, field)
    text = json.dumps({**PIPELINE, **dict.fromkeys(spellings, VALUES[field])})
    told = [p for p in read(None, {"a.json": text}).problems if "given twice" in p.message]
    assert len(told) == len(spellings) - 1


def test_both_spellings_of_one_key_are_refused(read: Read) -> None:
    text = files_pipeline(more="[backfill]\nstart_from = 1\nstartFrom = 2\n")
    (problem,) = read(None, {"a.toml": text}).problems
    assert (problem.line, problem.message) == (
        6,
        "`startFrom` in `backfill` is given twice, in two spellings or two places",
    )


def test_flat_keys_and_their_section_may_be_mixed() -> None:
    table = TableSpec.model_validate({"name": "t", "loadMode": "append", "load": {"provenance": "full"}})
    assert table.load is not None
    assert (table.load.mode, table.load.provenance) == ("append", "full")
    assert table.load.model_fields_set == {"mode", "provenance"}


def test_a_wrong_value_of_a_flat_key_is_told_where_it_is_written(read: Read) -> None:
    text = files_pipeline(more='expectedRowCountDelta = { windowRuns = "x" }\nfailOnEmptySource = 1\n')
    problems = [p for p in read(None, {"a.toml": text}).problems if "not yet" not in p.message]
    assert [(p.line, p.column) for p in problems] == [(4, 40), (5, 21)]
