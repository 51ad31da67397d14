"""docs/hooks.md and the program say the same."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from hakiri_dagster.hooks.context import HookContext
from hakiri_dagster.hooks.signature import SIGNATURE, TIMESTAMP, sign
from hakiri_dagster.hooks.webhook import payload
from tests.unit.docs.pages import ROOT, blocks

BLOCKS = {block.title: block.text for block in blocks(ROOT / "docs" / "hooks.md")}
CONTEXT = HookContext("p", "t", "raw.t", "post_hook", "r", 1, ("full",), (1,), datetime.now(UTC))
SECRET = "correct horse battery staple"


def executed(title: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(BLOCKS[title], names)
    return names


def test_the_payload_has_the_keys_that_are_shown() -> None:
    shown = json.loads(BLOCKS["webhook"])
    assert list(shown) == list(payload(CONTEXT))
    assert {key: type(value) for key, value in shown.items()} == {k: type(v) for k, v in payload(CONTEXT).items()}


def test_a_function_is_told_what_the_page_says() -> None:
    assert {field.name for field in fields(HookContext)} == set(json.loads(BLOCKS["webhook"])) - {"event", "status"}


def test_the_receiver_that_is_shown_knows_what_is_genuine() -> None:
    is_genuine = executed("verify")["is_genuine"]
    now, body = str(int(time.time())), b'{"event":"load_published"}'
    headers = {TIMESTAMP: now, SIGNATURE: sign(SECRET, now, body)}
    assert is_genuine(SECRET, headers, body)
    assert not is_genuine(SECRET, headers, body + b" ")
    assert not is_genuine("another secret", headers, body)
    old = str(int(time.time()) - 301)
    assert not is_genuine(SECRET, {TIMESTAMP: old, SIGNATURE: sign(SECRET, old, body)}, body)


def test_the_function_that_is_shown_can_be_called() -> None:
    executed("function")["announce"](CONTEXT)
