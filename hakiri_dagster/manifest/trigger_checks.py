"""What is wrong with triggers, as far as their texts tell: nothing is resolved or connected to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hakiri_dagster.errors import Problem, UnsafeUrl
from hakiri_dagster.manifest.api_urls import judged
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.hook_checks import SHORTEST_SECRET, Complaint
from hakiri_dagster.manifest.places import Entry, value_at
from hakiri_dagster.manifest.queue_identity import QueueIdentity, queue_identity, shared_settings
from hakiri_dagster.manifest.queue_urls import judged_queue_url, region_of
from hakiri_dagster.manifest.references import Filled, is_one_reference, names_in
from hakiri_dagster.manifest.resolve import Declared
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.manifest.trigger_spec import CloudflareQueueTrigger, QueueTrigger, SqsTrigger

_SECRETS: Mapping[str, tuple[str, ...]] = {
    "webhook": ("secret",),
    "sqs": ("access_key_id", "secret_access_key"),
    "cloudflare_queue": ("token",),
}
_KEY_ID = "access_key_id"
"""Not a secret itself, and shown in Amazon's logs; kept out of the manifest like one."""


def trigger_problems(entry: Entry, filled: Filled, *, allow_loopback: bool) -> Iterator[Problem]:
    """No value is quoted."""
    for index, trigger in _triggers(filled.data):
        kind = trigger.get("type")
        found = [*_secrets(entry, index, kind, trigger), *_urls(trigger, allow_loopback=allow_loopback)]
        for key, message, hint in found:
            path = ("triggers", index, key)
            if not filled.unsettled(entry.written(path)):
                yield entry.problem(path, message, hint)


def arrival_problems(entry: Entry) -> Iterator[Problem]:
    triggers = entry.value(("triggers",))
    seen: set[str] = set()
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        kind = trigger.get("type") if isinstance(trigger, dict) else None
        if kind == "files" and entry.value(("source", "connector")) != "files":
            message = "a trigger of the type `files` needs a source of files"
            yield entry.problem(("triggers", index, "type"), message, 'use `type = "source"`, or a schedule')
        if kind in ("files", "source") and kind in seen:
            message = f"there is a trigger of the type `{kind}` already"
            yield entry.problem(("triggers", index, "type"), message, "one is enough: take it out")
        if isinstance(kind, str):
            seen.add(kind)


