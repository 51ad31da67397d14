"""Rules of which something else than the row's own values tells whether they hold: the rows come with the answer."""

from __future__ import annotations

from hakiri_dagster.manifest.rule_spec import RowRule, id_of


def verdict_of(rule: RowRule) -> str:
    """The column that says whether a row passes."""
    return f"_hakiri_holds_{id_of(rule)}"
