"""GitHub's REST API: what belongs to a repository.

As its documentation has it: pages by `Link`, of 100 records at most; 5,000 requests an hour with a token, 60 without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hakiri_dagster.manifest.overlay import overlay
from hakiri_dagster.manifest.preset_spec import GithubConfig
from hakiri_dagster.manifest.presets.contract import Preset
from hakiri_dagster.manifest.rest_spec import RestConfig, RetrySpec
from hakiri_dagster.manifest.spec import BackfillSpec, TableSpec

_HEADERS: Final = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_UNTIL_THE_NEXT_HOUR: Final = RetrySpec(longest_retry_after=3900)
"""When a budget is used up, GitHub asks to be left alone until the hour is over."""

_CHANGED: Final = {"sort": "updated", "per_page": 100}
_UP: Final = _CHANGED | {"direction": "asc"}
_DOWN: Final = _CHANGED | {"direction": "desc"}
_SINCE: Final = {"lower": "since", "order": "ascending", "restart": True, "newest": {"direction": "desc"}}
"""GitHub's pages have numbers. Going up, a record that changes meanwhile would take one from behind it out of sight."""
_TIMES: Final = {"created_at": "timestamptz", "updated_at": "timestamptz"}
_USER: Final = {"user_login": "text", "user_id": "bigint", "user_type": "text"}
_OF_BOTH: Final = {
    "id": "bigint", "node_id": "text", "number": "integer", "title": "text", "body": "text", "state": "text",
    "locked": "boolean", "active_lock_reason": "text", "draft": "boolean", "author_association": "text",
    **_USER, "labels": "jsonb", "assignee": "jsonb", "assignees": "jsonb", "milestone": "jsonb", "html_url": "text",
    **_TIMES, "closed_at": "timestamptz",
}  # fmt: skip
_COMMENT: Final = {
    "id": "bigint", "node_id": "text", "body": "text", "author_association": "text", **_USER, "reactions": "jsonb",
    "html_url": "text", **_TIMES, "performed_via_github_app": "jsonb",
}  # fmt: skip

TABLES: Final[Mapping[str, dict[str, Any]]] = {
    "issues": {
        "path": "issues",
        "params": _UP | {"state": "all"},
        "cursor_params": _SINCE,
        "columns": _OF_BOTH
        | {"state_reason": "text", "comments": "integer", "closed_by": "jsonb", "reactions": "jsonb"}
        | {"pull_request": "jsonb", "performed_via_github_app": "jsonb", "type": "jsonb"},
    },
    "pull_requests": {
        "path": "pulls",
        "params": _DOWN | {"state": "all"},
        "cursor_params": {"order": "descending", "oldest": {"direction": "asc"}},
        "columns": _OF_BOTH
        | {"merged_at": "timestamptz", "merge_commit_sha": "text", "auto_merge": "jsonb"}
        | {"head": "jsonb", "base": "jsonb", "requested_reviewers": "jsonb", "requested_teams": "jsonb"},
    },
    "comments": {
        "path": "issues/comments",
        "params": _UP,
        "cursor_params": _SINCE,
        "columns": _COMMENT | {"issue_url": "text"},
    },
    "review_comments": {
        "path": "pulls/comments",
        "params": _UP,
        "cursor_params": _SINCE,
        "columns": _COMMENT
        | {"pull_request_url": "text", "pull_request_review_id": "bigint", "in_reply_to_id": "bigint"}
        | {"path": "text", "line": "integer", "commit_id": "text", "diff_hunk": "text"},
    },
}

CHILDREN: Final[Mapping[str, dict[str, Any]]] = {
    "issue_labels": {
        "explode": "labels",
        "columns": {"id": "bigint", "node_id": "text", "name": "text", "color": "text", "description": "text"}
        | {"default": "boolean", "url": "text"},
    },
    "issue_assignees": {
        "explode": "assignees",
        "columns": {"id": "bigint", "node_id": "text", "login": "text", "type": "text", "html_url": "text"},
    },
}
"""Lists within issues."""


def github(config: GithubConfig) -> Preset:
    without_token, repo = config.token is None, config.repo or "{repo}"
    return Preset(
        name="github",
        config=RestConfig.model_validate(
            {
                "base_url": config.base_url,
                "auth": None if config.token is None else {"type": "bearer", "token": config.token},
                "headers": _HEADERS,
                "pagination": {"type": "link"},
                "partition_keys": {"repo": config.repos} if config.repos else {},
                **config.requests(retry=overlay(_UNTIL_THE_NEXT_HOUR, config.retry)),
            }
        ),
        tables={
            **{name: _table(name, said, repo, without_token=without_token) for name, said in TABLES.items()},
            **{name: _child(name, said) for name, said in CHILDREN.items()},
        },
        hints=BackfillSpec(rate_budget="60/h" if without_token else "5000/h"),
    )


def _table(name: str, said: Mapping[str, Any], repo: str, *, without_token: bool) -> TableSpec:
    """Each window costs a request at least, of which there are few without a token; where one walk is for all windows
    (pull requests), short ones would split it."""
    in_years = without_token or said["cursor_params"]["order"] == "descending"
    return TableSpec.model_validate(
        {
            **said,
            "name": name,
            "path": f"/repos/{repo}/{said['path']}",
            "primary_key": ["id"],
            "incremental": "updated_at",
            "flatten": ["user"],
            "backfill": {"window": "1y" if in_years else "1mo"},
        }
    )


def _child(name: str, said: Mapping[str, Any]) -> TableSpec:
    return TableSpec.model_validate({**said, "name": name, "parent": "issues"})