def change_problems(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """Of tables whose API does not tell of changes. Asked of what pipelines and tables come to together."""
    for declared, pipeline in pairs:
        if pipeline.source_trigger is None:
            continue
        for index, table in enumerate(pipeline.tables):
            complaint = _no_change_told(table, pipeline) if table.source.connector == "rest" else None
            if complaint is not None:
                message, hint = complaint
                yield declared.entry.problem(("tables", index), f"table {quoted(table.name)}: {message}", hint)


def shared_queue_problems(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """Of pipelines that read one queue in different ways, of which only one would be taken."""
    first: dict[QueueIdentity, tuple[Pipeline, QueueTrigger]] = {}
    for declared, pipeline in pairs:
        for index, trigger in enumerate(pipeline.triggers):
            if not isinstance(trigger, SqsTrigger | CloudflareQueueTrigger):
                continue
            other, its = first.setdefault(queue_identity(trigger), (pipeline, trigger))
            mine, theirs = shared_settings(trigger), shared_settings(its)
            differing = ", ".join(f"`{key}`" for key in mine if mine[key] != theirs[key])
            if differing:
                message = f"the pipeline {quoted(other.id)} reads the same queue with other settings: {differing}"
                hint = "pipelines that share a queue read it together: write the same in both"
                yield declared.entry.problem(("triggers", index), message, hint)


def _no_change_told(table: Table, pipeline: Pipeline) -> tuple[str, str] | None:
    asked = table.endpoint.get("cursor_params")
    if table.endpoint.get("segments") is not None:
        if pipeline.schedule is not None or pipeline.receives:
            return None
        return (
            "a trigger of the type `source` would start it once and never again: a walk by tokens tells of nothing new",
            "give the pipeline a `schedule`, which starts it at each tick",
        )
    if table.cursor is None or table.whole_table or asked is None:
        return None
    if table.load.lag is not None:
        return (
            "with a `lag`, an API does not tell whether late rows came, so that a trigger of the type `source` would"
            " start it at each look",
            "give the pipeline a `schedule` instead, or take `lag` out",
        )
    if not asked["newest"] and asked["order"] != "descending":
        return (
            "nothing tells its newest record, so that a trigger of the type `source` would start it at each look",
            "set `cursor_params.newest` to parameters with which the API gives the newest record first, or give the"
            " pipeline a `schedule` instead",
        )
    return None


def trigger_secrets(entry: Entry, env: Mapping[str, str]) -> Iterator[str]:
    """What the environment gives to secrets is never to be shown."""
    for index, trigger in _triggers(entry.data):
        for key in _SECRETS.get(str(trigger.get("type")), ()):
            written = entry.value(("triggers", index, key))
            if isinstance(written, str) and key != _KEY_ID:
                yield from (env[name] for name in names_in(written) if name in env)


def _triggers(data: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    triggers = value_at(data, ("triggers",))
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        if isinstance(trigger, dict):
            yield index, trigger


def _secrets(entry: Entry, index: int, kind: Any, trigger: dict[str, Any]) -> Iterator[Complaint]:
    for key in _SECRETS.get(kind, ()) if isinstance(kind, str) else ():
        written, value = entry.value(("triggers", index, key)), value_at(trigger, (key,))
        if not isinstance(written, str) or not written:
            continue
        if not is_one_reference(written):
            yield key, "a secret is not written into a manifest", "write `${NAME}`, and set NAME in the environment"
        elif kind == "webhook" and isinstance(value, str) and 0 < len(value) < SHORTEST_SECRET:
            message = f"the secret is shorter than {SHORTEST_SECRET} characters, so it can be guessed"
            yield key, message, "`openssl rand -hex 32` makes a good one"
    if kind == "sqs":
        given = [key for key in _SECRETS["sqs"] if value_at(trigger, (key,)) is not None]
        if len(given) == 1:
            (other,) = set(_SECRETS["sqs"]) - set(given)
            yield given[0], f"there is no `{other}` with it", "write both, or neither"


def _urls(trigger: dict[str, Any], *, allow_loopback: bool) -> Iterator[Complaint]:
    match trigger.get("type"):
        case "sqs":
            for key in ("queue_url", "aside_queue_url"):
                url = value_at(trigger, (key,))
                if isinstance(url, str) and url:
                    yield from _queue_url(key, url, trigger, allow_loopback=allow_loopback)
        case "cloudflare_queue":
            url = value_at(trigger, ("base_url",))
            if isinstance(url, str) and url:
                yield from _base_url(url, allow_loopback=allow_loopback)
        case _:
            return


def _queue_url(key: str, url: str, trigger: dict[str, Any], *, allow_loopback: bool) -> Iterator[Complaint]:
    try:
        judged_queue_url(url, allow_loopback=allow_loopback)
    except UnsafeUrl as error:
        yield key, f"the queue is refused: {error.what}", error.hint or ""
        return
    if key == "queue_url" and value_at(trigger, ("region",)) is None and region_of(url) is None:
        yield key, "the URL names no region", 'set `region`, like "eu-central-1"'


def _base_url(url: str, *, allow_loopback: bool) -> Iterator[Complaint]:
    if "?" in url or "#" in url:
        yield "base_url", "the URL holds a query or a fragment", "write it up to and with the API's version"
        return
    try:
        judged(url, allow_loopback=allow_loopback)
    except UnsafeUrl as error:
        yield "base_url", f"the API is refused: {error.what}", error.hint or ""
