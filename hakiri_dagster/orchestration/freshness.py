"""Tables that are late, as the UI shows them."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from hakiri_dagster.manifest.tables import Table


def freshness_policy(table: Table) -> dg.FreshnessPolicy | None:
    late = table.validation.lateness
    if late is None:
        return None
    warn = None if late.warn_after_hours is None else timedelta(hours=late.warn_after_hours)
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=late.after_hours), warn_window=warn)
