"""A rewind from the command line, and a kill between it and the publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.command_line import Done, ProjectFolder, eventually
from tests.acceptance.conftest import NewProject

WHY = "vendor-side data correction RT-481"
HELD_UP = """
SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'hakiri:%' AND wait_event_type = 'Lock'
"""
ROWS = "SELECT id, v, count(*) FROM public.orders GROUP BY 1, 2 ORDER BY 1"
OLD = [(n, "old", 1) for n in range(1, 7)]


@dataclass(frozen=True)
class Story:
    project: ProjectFolder
    said: dict[str, Done]
    seen: dict[str, Any]

    def __getitem__(self, call: str) -> Done:
        return self.said[call]


@pytest.fixture(scope="module")
def story(new_project: NewProject) -> Story:
    """Every call costs seconds, so the tests share these."""
    project, said, seen = new_project("rewind"), {}, {}
    database = {"connector": "postgres", "config": {"schema": "src"}}
    project.file("manifests/hakiri.toml", '[project]\nname = "shop"\nversion = "1"\n')
    project.pipeline(
        {
            "id": "shop",
            "source": database,
            "destination": {"connector": "postgres", "config": {"schema": "public"}},
            "tables": [{"name": "orders", "incremental": "day"}],
        }
    )
    window = ("--from", "2024-02-01", "--to", "2024-04-01")
    with project.database() as connection:
        connection.execute("CREATE SCHEMA src")
        connection.execute(
            "CREATE TABLE src.orders AS SELECT n AS id, 'old' AS v, make_date(2024, n, 5) AS day"
            " FROM generate_series(1, 6) AS n"
        )
        said["apply"] = project.hakiri("apply", "--json")
        connection.execute("UPDATE src.orders SET v = 'new'")
        said["no date"] = project.hakiri(
            "backfill", "rewind", "shop", "--from", "x", "--to", "2024-04-01", "--reason", "r"
        )
        said["outside"] = project.hakiri(
            "backfill", "rewind", "shop", "--from", "2030-01-01", "--to", "2031-01-01", "--reason", "r"
        )
        said["no reason"] = project.hakiri("backfill", "rewind", "shop", *window)
        said["rewind"] = project.hakiri("backfill", "rewind", "shop", *window, "--reason", WHY, "--json")
        said["again"] = project.hakiri("backfill", "rewind", "shop", *window, "--reason", "once more")
        said["plan"] = project.hakiri("plan", "--json")
        said["status"] = project.hakiri("status", "shop", "--json")
        with project.database() as other, other.transaction():
            other.execute("LOCK TABLE public.orders IN SHARE MODE")
            killed = project.start("apply", "--json")
            assert eventually(lambda: connection.execute(HELD_UP).fetchone() != (0,) or killed.poll() is not None)
            seen["held up"] = killed.poll() is None
            project.kill_everything()
            project.finish(killed)
        seen["after the kill"] = connection.execute(ROWS).fetchall()
        said["apply after the kill"] = project.hakiri("apply", "--json")
        seen["in the end"] = connection.execute(ROWS).fetchall()
        said["status in the end"] = project.hakiri("status", "shop", "--json")
    return Story(project, said, seen)


class TestARewind:
    def test_of_what_is_no_date_or_outside_the_plan_is_a_wrong_call(self, story: Story) -> None:
        assert [story[call].code for call in ("no date", "outside", "no reason")] == [2, 2, 2]
        assert "--from 'x' is no date, and the cursor is one" in story["no date"].err
        assert "no chunk lies between 2030-01-01 and 2031-01-01" in story["outside"].err
        assert "the plan covers 6 chunk(s), from 2024-01-01 up to 2024-07-01" in story["outside"].err

    def test_makes_the_chunks_that_overlap_pending_again(self, story: Story) -> None:
        assert (story["apply"].code, story["rewind"].code) == (0, 0)
        (told,) = story["rewind"].document["rewinds"]
        assert told["rewound"] == ["2024-02", "2024-03"]
        (planned,) = story["plan"].tables().values()
        assert planned["chunks"]["due"] == ["2024-02", "2024-03"]
        assert planned["chunks"]["done"] == 4
        assert [chunk["reason"] for chunk in planned["rewound"]] == [WHY, WHY]
        said = story["status"].document
        assert (said["phase"], said["chunks"]["pending"], said["chunks"]["done"]) == ("backfilling", 2, 4)
        assert said["rewinds"][0]["reason"] == WHY

    def test_asked_for_twice_is_told(self, story: Story) -> None:
        assert story["again"].code == 0
        assert "2 chunk(s) are to be loaded anyway: 2024-02, 2024-03" in story["again"].out
        assert story["plan"].tables()["orders"]["rewound"][0]["reason"] == WHY, "the first one's reason stays"

    def test_survives_a_kill_before_the_publish_and_loses_and_doubles_nothing(self, story: Story) -> None:
        assert story.seen["held up"], "it was killed while it was about to replace rows"
        assert story.seen["after the kill"] == OLD
        assert story["apply after the kill"].code == 0
        assert story["apply after the kill"].tables()["orders"]["chunks"]["done"] == 2
        assert story.seen["in the end"] == [(n, "new" if n in (2, 3) else "old", 1) for n in range(1, 7)]

    def test_is_over_when_its_chunks_are_published(self, story: Story) -> None:
        said = story["status in the end"].document
        assert (said["phase"], said["chunks"]["done"], said["rewinds"]) == ("streaming", 6, [])
