"""Foreign keys of other tables that an exchange has put on again, and that could not be checked since."""

from __future__ import annotations

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.pipeline.alerts import not_failing, raise_alert
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.way import Way


def tell_of_unchecked_keys(way: Way) -> None:
    """Where nothing was published, there is nothing to say that was not said before."""
    if way.totals.chunks:
        not_failing(way, lambda: _tell(way))


def _tell(way: Way) -> None:
    for key in retried(way, lambda: way.destination.unchecked_keys(way.table)):
        text = f"the foreign key {key} was put on again and could not be checked; the next load checks it"
        raise_alert(way, Alert("unchecked_key", text, subject=key))
