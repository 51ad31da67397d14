"""One request of an API, over real connections: limits, patience, and what errors say."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Credentials, Patience, Timeouts
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.pages import fetch
from hakiri_dagster.errors import HakiriError, SourceError, SourceUnavailable, UnsafeUrl
from tests.integration.connectors.rest.api_server import Answer, Asked, Said, in_turn, said, serving
from tests.integration.hooks.certificates import new_authority

SECRET = "s3cr3t-of-the-api"
GOOD = said([{"id": 1}])
LOOPBACK = Network(allow_loopback=True)


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def ids(url: str, path: str = "/things", records: str | None = None, pauses: Pauses | None = None, **api: Any) -> Any:
    settings = replace(Api(url), **api)
    client = Client(settings, LOOPBACK, pause=pauses if pauses is not None else Pauses())
    try:
        return [record.value["id"] for record in fetch(client, client.url(path), records).records]
    finally:
        client.close()


def refusal(answer: Answer, **asked: Any) -> HakiriError:
    with serving(answer) as api, pytest.raises(HakiriError) as raised:
        ids(api.url, **asked)
    return raised.value


@pytest.mark.parametrize(
    "trouble",
    [
        Said(status=500),
        Said(status=503),
        Said(status=429),
        Said(status=408),
        Said(status=403, headers=[("Retry-After", "0")]),
        Said(hangs_up=True),
        replace(GOOD, cut=5),
        replace(GOOD, cut=5, without_length=True),
        Said(gzip.compress(GOOD.body)[:-4], headers=[("Content-Encoding", "gzip")]),
    ],
    ids=["500", "503", "429", "408", "403 with Retry-After", "hung up", "cut", "cut without length", "cut gzip"],
)
def test_what_may_pass_is_tried_again(trouble: Said) -> None:
    pauses = Pauses()
    with serving(in_turn(trouble, trouble, GOOD)) as api:
        assert ids(api.url, pauses=pauses) == [1]
        assert len(api.asked) == 3
    assert len(pauses) == 2


def test_an_api_that_never_answers_well_is_given_up_as_not_available() -> None:
    error = refusal(in_turn(said({"error": "no"}, 502)))
    assert isinstance(error, SourceUnavailable)
    assert error.what.startswith("GET http://127.0.0.1:")
    assert error.what.endswith('/things: answered 502 Bad Gateway: {"error": "no"}; tried 6 times')


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_what_the_api_refuses_is_not_tried_again(status: int) -> None:
    with serving(in_turn(said({"error": "no such thing"}, status))) as api:
        with pytest.raises(SourceError, match=rf"things: answered {status} .*no such thing") as raised:
            ids(api.url)
        assert raised.value.kind == "permanent"
        assert len(api.asked) == 1


def test_retry_after_is_waited_for_in_seconds_and_as_a_date() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    answers = in_turn(
        Said(status=429, headers=[("Retry-After", "7")]), Said(status=503, headers=[("Retry-After", then)]), GOOD
    )
    pauses = Pauses()
    with serving(answers) as api:
        assert ids(api.url, pauses=pauses, patience=Patience(first_pause=0.01)) == [1]
    assert 7 <= pauses[0] <= 7.1
    assert 30 < pauses[1] <= 40.1


DATE = format_datetime(datetime(2030, 1, 1, tzinfo=UTC), usegmt=True)
SOON = format_datetime(datetime(2030, 1, 1, 0, 0, 40, tzinfo=UTC), usegmt=True)
SECONDARY = b'{"message": "You have exceeded a secondary rate limit"}'


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (429, {"Retry-After": SOON, "Date": DATE}, b"{}", 40),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1893456040", "Date": DATE}, b"{}", 40),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1893456040", "Date": DATE}, b"{}", 40),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30", "Date": DATE}, b"{}", 30),
        (403, {"x-ratelimit-remaining": "4711", "Date": DATE}, SECONDARY, 60),
    ],
    ids=["a date", "GitHub's", "429", "seconds", "secondary"],
)
def test_a_limit_is_waited_for_by_the_clock_of_the_api(
    status: int, headers: dict[str, str], body: bytes, seconds: float
) -> None:
    pauses = Pauses()
    with serving(in_turn(Said(body, status, list(headers.items())), GOOD)) as api:
        assert ids(api.url, pauses=pauses, patience=Patience(first_pause=0.01)) == [1]
    assert seconds <= pauses[0] <= seconds + 0.1


def test_who_may_not_read_is_not_taken_for_one_who_asks_too_often() -> None:
    """Though GitHub tells how much is left on every answer."""
    told = [("x-ratelimit-remaining", "4711"), ("x-ratelimit-reset", "1893456040")]
    with serving(in_turn(Said(b'{"message": "Must have admin rights"}', 403, told))) as api:
        with pytest.raises(SourceError, match="answered 403"):
            ids(api.url)
        assert len(api.asked) == 1


PACKED = ("Content-Encoding", "gzip")


def test_what_is_wrong_is_understood_also_where_it_comes_packed() -> None:
    """Every request says that it takes packed answers, and some servers pack their refusals, too."""
    pauses = Pauses()
    with serving(in_turn(Said(gzip.compress(SECONDARY), 403, [PACKED]), GOOD)) as api:
        assert ids(api.url, pauses=pauses, patience=Patience(first_pause=0.01)) == [1]
    assert 60 <= pauses[0] <= 60.1
    error = refusal(in_turn(Said(gzip.compress(b'{"error": "no such field"}'), 400, [PACKED])))
    assert error.what.endswith('answered 400 Bad Request: {"error": "no such field"}')


@pytest.mark.parametrize(
    "body",
    [b"no gzip at all", gzip.compress(b"[]")[:-12], b""],
    ids=["not packed", "cut", "empty"],
)
def test_a_refusal_that_cannot_be_unpacked_is_told_by_its_status(body: bytes) -> None:
    error = refusal(in_turn(Said(body, 404, [PACKED])))
    assert error.what.split(": ")[1].startswith("answered 404 Not Found")
    assert error.kind == "permanent"


def test_a_refusal_that_unpacks_to_gigabytes_is_unpacked_no_further_than_anybody_reads() -> None:
    bomb = Said(gzip.compress(b" " * (48 << 20)), 400, [PACKED])
    tracemalloc.start()
    try:
        refusal(in_turn(bomb))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_an_api_that_asks_to_be_left_alone_for_a_day_is_not_asked_again() -> None:
    pauses = Pauses()
    error = refusal(in_turn(Said(status=429, headers=[("Retry-After", "86400")])), pauses=pauses)
    assert isinstance(error, SourceUnavailable)
    assert "it asks to be left alone for 86400 s" in error.what
    assert pauses == []


def test_a_body_without_an_end_is_not_read_to_its_end() -> None:
    def endless(asked: Asked) -> Said:
        return Said(b"[" + b" " * (3 << 20), without_length=True)

    error = refusal(endless, most_bytes=1 << 20)
    assert "the answer is larger than 1 MiB" in error.what
    assert error.kind == "permanent"


def test_ten_gigabytes_are_given_up_before_they_fill_memory() -> None:
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        piece = b'{"id":1},' * 7000
        for _ in range((10 << 30) // len(piece)):
            taken += len(piece)
            yield piece

    tracemalloc.start()
    try:
        error = refusal(in_turn(Said(b"[", stream=pieces())), most_bytes=2 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "the answer is larger than 2 MiB, and was not read to its end" in error.what
    assert taken < 64 << 20, "no more than fits the buffers of a connection besides"
    assert peak < 16 << 20


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"[" + b"1," * 140_000 + b"1]", "131,072 records"),
        (b"[[" + b"{}," * (1 << 20) + b"{}]]", "1,048,576 values"),
        (b'[{"a":[' + b'{"":0},' * (1 << 20) + b"{}]}]", "1,048,576 values"),
    ],
    ids=["records", "objects", "members"],
)
def test_a_small_body_of_ever_so_many_values_fills_no_memory(body: bytes, told: str) -> None:
    """A MiB of the shortest values there are would take 70, and their 64 MiB are 63 KiB on the wire."""
    bomb = Said(gzip.compress(body), headers=[("Content-Encoding", "gzip")])
    tracemalloc.start()
    try:
        error = refusal(in_turn(bomb), most_bytes=8 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.kind == "permanent"
    assert f"/things: the answer holds more than {told}" in error.what
    assert "ask for smaller pages" in (error.hint or "")
    assert peak < 64 << 20


def test_a_body_that_says_it_is_too_large_is_not_read_at_all() -> None:
    sent = Said(b"[]", headers=[("Content-Length", str(10 << 30))])
    error = refusal(in_turn(replace(sent, without_length=True)))
    assert "the answer is larger than 64 MiB" in error.what


def test_a_packed_body_may_unpack_to_no_more_than_allowed() -> None:
    bomb = Said(gzip.compress(b"[" + b" " * (64 << 20)), headers=[("Content-Encoding", "gzip")])
    assert len(bomb.body) < 1 << 20
    assert "larger than 1 MiB" in refusal(in_turn(bomb), most_bytes=1 << 20).what


def test_a_packed_body_is_unpacked() -> None:
    with serving(in_turn(Said(gzip.compress(GOOD.body), headers=[("Content-Encoding", "gzip")]))) as api:
        assert ids(api.url) == [1]
        assert api.asked[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize("cut", [1, 4, 9, 1000])
def test_a_body_packed_in_several_streams_is_unpacked_to_its_end(cut: int) -> None:
    """As a server does that packs what it sends piece by piece."""
    body = json.dumps([{"id": n} for n in range(500)]).encode()
    pieces = [gzip.compress(body[at : at + cut]) for at in range(0, len(body), cut)]
    with serving(in_turn(Said(b"".join(pieces), headers=[PACKED]))) as api:
        assert ids(api.url) == list(range(500))


@pytest.mark.parametrize("behind", [b"\0", b"[]", gzip.compress(b" ")[:-1]], ids=["zero", "json", "cut"])
def test_what_follows_a_packed_body_is_not_dropped_in_silence(behind: bytes) -> None:
    error = refusal(in_turn(Said(gzip.compress(GOOD.body) + behind, headers=[PACKED])), patience=Patience(retries=0))
    assert "the connection broke off in the middle of the answer" in error.what


def test_a_packed_body_that_unpacks_to_nothing_for_ever_is_given_up() -> None:
    nothing = gzip.compress(b"") * 1000
    sent = Said(gzip.compress(b"[]"), headers=[PACKED], stream=iter([nothing] * 100))
    assert "the answer is larger than 1 MiB" in refusal(in_turn(sent), most_bytes=1 << 20).what


def test_a_body_packed_in_another_way_is_refused() -> None:
    sent = Said(zlib.compress(GOOD.body), headers=[("Content-Encoding", "deflate")])
    assert "packed as deflate" in refusal(in_turn(sent)).what


@pytest.mark.parametrize(
    ("body", "content_type", "told"),
    [
        (b"<html>Please log in</html>", "text/html", "with HTML, not JSON: <html>Please log in</html>"),
        (b"  <!doctype html>", "application/json", "with HTML, not JSON: <!doctype html>"),
        (b'{"a": ', "application/json", "with invalid JSON"),
        (b"[1] [2]", "application/json", "with invalid JSON (something follows the document"),
        (b"[NaN]", "application/json", "with invalid JSON"),
        (b"", "application/json", "with an empty body, not JSON"),
        (b"\xff\xfe\xff", "application/json", "with invalid JSON"),
    ],
)
def test_what_is_no_json_is_told_with_its_beginning(body: bytes, content_type: str, told: str) -> None:
    error = refusal(in_turn(Said(body, headers=[("Content-Type", content_type)])))
    assert isinstance(error, SourceError)
    assert error.kind == "permanent"
    assert f"/things: answered 200 {told}" in error.what
    assert "\n" not in error.what


@pytest.mark.parametrize(
    ("value", "records", "told"),
    [
        ({"items": [], "n": 1}, None, "the answer is an object, not a list of records; it has `items`, `n`"),
        ({"items": []}, "data", "the answer has no `data`, where `records` says the records are; it has `items`"),
        ({"data": {"rows": []}}, "data.items", "the answer has no `data.items`, where `records` says"),
        ({"data": {"items": 5}}, "data.items", "`data.items` of the answer is a number, not a list of records"),
        ("no", "data", "the answer has no `data`"),
    ],
)
def test_records_that_are_not_where_they_should_be_are_told(value: object, records: str | None, told: str) -> None:
    assert told in refusal(in_turn(said(value)), records=records).what


def test_null_instead_of_a_list_holds_no_records() -> None:
    with serving(in_turn(said({"items": None}))) as api:
        assert ids(api.url, records="items") == []


@pytest.mark.parametrize(
    ("credentials", "header", "expected"),
    [
        (Credentials.bearer(SECRET), "Authorization", f"Bearer {SECRET}"),
        (Credentials.basic("ann", "pass:word"), "Authorization", "Basic YW5uOnBhc3M6d29yZA=="),
        (Credentials.header("X-Api-Key", SECRET), "X-Api-Key", SECRET),
    ],
)
def test_credentials_travel_in_headers(credentials: Credentials, header: str, expected: str) -> None:
    with serving(in_turn(GOOD)) as api:
        ids(api.url, credentials=credentials)
        assert api.asked[0].headers[header] == expected


def test_credentials_in_the_query_are_sent_and_never_shown() -> None:
    credentials = Credentials.query("who", SECRET)
    with serving(lambda asked: said({"you said": asked.params["who"]}, 400)) as api:
        with pytest.raises(SourceError) as raised:
            ids(api.url, path="/things", credentials=credentials)
        assert api.params("who") == [SECRET]
    assert SECRET not in str(raised.value)
    assert '{"you said": "***"}' in raised.value.what


@pytest.mark.parametrize("name", ["access_token", "api_key", "apikey", "X-Amz-Signature", "sig", "client_secret"])
def test_what_looks_like_a_secret_in_a_link_is_not_shown(name: str) -> None:
    def answer(asked: Asked) -> Said:
        if asked.path == "/next":
            return said({}, 404)
        return Said(status=302, headers=[("Location", f"/next?page=2&{name}=abc123xyz")])

    error = refusal(answer)
    assert f"/next?page=2&{name}=***: answered 404" in error.what


def test_a_redirect_within_the_api_is_followed() -> None:
    def answer(asked: Asked) -> Said:
        return GOOD if asked.path == "/v2/things" else Said(status=308, headers=[("Location", "/v2/things")])

    with serving(answer) as api:
        assert ids(api.url) == [1]
        assert api.paths == ["/things", "/v2/things"]


def test_a_redirect_to_another_host_is_not_followed() -> None:
    with serving(in_turn(GOOD)) as other:
        error = refusal(
            in_turn(Said(status=302, headers=[("Location", f"{other.url}/x")])),
            credentials=Credentials.bearer(SECRET),
        )
        assert f"the redirect leads to {other.url}, away from http://127.0.0.1:" in error.what
        assert other.asked == []


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1", "//evil.example/x"]
)
def test_a_redirect_into_the_network_of_the_machine_is_not_followed(location: str) -> None:
    error = refusal(in_turn(Said(status=302, headers=[("Location", location)])))
    assert "the redirect" in error.what
    assert "is not followed" in error.what


def test_redirects_without_end_are_given_up() -> None:
    assert "redirected more than 5 times" in refusal(in_turn(Said(status=302, headers=[("Location", "/things")]))).what


def test_this_machine_is_asked_only_if_the_operator_says_so() -> None:
    with serving(in_turn(GOOD)) as api:
        with pytest.raises(UnsafeUrl):
            Client(Api(api.url), Network())
        assert api.asked == []


def test_a_name_that_leads_to_this_machine_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a name stands for is judged when it is used, and the connection goes to the very address that was judged."""
    from hakiri_dagster.security import url_guard

    answers = iter([["93.184.216.34"], ["127.0.0.1"]])

    def resolve_anew(host: str, port: int, **_: object) -> list[Any]:
        return [(2, 1, 6, "", (address, port)) for address in next(answers)]

    monkeypatch.setattr(url_guard.socket, "getaddrinfo", resolve_anew)
    assert [str(a) for a in url_guard.resolve(url_guard.judge("https://api.example.com/"))] == ["93.184.216.34"]
    client = Client(Api("https://api.example.com"), Network(), pause=Pauses())
    with pytest.raises(UnsafeUrl, match="not for everybody"):
        fetch(client, client.url("/things"), None)


