"""Alerts go on to whoever watches: to a log, always, and to the operator's webhook. At least once; the audit DB holds
what is left to be told, so a receiver that is away, and a crash in between, cost nothing but time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hakiri_dagster.audit.alerts import AlertRecord, AlertStore
from hakiri_dagster.errors import HakiriError, WebhookRefused
from hakiri_dagster.hooks.signed_post import Limits, send
from hakiri_dagster.settings import Settings

ALERTS_A_TICK = 20
SECONDS_A_TICK = 30
"""Dagster ends a tick that takes longer than a minute."""

_LIMITS = Limits(seconds=8)


@dataclass(frozen=True, slots=True)
class PassedOn:
    passed_on: int
    reason: str | None
    """Why the others were not."""

    @property
    def summary(self) -> str:
        told = f"{self.passed_on} alert(s) passed on" if self.passed_on else "no alert passed on"
        return f"{told}; the next tick tries again: {self.reason}" if self.reason else told


def pass_on(
    alerts: AlertStore,
    project: str,
    settings: Settings,
    log: Callable[[str], None],
    observe: Callable[[AlertRecord], None],
) -> PassedOn:
    """A receiver that refuses one alert may take the next one; where it cannot be reached at all, the others wait.

    `observe` shows at the asset what no run could show there."""
    end = time.monotonic() + SECONDS_A_TICK
    done = 0
    reason: str | None = None
    for alert in alerts.to_pass_on(ALERTS_A_TICK):
        if time.monotonic() > end:
            reason = "the receiver takes its time"
            break
        if alert.tries == 0:
            whose = "/".join(filter(None, (alert.pipeline_id, alert.table)))
            log(f"{alert.severity} {alert.kind} of {whose}: {alert.message}")
            if alert.run_id is None:
                observe(alert)
        try:
            _post(alert, project, settings)
        except HakiriError as error:
            reason = str(error)
            alerts.not_passed_on(alert)
            if not isinstance(error, WebhookRefused):
                break
            continue
        alerts.passed_on(alert)
        done += 1
    if reason is not None:
        log(f"alerts could not be passed on: {reason}")
    return PassedOn(done, reason)


def _post(alert: AlertRecord, project: str, settings: Settings) -> None:
    if settings.alert_webhook_url is None:
        return
    send(
        settings.alert_webhook_url,
        _payload(alert, project),
        secret=settings.alert_webhook_secret,
        idempotency_key=f"alert/{alert.pipeline_id}/{alert.table}/{alert.id}/{alert.raised_at.isoformat()}/{alert.times}",
        allow_loopback=settings.webhooks_to_loopback,
        limits=_LIMITS,
        authorities=settings.webhook_authorities,
    )


def _payload(alert: AlertRecord, project: str) -> dict[str, object]:
    return {
        "event": "alert",
        "project": project,
        "id": alert.id,
        "pipeline_id": alert.pipeline_id,
        "table": alert.table,
        "kind": alert.kind,
        "subject": alert.subject,
        "severity": alert.severity,
        "message": alert.message,
        "details": alert.details,
        "run_id": alert.run_id,
        "raised_at": alert.raised_at.isoformat(),
        "last_seen": alert.last_seen.isoformat(),
        "times": alert.times,
    }
