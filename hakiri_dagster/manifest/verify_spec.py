"""`verify`: how often a target is compared with its source, and what is done about what was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import Flag, Model, Number, Whole, wrong
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.schedules import ScheduleError, cron_of

COMPARABLE_SOURCES = frozenset(("postgres",))
"""Connectors whose rows can be counted without reading all of them."""


def _cadence(value: Any) -> Any:
    """`1d` means `every 1d`."""
    if not isinstance(value, str):
        return value
    text = f"every {value}" if re.fullmatch(r"[0-9]+\s*[a-z]", value) else value
    try:
        cron_of(text)
    except ScheduleError as error:
        raise wrong(str(error), error.hint) from error
    return text


Cadence = Annotated[str, Field(examples=["1d", "6h", "0 3 * * *"]), BeforeValidator(_cadence)]


class VerifySpec(Model):
    """How often the target is compared with the source."""

    every: Cadence = Field(default="every 1d", description="`15m` `6h` `1d` `1w`, or a cron expression.")
    windows: Whole | None = Field(default=None, ge=1, description="Only the newest so many chunks. Default: all.")
    digest: Flag = Field(default=False, description="`true`: values are compared as well, by a checksum.")
    repair: Flag = Field(
        default=False, description="`true`: chunks that drifted become pending, and the next load replaces their rows."
    )
    on_drift: Literal["error", "warn"] = Field(
        default="error", description="How severe the failed check and the alert are."
    )
    chunks_per_second: Number | None = Field(
        default=None, gt=0, description="How many chunks each side counts in a second, at most."
    )


def verify_problems(entry: Entry) -> Iterator[Problem]:
    """A source that cannot be compared would fail each tick."""
    connector = entry.value(("source", "connector"))
    if not isinstance(connector, str) or connector in COMPARABLE_SOURCES:
        return
    tables = entry.value(("tables",))
    places: list[KeyPath] = [("verify",)]
    places += [("tables", index, "verify") for index in range(len(tables) if isinstance(tables, list) else 0)]
    for place in places:
        if entry.value(place) not in (None, False):
            message = f"the connector `{connector}` cannot count its rows without sending all of them"
            hint = "take it out; the validator `row_count_matches_source` counts what each load has read"
            yield entry.problem(place, message, hint, at_key=True)
