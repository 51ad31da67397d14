"""`hakiri apply` is killed in the middle of a walk over an API: the next one ends with exactly its records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psutil

from tests.acceptance.command_line import Running, kill
from tests.acceptance.conftest import NewProject
from tests.integration.connectors.rest.api_server import Asked, Said, serving
from tests.integration.connectors.rest.github_api import REPO, Github, written

NOW = datetime.now(UTC).replace(microsecond=0)
ENV = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}


def test_a_load_that_is_killed_goes_on_with_the_window_it_was_in(new_project: NewProject) -> None:
    github, victims = Github(per_page=4), list[Running]()
    for number in range(36):
        github.issue(number, NOW - timedelta(days=6 * number + 1))
    walks = iter(range(100))

    def killing(asked: Asked, _n: int) -> Said | None:
        """In the third window, when a page of it has been given."""
        if "since" in asked.params and victims and next(walks) == 6:
            kill(psutil.Process(victims.pop().pid))
        return None

    github.trouble = killing
    project = new_project("api")
    with serving(github.answer) as api:
        config = {"repo": REPO, "base_url": api.url, "max_connections": 1}
        project.pipeline(
            {
                "id": "gh",
                "source": {"connector": "github", "config": config},
                "tables": [{"name": "issues", "backfill": {"window": "1mo"}}],
                "backfill": {"rate_budget": "1000/min"},
            }
        )
        running = project.start("apply", "--json", env=ENV)
        victims.append(running)
        assert project.finish(running).code != 0
        assert not victims, "it was killed"
        api.asked.clear()
        done = project.hakiri("apply", "--json", env=ENV)
        since = [param for param in api.params("since") if param is not None]
    assert done.code == 0, done
    table = done.tables()["issues"]
    assert table["error"] is None
    assert 0 < table["rows"] < 36, "what was published before the kill is not loaded again"
    oldest = written(NOW - timedelta(days=6 * 35 + 1))
    assert min(since) > oldest
    assert [row[0] for row in project.rows("SELECT number FROM issues ORDER BY 1")] == list(range(36))
