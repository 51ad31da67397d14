from __future__ import annotations

import pytest

from hakiri_dagster.triggers.proving import Refused
from hakiri_dagster.triggers.room import Room


def test_what_is_read_at_the_same_time_has_an_end_and_is_free_again_after_it() -> None:
    room = Room(10)
    with room.hold() as first:
        first(4)
        first(4)
        with room.hold() as second, pytest.raises(Refused) as told:
            second(3)
        assert told.value.status == 503
        first(2)
    with room.hold() as again:
        again(10)
