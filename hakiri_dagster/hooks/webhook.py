"""`webhook`: a POST that tells of the load. `signed_post.send` is how it gets there."""

from __future__ import annotations

from hakiri_dagster.hooks.context import HookContext
from hakiri_dagster.hooks.signed_post import Limits, send
from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.hook_spec import WebhookHook

_EVENTS = {"pre_hook": ("load_starting", "starting"), "post_hook": ("load_published", "success")}


def run(hook: WebhookHook, around: Surroundings) -> None:
    send(
        hook.url,
        payload(around.context),
        secret=hook.secret,
        idempotency_key=around.idempotency_key,
        allow_loopback=around.settings.webhooks_to_loopback,
        limits=Limits(seconds=hook.timeout_seconds),
        authorities=around.settings.webhook_authorities,
    )


def payload(context: HookContext) -> dict[str, object]:
    event, status = _EVENTS[context.phase]
    return {
        "event": event,
        "pipeline": context.pipeline,
        "table": context.table,
        "target": context.target,
        "run_id": context.run_id,
        "phase": context.phase,
        "status": status,
        "rows": context.rows,
        "chunks": list(context.chunks),
        "load_ids": list(context.load_ids),
        "at": context.at.isoformat(),
    }