def test_the_certificate_has_to_name_the_host(tmp_path: Path) -> None:
    authority = new_authority(tmp_path)
    trusting = replace(LOOPBACK, authorities=authority.certificate)
    for names, is_right in ((("127.0.0.1",), True), (("other.example",), False)):
        with serving(in_turn(GOOD), tls=authority.server(*names)) as api:
            client = Client(Api(api.url), trusting, pause=Pauses())
            if is_right:
                assert len(fetch(client, client.url("/things"), None).records) == 1
            else:
                with pytest.raises(SourceError, match="the certificate does not prove"):
                    fetch(client, client.url("/things"), None)
            client.close()


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    waiting: list[Callable[[], object]] = []

    def silent(_asked: Asked) -> Said:
        waiting[0]()
        return GOOD

    with serving(silent) as api:
        waiting.append(api.over.wait)
        with pytest.raises(SourceUnavailable, match="no answer in time; tried once"):
            ids(api.url, timeouts=Timeouts(read=0.05), patience=Patience(retries=0))
        api.over.set()


def test_an_answer_that_drips_is_given_up_when_its_time_is_over() -> None:
    """Each wait is short; together they would last for ever."""
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while not stop.wait(0.01):
                    connection.sendall(b" ")
            except OSError:
                return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    with listener, pytest.raises(SourceUnavailable, match="no answer in time"):
        ids(
            f"http://127.0.0.1:{listener.getsockname()[1]}",
            timeouts=Timeouts(read=5, total=0.3),
            patience=Patience(retries=0),
        )
    stop.set()
    thread.join()


