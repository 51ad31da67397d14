from __future__ import annotations

import pytest

from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import files_pipeline


def test_the_seeds_flat_names_make_a_band(load: Load) -> None:
    text = files_pipeline(more='expectedRowCountDelta = { minRatio = 0.9 }\nonMissAction = "alert"\n')
    load_spec = load(None, {"shop.toml": text}).tables[0].load
    band = load_spec.expected_row_count_delta
    assert band is not None
    assert (band.window_runs, band.min_ratio, band.max_ratio) == (7, 0.9, 2.0)
    assert load_spec.on_miss_action == "alert"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("min_ratio = 3", "min_ratio is 3 and max_ratio 2, so every load would be outside"),
        ("max_ratio = 0.4", "min_ratio is 0.5 and max_ratio 0.4, so every load would be outside"),
        ("window_runs = 2", "must be at least 3"),
        ("min_ratio = -1", "must be at least 0"),
        ("max_ratio = 0", "must be more than 0"),
    ],
)
def test_a_band_that_no_load_can_be_in_is_refused_at_its_place(read: Read, written: str, message: str) -> None:
    text = files_pipeline(more=f"load = {{ expected_row_count_delta = {{ {written} }} }}\n")
    (problem,) = read(None, {"shop.toml": text}).problems
    assert message in problem.message
    assert text.split("\n")[problem.line - 1].startswith("load = ")


def test_a_miss_is_an_alert_or_nothing(read: Read) -> None:
    (problem,) = read(None, {"shop.toml": files_pipeline(more='onMissAction = "alarm"\n')}).problems
    assert "`alarm` is not one of alert, ignore" in problem.message
