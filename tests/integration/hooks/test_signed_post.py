from __future__ import annotations

import json
import logging
import os
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from ipaddress import ip_address
from pathlib import Path

import pytest

from hakiri_dagster.errors import HakiriError, UnsafeUrl, UsageError, WebhookRefused, WebhookUnavailable
from hakiri_dagster.hooks.signature import verify
from hakiri_dagster.hooks.signed_post import Delivered, Limits, send
from hakiri_dagster.security import url_guard
from tests.integration.hooks.certificates import Authority, new_authority
from tests.integration.hooks.receivers import Asked, Respond, answer, receiving

OK = answer(200)
SECRET = "a secret between two"
PAYLOAD = {"table": "shop/orders", "rows": 3, "note": "schön"}
USUAL = Limits()
SHORT = Limits(seconds=0.15)
LONG = 5.0
"""What a limit that does not hold would take at least; what one test waits for at most."""


def deliver(
    url: str,
    *,
    payload: Mapping[str, object] = PAYLOAD,
    secret: str | None = SECRET,
    key: str = "run-1/shop/orders",
    allow_loopback: bool = True,
    limits: Limits = USUAL,
    authorities: Path | None = None,
) -> Delivered:
    return send(
        url,
        payload,
        secret=secret,
        idempotency_key=key,
        allow_loopback=allow_loopback,
        limits=limits,
        authorities=authorities,
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Says what the names stand for: at each question the next answer. Collects the names asked for."""

    def stand_for(**answers: list[tuple[str, ...]]) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
            asked.append(host)
            addresses = answers[host.partition(".")[0]].pop(0)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return stand_for


@pytest.fixture
def a_public_address(monkeypatch: pytest.MonkeyPatch) -> str:
    """For once, one address of this machine is one of the internet."""
    address, is_public = ip_address("127.0.0.1"), url_guard.is_public
    monkeypatch.setattr(url_guard, "is_public", lambda other: other == address or is_public(other))
    return str(address)


def test_the_payload_arrives_as_json_and_signed() -> None:
    with receiving(OK) as receiver:
        delivered = deliver(receiver.url("/hook?token=sesame"))
    assert (delivered.status, delivered.redirects) == (200, 0)
    assert 0 < delivered.seconds < LONG
    (received,) = receiver.received
    headers = received.headers
    assert received.path == "/hook?token=sesame"
    assert json.loads(received.body) == PAYLOAD
    assert headers["Host"] == f"127.0.0.1:{receiver.port}"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("hakiri-dagster/")
    assert headers["Idempotency-Key"] == "run-1/shop/orders"
    assert abs(int(headers["X-Hakiri-Timestamp"]) - time.time()) < 60
    assert verify(SECRET, headers["X-Hakiri-Timestamp"], received.body, headers["X-Hakiri-Signature"])
    assert SECRET not in str(headers)


def test_without_a_secret_nothing_is_signed() -> None:
    with receiving(OK) as receiver:
        deliver(receiver.url(), secret=None)
    assert "X-Hakiri-Signature" not in receiver.received[0].headers


def test_an_empty_secret_is_none_and_nothing_is_sent() -> None:
    with receiving(OK) as receiver, pytest.raises(UsageError, match="is empty"):
        deliver(receiver.url(), secret="")
    assert receiver.received == []


def test_a_key_with_any_letters_is_a_header_all_the_same() -> None:
    with receiving(OK) as receiver:
        deliver(receiver.url(), key="tür\r\nX-Other: 1")
    assert receiver.received[0].headers["Idempotency-Key"] == "t%C3%BCr%0D%0AX-Other:%201"


def test_what_the_environment_says_of_proxies_and_passwords_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password sesame\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with receiving(answer(500)) as proxy, receiving(OK) as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
            monkeypatch.setenv(name.upper(), proxy.url(""))
        deliver(receiver.url())
    assert proxy.received == []
    assert "Authorization" not in receiver.received[0].headers


def test_loopback_needs_the_word_of_the_operator() -> None:
    with receiving(OK) as receiver, pytest.raises(UnsafeUrl):
        deliver(receiver.url(), allow_loopback=False)
    assert receiver.received == []


# TLS


def test_the_certificate_and_its_choice_go_by_the_name_not_by_the_address(authority: Authority) -> None:
    tls, asked_for = authority.server("localhost"), []
    tls.sni_callback = lambda _socket, name, _context: asked_for.append(name)
    with receiving(OK, name="localhost", tls=tls) as receiver:
        assert deliver(receiver.url(), authorities=authority.certificate).status == 200
    assert asked_for == ["localhost"]
    assert receiver.received[0].headers["Host"] == f"localhost:{receiver.port}"


@pytest.mark.parametrize(
    ("name", "host"),
    [("elsewhere.example", "localhost"), ("127.0.0.1", "localhost"), ("localhost", "127.0.0.1")],
)
def test_a_certificate_for_another_name_is_refused(authority: Authority, name: str, host: str) -> None:
    with (
        receiving(OK, name=host, tls=authority.server(name)) as receiver,
        pytest.raises(WebhookRefused, match="mismatch") as refused,
    ):
        deliver(receiver.url("/sesame"), authorities=authority.certificate)
    assert refused.value.kind == "permanent"
    assert refused.value.where == f"https://{host}:{receiver.port}"
    assert receiver.received == []


def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    with (
        receiving(OK, name="localhost", tls=authority.server("localhost", expired=True)) as receiver,
        pytest.raises(WebhookRefused, match="expired"),
    ):
        deliver(receiver.url(), authorities=authority.certificate)
    assert receiver.received == []


def test_a_certificate_of_an_authority_that_nobody_trusts_is_refused(authority: Authority) -> None:
    with (
        receiving(OK, name="localhost", tls=authority.server("localhost")) as receiver,
        pytest.raises(WebhookRefused, match="issuer"),
    ):
        deliver(receiver.url())
    assert receiver.received == []


def test_a_self_signed_certificate_is_refused(authority: Authority) -> None:
    with (
        receiving(OK, name="localhost", tls=authority.self_signed()) as receiver,
        pytest.raises(WebhookRefused, match="self-signed"),
    ):
        deliver(receiver.url())
    assert receiver.received == []


def test_a_server_that_speaks_no_tls_may_on_the_next_try() -> None:
    with receiving(OK) as receiver, pytest.raises(WebhookUnavailable, match="broke off"):
        deliver(receiver.url().replace("http:", "https:"), limits=Limits(seconds=LONG))


# Addresses


def test_a_name_is_asked_for_once_and_its_first_answer_is_connected_to(names: Callable[..., list[str]]) -> None:
    with receiving(OK, name="localhost") as receiver, receiving(OK, address="127.0.0.9") as other:
        asked = names(localhost=[("127.0.0.1",), ("127.0.0.9",), ("10.0.0.1",)])
        deliver(receiver.url())
    assert asked == ["localhost"]
    assert len(receiver.received) == 1
    assert other.received == []


def test_where_one_address_is_dead_the_next_one_is_tried(names: Callable[..., list[str]]) -> None:
    with receiving(OK, name="localhost") as receiver:
        names(localhost=[("127.0.0.9", "127.0.0.1")])
        deliver(receiver.url())
    assert len(receiver.received) == 1


def test_an_address_that_swallows_connections_gets_its_share_of_the_time_only(
    names: Callable[..., list[str]], full_port: Callable[[str, int], None]
) -> None:
    with receiving(OK, name="localhost") as receiver:
        full_port("127.0.0.9", receiver.port)
        names(localhost=[("127.0.0.9", "127.0.0.1")])
        delivered = deliver(receiver.url(), limits=Limits(connect_seconds=0.1))
    assert delivered.seconds < LONG
    assert len(receiver.received) == 1


def test_all_the_addresses_together_get_no_more_than_the_whole_time(
    names: Callable[..., list[str]], full_port: Callable[[str, int], None]
) -> None:
    addresses = tuple(f"127.0.0.{last}" for last in range(10, 20))
    with receiving(OK, name="localhost") as receiver:
        for address in addresses:
            full_port(address, receiver.port)
        names(localhost=[addresses])
        start = time.monotonic()
        with pytest.raises(WebhookUnavailable, match="in time"):
            deliver(receiver.url(), limits=Limits(seconds=0.3, connect_seconds=0.25))
    assert time.monotonic() - start < 1.5


def test_where_nobody_listens_somebody_may_on_the_next_try(names: Callable[..., list[str]]) -> None:
    with receiving(OK, name="localhost") as receiver:
        names(localhost=[("127.0.0.9", "127.0.0.8")])
        with pytest.raises(WebhookUnavailable, match="refused") as failed:
            deliver(receiver.url())
    assert failed.value.kind == "transient"


def test_an_ipv6_address_is_connected_to_and_named_in_brackets() -> None:
    with receiving(OK, name="[::1]", address="::1") as receiver:
        deliver(receiver.url())
    assert receiver.received[0].headers["Host"] == f"[::1]:{receiver.port}"


def test_a_certificate_may_name_an_ipv6_address(authority: Authority) -> None:
    with receiving(OK, name="[::1]", address="::1", tls=authority.server("::1")) as receiver:
        assert deliver(receiver.url(), authorities=authority.certificate).status == 200


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [over.wait(LONG)][:0])
    start = time.monotonic()
    try:
        with pytest.raises(WebhookUnavailable, match="not resolved in time") as failed:
            deliver("https://hooks.example.com/sesame", limits=SHORT)
    finally:
        over.set()
    assert failed.value.where == "https://hooks.example.com"
    assert time.monotonic() - start < LONG


def test_a_name_of_a_private_address_is_refused(names: Callable[..., list[str]]) -> None:
    names(hooks=[("10.0.0.1",)])
    with pytest.raises(UnsafeUrl, match="not for everybody"):
        deliver("https://hooks.example.com/")


@pytest.fixture
def full_port() -> Iterator[Callable[[str, int], None]]:
    """A port whose queue of connections is full: the next one waits for an answer in vain."""
    opened: list[socket.socket] = []

    def fill(address: str, port: int) -> None:
        listener = socket.socket()
        opened.append(listener)
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(3):
            waiting = socket.socket()
            opened.append(waiting)
            waiting.setblocking(False)
            waiting.connect_ex((address, port))

    yield fill
    for each in opened:
        each.close()


# Redirects


def onward(status: int = 307) -> Respond:
    """From /4 to /3 and so on, until /0 takes it."""

    def respond(asked: Asked) -> None:
        left = int(asked.path.removeprefix("/"))
        again = answer(status, f"Location: /{left - 1}#part", "Set-Cookie: a=b")
        (again if left else OK)(asked)

    return respond


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_gets_the_same_post(status: int) -> None:
    with receiving(onward(status)) as receiver:
        delivered = deliver(receiver.url("/3"))
    assert (delivered.status, delivered.redirects) == (200, 3)
    assert [received.path for received in receiver.received] == ["/3", "/2", "/1", "/0"]
    assert len({received.body for received in receiver.received}) == 1
    assert len({str(received.headers) for received in receiver.received}) == 1
    assert "Cookie" not in receiver.received[1].headers


def test_a_fourth_redirect_is_refused() -> None:
    with receiving(onward()) as receiver, pytest.raises(WebhookRefused, match="more than 3 times"):
        deliver(receiver.url("/4"))
    assert len(receiver.received) == 4


def test_a_loop_of_redirects_ends() -> None:
    with receiving(answer(308, "Location: /hook")) as receiver, pytest.raises(WebhookRefused, match="more than 3"):
        deliver(receiver.url())


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305])
def test_a_redirect_that_makes_a_get_of_a_post_is_refused(status: int) -> None:
    with (
        receiving(answer(status, "Location: /0")) as receiver,
        pytest.raises(WebhookRefused, match=f"answered {status}"),
    ):
        deliver(receiver.url())
    assert len(receiver.received) == 1


def test_a_redirect_to_nowhere_is_refused() -> None:
    with receiving(answer(307)) as receiver, pytest.raises(WebhookRefused, match="where to"):
        deliver(receiver.url())


@pytest.mark.parametrize(
    "location",
    [
        "https://10.0.0.1/sesame",
        "https://169.254.169.254/latest/meta-data?sesame",
        "http://169.254.169.254/sesame",
        "https://[::ffff:10.0.0.1]/sesame",
        "https://2130706433/sesame",
        "//10.0.0.1/sesame",
        "http://example.com/sesame",
        "file:///sesame",
        "gopher://127.0.0.1:6379/_sesame",
        "https://someone:sesame@example.com/",
        "https://[::1/sesame",
        "https://exämple.com/sesame",
        "\\\\10.0.0.1\\sesame",
        "ht\ttps://10.0.0.1/sesame",
    ],
)
def test_a_redirect_leads_only_where_a_url_may_lead(location: str) -> None:
    with (
        receiving(answer(307, f"Location: {location}")) as receiver,
        pytest.raises(UnsafeUrl, match="redirects elsewhere") as refused,
    ):
        deliver(receiver.url())
    assert refused.value.where == f"http://127.0.0.1:{receiver.port}"
    assert "sesame" not in str(refused.value)


def test_a_redirect_to_a_name_of_a_private_address_is_refused(names: Callable[..., list[str]]) -> None:
    with receiving(answer(307, "Location: https://inside.example.com/sesame"), name="localhost") as receiver:
        asked = names(localhost=[("127.0.0.1",)], inside=[("10.0.0.1",)])
        with pytest.raises(UnsafeUrl, match=r"elsewhere \(https://inside.example.com\).* not for everybody"):
            deliver(receiver.url())
    assert asked == ["localhost", "inside.example.com"]


@pytest.mark.parametrize("target", ["http://127.0.0.2", "https://127.0.0.2", "http://localhost", "https://localhost"])
def test_a_receiver_on_the_internet_leads_to_no_loopback_even_where_that_is_allowed(
    authority: Authority, names: Callable[..., list[str]], a_public_address: str, target: str
) -> None:
    tls = authority.server("hooks.example.com")
    with receiving(OK) as inside:
        elsewhere = answer(307, f"Location: {target}:{inside.port}/")
        with receiving(elsewhere, name="hooks.example.com", tls=tls) as receiver:
            names(hooks=[(a_public_address,)], localhost=[(a_public_address,)])
            with pytest.raises(UnsafeUrl, match="redirects elsewhere"):
                deliver(receiver.url(), authorities=authority.certificate)
    assert len(receiver.received) == 1
    assert inside.received == []


def test_what_was_asked_for_by_https_is_not_sent_in_the_clear(authority: Authority) -> None:
    with receiving(OK) as clear:
        elsewhere = answer(307, f"Location: {clear.url()}")
        with (
            receiving(elsewhere, name="localhost", tls=authority.server("localhost")) as receiver,
            pytest.raises(UnsafeUrl, match="is not https"),
        ):
            deliver(receiver.url(), authorities=authority.certificate)
    assert clear.received == []


def test_the_certificate_is_checked_after_a_redirect_too(authority: Authority) -> None:
    with (
        receiving(OK, name="localhost", tls=authority.server("elsewhere.example")) as other,
        receiving(answer(307, f"Location: {other.url()}")) as receiver,
        pytest.raises(WebhookRefused, match="mismatch"),
    ):
        deliver(receiver.url(), authorities=authority.certificate)
    assert other.received == []


# Answers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_answer_of_success_is_one(status: int) -> None:
    with receiving(answer(status)) as receiver:
        assert deliver(receiver.url()).status == status


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 413, 422, 101, 103])
def test_an_answer_that_would_not_change_is_not_asked_for_again(status: int) -> None:
    with (
        receiving(answer(status, body=b"sesame")) as receiver,
        pytest.raises(WebhookRefused, match=f"answered {status}") as refused,
    ):
        deliver(receiver.url("/sesame"))
    assert refused.value.kind == "permanent"
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 425, 429, 599])
def test_an_answer_that_may_change_is_asked_for_again(status: int) -> None:
    with receiving(answer(status)) as receiver, pytest.raises(WebhookUnavailable, match=f"answered {status}") as failed:
        deliver(receiver.url())
    assert failed.value.kind == "transient"
    assert failed.value.retry_after is None


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0, 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0, 0),
        ("Sun, 06 Nov 1994 08:49:37 -0000", 0, 0),
    ],
)
def test_a_receiver_says_when_to_try_again(retry_after: str, least: float, most: float) -> None:
    with (
        receiving(answer(429, f"Retry-After: {retry_after}")) as receiver,
        pytest.raises(WebhookUnavailable) as failed,
    ):
        deliver(receiver.url())
    assert failed.value.retry_after is not None
    assert least <= failed.value.retry_after <= most


def test_a_receiver_says_when_to_try_again_by_a_date() -> None:
    in_an_hour = formatdate(time.time() + 3600, usegmt=True)
    with (
        receiving(answer(429, f"Retry-After: {in_an_hour}")) as receiver,
        pytest.raises(WebhookUnavailable) as failed,
    ):
        deliver(receiver.url())
    assert failed.value.retry_after is not None
    assert 3000 <= failed.value.retry_after <= 3600


@pytest.mark.parametrize("retry_after", ["", "soon", "-1", "1e9", "9" * 5000, "Sun, 06 Nov 99999999999 08:49:37 GMT"])
def test_nonsense_about_when_to_try_again_is_overheard(retry_after: str) -> None:
    with receiving(answer(503, f"Retry-After: {retry_after}")) as receiver, pytest.raises(WebhookUnavailable) as failed:
        deliver(receiver.url())
    assert failed.value.retry_after is None


def raw(*pieces: bytes, again: bytes = b"", every: float = 0.01) -> Respond:
    """`again` is sent again and again, until the client hangs up or the test is over."""

    def respond(asked: Asked) -> None:
        for piece in pieces:
            asked.wfile.write(piece)
        until = time.monotonic() + LONG
        while again and time.monotonic() < until and not asked.receiver.over.wait(every):
            asked.wfile.write(again)

    return respond


def silent(asked: Asked) -> None:
    asked.receiver.over.wait(LONG)


def reset(asked: Asked) -> None:
    asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(asked.connection.detach())


GREETING = b"HTTP/1.1 200 OK\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("by_tls", [False, True])
@pytest.mark.parametrize(
    "respond",
    [
        silent,
        raw(again=b"H"),
        raw(GREETING, b"X-Slow: ", again=b"x"),
        raw(GREETING, again=b"X-Slow: x\r\n", every=0.05),
        raw(again=CONTINUE, every=0),
    ],
    ids=["silent", "drips its greeting", "drips a header", "drips headers", "says continue for ever"],
)
def test_nobody_stretches_the_time(authority: Authority, respond: Respond, by_tls: bool) -> None:
    tls = authority.server("127.0.0.1") if by_tls else None
    start = time.monotonic()
    with receiving(respond, tls=tls) as receiver, pytest.raises(WebhookUnavailable, match="in time"):
        deliver(receiver.url(), limits=SHORT, authorities=authority.certificate)
    assert time.monotonic() - start < LONG / 2


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_takes_the_connection_and_never_reads_is_given_up(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        patience = threading.Timer(LONG, listener.close)
        patience.start()
        with pytest.raises(WebhookUnavailable, match="in time"):
            deliver(url, payload={"much": "x" * 8_000_000}, limits=SHORT)
        patience.cancel()


def test_the_time_is_for_all_redirects_together() -> None:
    def respond(asked: Asked) -> None:
        asked.receiver.over.wait(0.15)
        answer(307, "Location: /hook")(asked)

    with receiving(respond) as receiver, pytest.raises(WebhookUnavailable, match="in time"):
        deliver(receiver.url(), limits=Limits(seconds=0.3))


def test_of_an_endless_answer_only_the_beginning_is_read() -> None:
    hung_up = threading.Event()

    def respond(asked: Asked) -> None:
        try:
            raw(GREETING, b"\r\n", again=b"x" * 65536, every=0)(asked)
        except OSError:
            hung_up.set()

    with receiving(respond) as receiver:
        assert deliver(receiver.url()).seconds < LONG
        assert hung_up.wait(LONG)


@pytest.mark.parametrize(
    "rest", [b"Content-Length: 99999999999\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"], ids=["long", "chunked"]
)
def test_what_was_taken_is_delivered_even_if_the_rest_of_the_answer_is_late(rest: bytes) -> None:
    with receiving(raw(GREETING, rest, again=b"1")) as receiver:
        delivered = deliver(receiver.url(), limits=Limits(seconds=0.5))
    assert delivered.status == 200
    assert delivered.seconds < LONG / 2


def test_an_answer_that_breaks_off_after_success_is_a_success() -> None:
    with receiving(raw(GREETING, b"Content-Length: 5\r\n\r\nab")) as receiver:
        assert deliver(receiver.url()).status == 200


@pytest.mark.parametrize(
    ("respond", "said"),
    [
        (reset, "broke off"),
        (raw(), "broke off"),
        (raw(b"sesame\r\n\r\n"), "not answer in HTTP"),
        (raw(b"HTTP/1.1 sesame\r\n\r\n"), "not answer in HTTP"),
        (raw(b"HTTP/9.9 200 sesame\r\n\r\n"), "not answer in HTTP"),
        (raw(GREETING, b"X: " + b"sesame" * 20_000), "not answer in HTTP"),
        (raw(GREETING, b"X: sesame\r\n" * 200, b"\r\n"), "not answer in HTTP"),
    ],
    ids=["reset", "hung up", "no greeting", "no status", "no version", "long header", "many headers"],
)
def test_what_a_receiver_stammers_is_not_repeated(
    respond: Respond, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with receiving(respond) as receiver, pytest.raises(WebhookUnavailable, match=said) as failed:
        deliver(receiver.url("/sesame?sesame"), payload={"sesame": "sesame"}, secret="open sesame")
    assert shown(failed.value).count("sesame") == 0
    assert "sesame" not in caplog.text


def shown(error: HakiriError) -> str:
    """As whoever logs it would see it, causes included, but without the lines of this file."""
    return "".join(line for line in traceback.format_exception(error) if not line.lstrip().startswith("File"))
