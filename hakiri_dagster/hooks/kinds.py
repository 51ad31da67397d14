"""Each kind of hook in a module of its own; here is which is which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hakiri_dagster.hooks import custom_function, refresh_mat_view, sql, webhook
from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.hook_spec import CustomFunctionHook, Hook, RefreshMatViewHook, SqlHook, WebhookHook


def run(hook: Hook, around: Surroundings) -> Sequence[str]:
    """What it has to say, line by line."""
    match hook:
        case SqlHook():
            return sql.run(hook, around)
        case RefreshMatViewHook():
            refresh_mat_view.run(hook, around)
        case WebhookHook():
            webhook.run(hook, around)
        case CustomFunctionHook():
            custom_function.run(hook, around)
        case _:
            assert_never(hook)
    return ()
