"""Stripe, as far as its API lists objects: newest first, `starting_after` the last one, `created` within bounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.integration.connectors.rest.api_server import Asked, Said, said

_BOUNDS: dict[str, Callable[[int, int], bool]] = {
    "created[gte]": lambda value, bound: value >= bound,
    "created[gt]": lambda value, bound: value > bound,
    "created[lte]": lambda value, bound: value <= bound,
    "created[lt]": lambda value, bound: value < bound,
}

_PARAMS = {"subscriptions": ("status",), "subscription_items": ("subscription",)}


@dataclass
class Stripe:
    """`limit`: as if fewer fitted a page than Stripe's 100. `within`: how many lines an invoice shows itself."""

    key: str = "rk-s3cret"
    limit: int = 100
    within: int = 10
    trouble: Callable[[Asked, int], Said | None] = lambda _asked, _n: None
    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, kind: str, id_: str, at: datetime, **more: Any) -> None:
        one = {"id": id_, "object": kind.removesuffix("s"), "created": int(at.timestamp()), "metadata": {}} | more
        self.objects.setdefault(kind, []).append(one)

    def invoice(self, id_: str, at: datetime, lines: int) -> None:
        """With its first lines, and where the others are."""
        found = [{"id": f"il_{id_}_{n}", "object": "line_item", "amount": 100 * n} for n in range(lines)]
        self.objects[f"invoices/{id_}/lines"] = found
        shown = {
            "object": "list",
            "data": found[: self.within],
            "has_more": lines > self.within,
            "url": f"/v1/invoices/{id_}/lines",
        }
        self.put("invoices", id_, at, currency="eur", lines=shown)

    def subscription(self, id_: str, at: datetime, items: int) -> None:
        found = [{"id": f"si_{id_}_{n}", "object": "subscription_item", "quantity": n} for n in range(items)]
        self.objects[f"subscription_items/{id_}"] = found
        url = f"/v1/subscription_items?subscription={id_}"
        shown = {"object": "list", "data": found[: self.within], "has_more": items > self.within, "url": url}
        self.put("subscriptions", id_, at, status="active", items=shown)

    def answer(self, asked: Asked) -> Said:
        with self.lock:
            self.asked += 1
            trouble = self.trouble(asked, self.asked)
            return self._answer(asked) if trouble is None else trouble

    def _answer(self, asked: Asked) -> Said:
        if asked.headers["Authorization"] != f"Bearer {self.key}":
            return said({"error": {"message": "Invalid API Key provided"}}, 401)
        kind = asked.path.removeprefix("/v1/")
        unknown = asked.params.keys() - {"limit", "starting_after", *_BOUNDS, *_PARAMS.get(kind, ())}
        if unknown:
            return said({"error": {"message": f"Received unknown parameter: {min(unknown)}"}}, 400)
        if kind == "subscription_items":
            kind = f"subscription_items/{asked.params['subscription']}"
        rows = self.objects.get(kind, [])
        if "created" in (rows[0] if rows else {}):
            rows = sorted(rows, key=lambda row: row["created"], reverse=True)
        for name, holds in _BOUNDS.items():
            if name in asked.params:
                rows = [row for row in rows if holds(row["created"], int(asked.params[name]))]
        if (last := asked.params.get("starting_after")) is not None:
            places = [place for place, row in enumerate(rows) if row["id"] == last]
            if not places:
                return said({"error": {"code": "resource_missing", "message": f"No such {kind}: '{last}'"}}, 404)
            rows = rows[places[0] + 1 :]
        limit = min(int(asked.params.get("limit", 10)), self.limit)
        return said({"object": "list", "url": asked.path, "has_more": len(rows) > limit, "data": rows[:limit]})
