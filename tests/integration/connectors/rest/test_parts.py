"""What a look at an API's table asks of its parts, and what it keeps of their answers."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from hakiri_dagster.connectors.contract import Discovery, Known
from hakiri_dagster.connectors.network import FreePermits, Network
from hakiri_dagster.connectors.rest.connector import REST
from hakiri_dagster.errors import HeldBack, SourceError, SourceUnavailable
from hakiri_dagster.planning.chunks import Extent
from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, said, serving
from tests.integration.connectors.rest.conftest import LABEL, no_spark

REPOS = tuple(f"repo{number:02}" for number in range(40))


def found(
    api: ApiServer,
    *,
    cursor: str | None = "n",
    columns: Mapping[str, str] | None = None,
    known: Known | None = None,
    network: Network | None = None,
    **config: Any,
) -> Discovery:
    """`n` is numbered from 1 on in each part."""
    table = REST.table(
        config={"base_url": api.url, "pagination": {"type": "link"}, "retry": {"retries": 0}} | config,
        name="things",
        path=None,
        columns=columns or {},
        label=LABEL,
        endpoint={
            "params": {"repo": "{repo}"},
            "partition_keys": {"repo": list(REPOS)},
            "cursor_params": {"lower": "n", "format": "number", "order": "ascending", "newest": {"order": "desc"}},
        },
        network=network or Network(allow_loopback=True),
    )
    return table.discover(cursor=cursor, known=known or Known(), spark=no_spark)


def test_the_memory_that_a_look_takes_does_not_grow_with_the_parts() -> None:
    page = Said(json.dumps([{"n": n, "text": "x" * 4000, "tags": ["a"] * 20} for n in range(1, 101)]).encode())
    assert len(page.body) > 400_000
    with serving(lambda _asked: page) as api:
        schema = found(api).schema  # which loads what it needs
        api.asked.clear()
        tracemalloc.start()
        try:
            again = found(api)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(api.asked) == 2 * len(REPOS)
    assert again.schema == schema
    assert set(again.parts.values()) == {Extent(1, 100, 0, rows_at_upper=1)}
    assert peak < 24 << 20, (
        "a page for each of four connections, with what is made of it; all of them are 32 MB of text"
    )


def of_each(**by_repo: Said) -> Callable[[Asked], Said]:
    """What parts answer, some of them otherwise than the others."""
    return lambda asked: by_repo.get(asked.params["repo"], said([{"n": 1}]))


def test_columns_come_in_the_order_of_the_parts_with_types_that_fit_them_all() -> None:
    odd = {
        "repo00": said([{"n": 1, "price": 1, "day": "2024-01-31", "note": None}]),
        "repo05": said([{"n": 2, "late": True, "note": {"a": 1}}, {"n": 3, "price": 1.125}]),
        "repo39": said([{"n": 4, "last": 1, "day": "2024-01-31 10:00", "note": [1]}]),
    }
    with serving(of_each(**odd)) as api:
        schema = found(api, columns={"declared": "text"}).schema
    assert schema is not None
    assert {column.name: column.native_type or column.spark_type for column in schema.columns} == {
        "repo": "text", "n": "bigint", "price": "numeric", "day": "timestamp_ntz", "note": "jsonb",
        "late": "boolean", "last": "bigint", "declared": "text",
    }  # fmt: skip
    assert [column.name for column in schema.columns] == [
        "repo", "n", "price", "day", "note", "late", "last", "declared",
    ]  # fmt: skip


def test_what_is_known_of_columns_is_kept_whatever_their_values_are_now() -> None:
    with serving(of_each()) as api:
        before = found(api).schema
    with serving(of_each(repo07=said([{"n": 1}, {"n": 2.5}]))) as api:
        assert found(api, known=Known(before)).schema == before


def test_those_that_are_refused_leave_the_others_as_they_are() -> None:
    gone = {repo: said({}, 404) for repo in ("repo03", "repo17")}
    with serving(of_each(**gone)) as api:
        table = found(api)
    assert [part.value for part in table.away] == list(gone)
    assert [part.value for part in table.parts] == [repo for repo in REPOS if repo not in gone]
    assert set(table.parts.values()) == {Extent(1, 1, 0, rows_at_upper=1)}


def test_records_that_do_not_fit_the_partition_key_are_the_tables_fault_and_not_their_parts() -> None:
    with (
        serving(of_each(repo03=said([{"n": 1, "repo": "another"}]))) as api,
        pytest.raises(SourceError, match="records have a member `repo` of their own") as raised,
    ):
        found(api)
    assert raised.value.where == LABEL


@pytest.mark.parametrize(("status", "kind"), [(503, SourceUnavailable), (404, SourceError)])
def test_where_one_fails_for_all_no_other_is_asked_any_more(status: int, kind: type[SourceError]) -> None:
    """A table that is loaded whole needs them all."""

    def answer(asked: Asked) -> Said:
        if asked.params["repo"] == REPOS[1]:
            return said({}, status)
        api.over.wait(0.1)  # so that no more than a few of the others can be asked meanwhile
        return said([{"n": 1}])

    with serving(answer) as api:
        with pytest.raises(kind, match=f"answered {status}"):
            found(api, cursor=None)
        assert len({asked.params["repo"] for asked in api.asked}) < len(REPOS) // 2


class TestSilence:
    """Of an API that does not answer for some parts."""

    def test_one_is_left_out_after_it_was_asked_for_once_more(self) -> None:
        with serving(of_each(repo03=said({}, 503), repo20=said({}, 500))) as api:
            discovery = found(api)
            asked = [asked.params["repo"] for asked in api.asked]
        assert {part.value: error.kind for part, error in discovery.away.items()} == {
            "repo03": "transient",
            "repo20": "transient",
        }
        assert len(discovery.parts) == len(REPOS) - 2
        assert asked.count("repo03") == 2
        assert set(asked[-2:]) == {"repo03", "repo20"}, "when the others have been asked"

    def test_a_blip_leaves_nothing_out(self) -> None:
        asked: list[Asked] = []

        def answer(request: Asked) -> Said:
            asked.append(request)
            mine = sum(one.params["repo"] == "repo03" for one in asked)
            return said({}, 503) if request.params["repo"] == "repo03" and mine == 1 else said([{"n": 1}])

        with serving(answer) as api:
            discovery = found(api)
        assert discovery.away == {}
        assert [part.value for part in discovery.parts] == list(REPOS)

    def test_a_tick_asks_no_part_once_more(self) -> None:
        with serving(of_each(repo03=said({}, 503))) as api:
            assert len(found(api, network=Network(allow_loopback=True, hurried=True)).away) == 1
            assert [asked.params["repo"] for asked in api.asked].count("repo03") == 1

    def test_an_api_that_is_down_is_not_asked_for_all_of_them(self) -> None:
        with serving(lambda _asked: said({}, 503)) as api:
            with pytest.raises(SourceUnavailable, match="answered 503"):
                found(api)
            assert len(api.asked) < len(REPOS) // 2

    def test_where_no_part_is_left_it_is_the_api_that_does_not_answer(self) -> None:
        """As an error that may pass, though the other parts are refused."""
        others = {repo: said({}, 404) for repo in REPOS}
        with (
            serving(of_each(**others | {"repo20": said({}, 503)})) as api,
            pytest.raises(SourceUnavailable, match="answered 503"),
        ):
            found(api)

    def test_a_request_that_is_not_sent_says_nothing_of_its_part(self) -> None:
        class UsedUp(FreePermits):
            def __init__(self) -> None:
                self.left = 60

            @contextmanager
            def permit(self, chunk: str = "") -> Iterator[int]:
                self.left -= 1
                if self.left < 0:
                    raise HeldBack("the budget is used up")
                yield 0

        with serving(of_each()) as api, pytest.raises(HeldBack):
            found(api, network=Network(allow_loopback=True, permits=UsedUp()))
