"""What the operator sets through the environment. The manifest never says where the engine runs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hakiri_dagster.errors import UsageError
from hakiri_dagster.security.secrets import register

DEFAULT_TENANT = "default"
_TELEMETRY = ("OTEL_", "TRACEPARENT", "TRACESTATE")


@dataclass(frozen=True, slots=True)
class Settings:
    """`spark` is a master (`local[*]`, `spark://…`, `yarn`, `k8s://…`) or a Connect URL (`sc://…`).

    `tenant` keeps apart the watermarks of those who share a destination.
    """

    spark: str = "local[*]"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    spark_driver_memory: str | None = None
    candidates_dir: str | None = None
    dagster_url: str | None = None
    lease_ttl_seconds: int = 600
    retries: int = 3
    retry_base_seconds: float = 1.0
    transaction_wait_seconds: float = 10.0
    """For how long the first load of a table waits for transactions that are open at its source."""
    alert_webhook_url: str | None = field(default=None, repr=False)
    alert_webhook_secret: str | None = field(default=None, repr=False)
    webhooks_to_loopback: bool = False
    """Webhooks may go to this machine itself, also by http."""
    webhook_authorities: Path | None = None
    """A file of certificates (PEM) that webhooks trust instead of the machine's."""
    tenant: str = DEFAULT_TENANT
    streaming_enabled: bool = False
    telemetry: Mapping[str, str] = field(default_factory=dict, repr=False)
    """OpenTelemetry's own variables, by their names."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if env is None else env
        webhook = env.get("HAKIRI_ALERT_WEBHOOK_URL") or None
        secret = env.get("HAKIRI_ALERT_WEBHOOK_SECRET") or None
        authorities = env.get("HAKIRI_WEBHOOKS_CA_FILE")
        register(value for value in (webhook, secret) if value)  # the path of such a URL often is a password
        return cls(
            spark=env.get("HAKIRI_SPARK") or "local[*]",
            spark_conf=_pairs(env.get("HAKIRI_SPARK_CONF", "")),
            spark_driver_memory=env.get("HAKIRI_SPARK_MEMORY"),
            candidates_dir=env.get("HAKIRI_CANDIDATES"),
            dagster_url=env.get("HAKIRI_DAGSTER_URL"),
            lease_ttl_seconds=_whole(env, "HAKIRI_LEASE_TTL", 600, least=1),
            retries=_whole(env, "HAKIRI_RETRIES", 3, least=0),
            retry_base_seconds=_seconds(env, "HAKIRI_RETRY_BASE", 1.0),
            transaction_wait_seconds=_seconds(env, "HAKIRI_TRANSACTION_WAIT", 10.0),
            alert_webhook_url=webhook,
            alert_webhook_secret=secret,
            webhooks_to_loopback=allows_loopback(env),
            webhook_authorities=Path(authorities) if authorities else None,
            tenant=env.get("HAKIRI_TENANT") or DEFAULT_TENANT,
            streaming_enabled=env.get("FLOW_STREAMING_ENABLED", "").strip().lower() == "true",
            telemetry={name: value for name, value in env.items() if name.startswith(_TELEMETRY)},
        )


def allows_loopback(env: Mapping[str, str]) -> bool:
    return _flag(env, "HAKIRI_WEBHOOKS_TO_LOOPBACK")


def _whole(env: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = env.get(name) or str(default)
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise UsageError(f"{name} is {text!r}", hint=f"a whole number from {least} on, such as {default}")
    return int(text)


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name) or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{name} is {text!r}", hint=f"a number of seconds, such as {default:g}")
    return seconds


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name) or "false"
    if text not in ("true", "false"):
        raise UsageError(f"{name} is {text!r}", hint="true or false")
    return text == "true"


def _pairs(text: str) -> dict[str, str]:
    """`HAKIRI_SPARK_CONF="spark.a=1 spark.b='x y'"`. The values may hold secrets, so errors do not repeat them."""
    hint = "write `spark.a=1 spark.b='x y'`"
    try:
        items = [item.partition("=") for item in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"HAKIRI_SPARK_CONF cannot be read: {error}", hint=hint) from None
    if any(not key or not equals for key, equals, _ in items):
        raise UsageError("HAKIRI_SPARK_CONF holds something that is not a `key=value`", hint=hint)
    return {key: value for key, _, value in items}