def test_requests_share_a_connection_and_survive_its_end() -> None:
    """One that the API has closed while nobody asked is no failure."""
    pauses = Pauses()
    with serving(in_turn(GOOD, replace(GOOD, closes=True), GOOD)) as api:
        client = Client(Api(api.url), LOOPBACK, pause=pauses)
        for _ in range(3):
            fetch(client, client.url("/things"), None)
        client.close()
        assert [asked.connection for asked in api.asked] == [1, 1, 2]
    assert pauses == []


def test_every_request_has_a_permit_repeated_ones_too() -> None:
    class Counting:
        given = 0

        @contextmanager
        def permit(self, chunk: str = "") -> Iterator[int]:
            self.given += 1
            yield 0

    permits = Counting()
    answers = in_turn(Said(status=302, headers=[("Location", "/other")]), Said(status=500), GOOD)
    with serving(answers) as api:
        client = Client(Api(api.url), replace(LOOPBACK, permits=permits), pause=Pauses())
        fetch(client, client.url("/things"), None)
        client.close()
        assert permits.given == len(api.asked) == 3


def test_records_keep_the_characters_that_were_sent() -> None:
    body = b'{"data": [ {"price": 1.10, "n": 123456789012345678901234567890.5e-3, "s": "\\u00e9\xc3\xa9"} , 5 ]}'
    with serving(in_turn(Said(body))) as api:
        client = Client(Api(api.url), LOOPBACK)
        first, second = fetch(client, client.url("/things"), "data").records
        client.close()
    assert first.text == '{"price": 1.10, "n": 123456789012345678901234567890.5e-3, "s": "\\u00e9é"}'
    assert (second.text, second.value) == ("5", 5)
    assert json.loads(first.text) == first.value
