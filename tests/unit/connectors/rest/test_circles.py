from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.rest.circles import CircleWatch


@given(st.integers(0, 200), st.integers(1, 200))
def test_every_circle_is_met_before_it_was_gone_round_four_times(before: int, length: int) -> None:
    watch = CircleWatch()
    met = next(n for n in count() if watch.meets(n if n < before else before + (n - before) % length))
    assert before + length <= met <= 4 * (before + length) + 2


def test_what_never_repeats_is_never_met() -> None:
    watch = CircleWatch()
    assert not any(watch.meets(n) for n in range(10_000))
