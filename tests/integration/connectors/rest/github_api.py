"""GitHub, as far as its REST API shows a repository: numbered pages by `Link`, `since`, sorting, limits of requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from tests.integration.connectors.rest.api_server import Asked, Said, said

REPO = "owner/name"
_LISTS = {"issues": "issues", "pulls": "pulls", "issues/comments": "comments", "pulls/comments": "reviews"}
_WITHOUT_SINCE = ("pulls",)
_MOST_A_PAGE = 100


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Github:
    """`trouble` may answer a request in GitHub's stead; `per_page`: as if fewer fitted a page than GitHub's 100."""

    token: str | None = None
    per_page: int = _MOST_A_PAGE
    trouble: Callable[[Asked, int], Said | None] = lambda _asked, _n: None
    lists: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def issue(self, number: int, at: datetime, **more: Any) -> None:
        """Pull requests are issues, too."""
        self._put("issues", number, at, self._issue(number) | more)

    def pull(self, number: int, at: datetime, **more: Any) -> None:
        self.issue(number, at, pull_request={"url": f"https://api.github.com/repos/{REPO}/pulls/{number}"})
        self._put("pulls", number, at, self._issue(number) | {"head": {"ref": "x"}, "base": {"ref": "main"}} | more)

    def comment(self, number: int, at: datetime, **more: Any) -> None:
        issue = f"https://api.github.com/repos/{REPO}/issues/1"
        self._put("comments", number, at, {"body": f"comment {number}", "issue_url": issue} | more)

    def answer(self, asked: Asked) -> Said:
        with self.lock:
            self.asked += 1
            trouble = self.trouble(asked, self.asked)
            return self._answer(asked) if trouble is None else trouble

    def _answer(self, asked: Asked) -> Said:
        if self.token is not None and asked.headers["Authorization"] != f"Bearer {self.token}":
            return said({"message": "Bad credentials"}, 401)
        repo, _, rest = asked.path.removeprefix("/repos/").partition(REPO + "/")
        if repo or rest not in _LISTS:
            return said({"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, 404)
        return self._page(asked, self._sorted(rest, asked.params))

    def _sorted(self, name: str, params: dict[str, str]) -> list[dict[str, Any]]:
        by = {"updated": "updated_at"}.get(params.get("sort", "created"), "created_at")
        down = params.get("direction", "desc") == "desc"
        rows = sorted(self.lists.get(_LISTS[name], {}).values(), key=lambda row: (row[by], row["id"]), reverse=down)
        if name in ("issues", "pulls") and (state := params.get("state", "open")) != "all":
            rows = [row for row in rows if row["state"] == state]
        if name not in _WITHOUT_SINCE:
            rows = [row for row in rows if row["updated_at"] >= params.get("since", "")]
        return rows

    def _page(self, asked: Asked, rows: list[dict[str, Any]]) -> Said:
        size = min(int(asked.params.get("per_page", 30)), self.per_page)
        page = int(asked.params.get("page", 1))
        last = max(1, -(-len(rows) // size))
        links = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        shown = {rel: to for rel, to in links.items() if (rel in ("next", "last") and page < last) or to < page}
        where = f"http://{asked.headers['Host']}{asked.path}"
        told = ", ".join(
            f'<{where}?{urlencode(asked.params | {"page": str(to)})}>; rel="{rel}"' for rel, to in shown.items()
        )
        limits = {"x_ratelimit_limit": "5000", "x_ratelimit_remaining": "4711", "x_ratelimit_reset": "1893456000"}
        return said(rows[(page - 1) * size : page * size], **limits, **({"Link": told} if told else {}))

    def _put(self, name: str, number: int, at: datetime, row: dict[str, Any]) -> None:
        rows = self.lists.setdefault(name, {})
        known = rows.get(number, {"created_at": written(at)})
        user = {"login": f"u{number}", "id": number, "type": "User", "site_admin": False}
        rows[number] = {
            "id": number * 1000,
            "user": user,
            "created_at": known["created_at"],
            "updated_at": written(at),
            **row,
        }

    @staticmethod
    def _issue(number: int) -> dict[str, Any]:
        labels = [{"id": 7, "name": "bug", "color": "ff0000"}]
        return {"number": number, "title": f"issue {number}", "state": "open", "labels": labels, "milestone": None}
