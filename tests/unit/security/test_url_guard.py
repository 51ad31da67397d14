from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.errors import UnsafeUrl, WebhookUnavailable
from hakiri_dagster.security.url_guard import SafeUrl, is_public, judge, resolve

HOSTILE: dict[str, tuple[str, ...]] = {
    "is not https": (
        "http://example.com/hook",
        "http://127.0.0.1/",
        "ftp://example.com/",
        "gopher://example.com/_x",
        "ws://example.com/",
        "httpss://example.com/",
        "//example.com/hook",
    ),
    "names no host and port": (
        "",
        "https://",
        "https:///hook",
        "https:/example.com/",
        "https:example.com",
        "example.com/hook",
        "file:///etc/passwd",
        "data:text/plain,x",
        "javascript:alert(1)",
        "https://?x=1",
        "https://:443/",
        "https://example.com:0/",
        "https://example.com:00443/",
        "https://example.com:65536/",
        "https://example.com:4294967739/",
        "https://example.com:-1/",
        "https://example.com:+443/",
        "https://example.com:https/",
        "https://example.com:443:80/",
        "https://example.com:/",
        "https://::1/",
        "https://[2606:4700:4700::1111%25eth0]/",
        "https://[v1.fe80]/",
        "https://[example.com]/",
    ),
    # Newer releases of Python refuse these as they split the URL.
    "names no host": (
        "https://[::1/",
        "https://::1]/",
        "https://[8.8.8.8]/",
        "https://[127.0.0.1:80]/",
        "https://[:::]/",
        "https://[1:2:3:4:5:6:7:8:9]/",
    ),
    "holds a user name or password": (
        "https://user:secret@example.com/",
        "https://@example.com/",
        "https://example.com@127.0.0.1/",
        "https://example.com:443@127.0.0.1/",
        "https://a@b@example.com/",
    ),
    "holds a fragment": ("https://example.com/hook#", "https://example.com#@127.0.0.1/"),
    "holds characters that no URL holds": (
        " https://example.com/",
        "\x01https://example.com/",
        "https://example.com/\r\nHost: internal",
        "https://exam\tple.com/",
        "https://127.0.0.1\0.example.com/",
        "https://example.com /",
        "https://example.com\\@127.0.0.1/",
        "https:\\\\127.0.0.1\\",
        "https://example.com/{secret}",
        'https://example.com/"',
        "https://example.com/<x>",
        "https://example.com/|x",
        "https://exаmple.com/",  # noqa: RUF001
        "https://münchen.de/",
        "https://１２７.０.０.１/",  # noqa: RUF001
        "https://ⓛocalhost/",
        "https://127。0。0。1/",
        "https://example.com/ß",
        "https://exam\u200bple.com/",
        "https://exam\u00adple.com/",
    ),
    "leads to an address that is not for everybody": (
        "https://0.0.0.0/",
        "https://0.1.2.3/",
        "https://10.0.0.1/",
        "https://100.64.0.1/",
        "https://100.100.100.200/latest/meta-data/",
        "https://127.0.0.1/",
        "https://127.8.8.8:8443/",
        "https://168.63.129.16/metadata",
        "https://169.254.169.254/latest/meta-data/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.0.0.192/",
        "https://192.0.2.1/",
        "https://192.88.99.1/",
        "https://192.168.1.1/",
        "https://198.18.0.1/",
        "https://198.19.255.255/",
        "https://198.51.100.7/",
        "https://203.0.113.7/",
        "https://224.0.0.1/",
        "https://239.255.255.250/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::]/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:8.8.8.8]/",
        "https://[::ffff:0:127.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[64:ff9b:1::1]/",
        "https://[100::1]/",
        "https://[2001::1]/",
        "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "https://[2001:2::1]/",
        "https://[2001:db8::1]/",
        "https://[2002:7f00:1::]/",
        "https://[3fff::1]/",
        "https://[4000::1]/",
        "https://[5f00::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[fec0::1]/",
        "https://[ff02::1]/",
    ),
    "writes an address in an odd way": (
        "https://2130706433/",
        "https://127.1/",
        "https://127.0.1/",
        "https://0/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.0.0.01/",
        "https://0x7f000001/",
        "https://0x7F.0x0.0x0.0x1/",
        "https://0x7f.1/",
        "https://127.0.0.0x1/",
        "https://127.0.0.1./",
        "https://8.8.8.8./",
        "https://1.2.3.4.5/",
        "https://256.256.256.256/",
        "https://8.8.8/",
        "https://example.0x/",
    ),
    "names a host of a private network": (
        "https://localhost/",
        "https://LocalHost:8443/",
        "https://app.localhost/",
        "https://localhost.localdomain/",
        "https://db.localdomain/",
        "https://metadata.google.internal/computeMetadata/v1/",
        "https://printer.local/",
        "https://kubernetes.default.svc.cluster.local/",
        "https://router.lan/",
        "https://nas.home.arpa/",
        "https://wiki.corp/",
        "https://kubernetes/",
        "https://metadata/",
    ),
    "names no host that there could be": (
        "https://localhost./",
        "https://metadata.google.internal./",
        "https://example..com/",
        "https://.example.com/",
        "https://example.com./",
        "https://-example.com/",
        "https://example-.com/",
        "https://127%2e0%2e0%2e1/",
        "https://example.com%00.evil.com/",
        "https://example.com,127.0.0.1.evil.com/",
        "https://exa$mple.com/",
        f"https://{'a' * 64}.com/",
        f"https://{'a.' * 127}com/",
    ),
}

GOOD = (
    ("https://example.com", "example.com", 443, "/"),
    ("https://example.com/", "example.com", 443, "/"),
    ("HTTPS://Example.COM/Hook", "example.com", 443, "/Hook"),
    (
        "https://hooks.example.com/services/T0/B0/abc?x=1&y=%20",
        "hooks.example.com",
        443,
        "/services/T0/B0/abc?x=1&y=%20",
    ),
    ("https://example.com:8443/a;b=c,d", "example.com", 8443, "/a;b=c,d"),
    ("https://example.com:1", "example.com", 1, "/"),
    ("https://example.com:65535/", "example.com", 65535, "/"),
    ("https://example.com?x=1", "example.com", 443, "/?x=1"),
    ("https://example.com/users/@me?mail=a@example.org", "example.com", 443, "/users/@me?mail=a@example.org"),
    ("https://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de", 443, "/"),
    ("https://my_bucket.s3.example.com/", "my_bucket.s3.example.com", 443, "/"),
    ("https://1and1.com/", "1and1.com", 443, "/"),
    ("https://127.example.com/", "127.example.com", 443, "/"),
    ("https://internal.example.com/", "internal.example.com", 443, "/"),
    ("https://localhost.example.com/", "localhost.example.com", 443, "/"),
    ("https://notlocalhost.com.xn--p1ai/", "notlocalhost.com.xn--p1ai", 443, "/"),
    ("https://thelocal.se/", "thelocal.se", 443, "/"),
    ("https://example.mylan/", "example.mylan", 443, "/"),
    ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
    ("https://172.32.0.1/", "172.32.0.1", 443, "/"),
    ("https://[2606:4700:4700::1111]:8443/x", "2606:4700:4700::1111", 8443, "/x"),
    ("https://[2A00:1450:4001:81B::200E]/", "2a00:1450:4001:81b::200e", 443, "/"),
    ("https://example.com/a//b/../c", "example.com", 443, "/a//b/../c"),
)


@pytest.mark.parametrize(("reason", "url"), [(reason, url) for reason, urls in HOSTILE.items() for url in urls])
def test_a_hostile_url_is_refused_for_what_is_wrong_with_it(reason: str, url: str) -> None:
    with pytest.raises(UnsafeUrl, match=reason) as refused:
        judge(url)
    assert refused.value.kind == "permanent"
    assert "https://" in str(refused.value.hint)


@pytest.mark.parametrize(("url", "host", "port", "target"), GOOD)
def test_a_url_of_the_internet_is_allowed(url: str, host: str, port: int, target: str) -> None:
    assert judge(url) == SafeUrl(url, host, port, target, loopback=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://sesame:sesame@example.com/sesame?sesame#sesame",
        "http://example.com/sesame?token=sesame",
        "https://user:sesame/sesame@example.com/",
        "https://user:x@sesame@example.com/",
        "https://user:sesame?x@example.com/",
        "https://user:1/sesame@example.com",
        "https://sesame/1@example.com/",
        "https://10.0.0.1/sesame",
        "https://[sesame",
        "https://example.com:sesame/",
        "https://user:sesame\\@example.com/",
        "https://user:ses\names@example.com/",
        "sesame",
        "sesame:sesame@example.com",
    ],
)
def test_a_refusal_shows_scheme_and_host_and_no_secret(url: str) -> None:
    with pytest.raises(UnsafeUrl) as refused:
        judge(url)
    assert "ses" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@example.com/", "https://example.com"),
        ("http://example.com:80/hook?token=x", "http://example.com"),
        ("https://[fe80::1]:80/", "https://[fe80::1]"),
        ("https://user:pa/ss@example.com/", "https://…"),
        ("https://exa$mple.com/", "https://…"),
        ("example.com", None),
    ],
)
def test_a_refusal_says_where_it_would_have_led(url: str, shown: str | None) -> None:
    with pytest.raises(UnsafeUrl) as refused:
        judge(url)
    assert refused.value.where == shown


def test_an_allowed_url_shows_no_secret_either() -> None:
    assert "sesame" not in repr(judge("https://example.com/sesame?token=sesame"))


LOOPBACK = (
    "http://localhost:8080/hook",
    "https://localhost/",
    "http://127.0.0.1/",
    "http://127.0.0.2:9/",
    "http://[::1]:8080/",
)


@pytest.mark.parametrize("url", LOOPBACK)
def test_the_operator_may_allow_the_machine_itself(url: str) -> None:
    assert judge(url, allow_loopback=True).loopback
    with pytest.raises(UnsafeUrl):
        judge(url)


def test_a_port_that_is_not_written_is_the_one_of_the_scheme() -> None:
    assert judge("http://localhost/", allow_loopback=True).port == 80
    assert judge("https://localhost/", allow_loopback=True).port == 443


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://localhost/",
        "https://10.0.0.1/",
        "https://0.0.0.0/",
        "http://2130706433/",
        "http://127.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://app.localhost/",
        "http://user@localhost/",
        "http://localhost./",
    ],
)
def test_to_allow_the_machine_itself_allows_nothing_else(url: str) -> None:
    with pytest.raises(UnsafeUrl):
        judge(url, allow_loopback=True)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Says what addresses every name stands for; the answer collects the names that were asked for."""

    def stand_for(*addresses: str) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
            asked.append(host)
            return [
                (socket.AF_INET6, 1, 6, "", (address, port, 0, 0))
                if ":" in address
                else (socket.AF_INET, 1, 6, "", (address, port))
                for address in addresses
            ]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return stand_for


def test_a_name_is_resolved_once_to_each_of_its_addresses_once(names: Callable[..., list[str]]) -> None:
    asked = names("8.8.8.8", "2606:4700::1111", "8.8.8.8")
    assert resolve(judge("https://example.com/")) == (ip_address("8.8.8.8"), ip_address("2606:4700::1111"))
    assert asked == ["example.com"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "64:ff9b::7f00:1",
        "0.0.0.0",
    ],
)
def test_one_private_address_among_public_ones_condemns_the_name(names: Callable[..., list[str]], address: str) -> None:
    names("8.8.8.8", address)
    with pytest.raises(UnsafeUrl, match="not for everybody") as refused:
        resolve(judge("https://127.0.0.1.nip.io/sesame?sesame"))
    assert refused.value.where == "https://127.0.0.1.nip.io"
    assert "sesame" not in str(refused.value)


def test_to_judge_a_url_asks_no_name_server(names: Callable[..., list[str]]) -> None:
    asked = names("8.8.8.8")
    judge("https://example.com/")
    assert asked == []


def test_a_name_that_nobody_knows_may_be_known_on_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(WebhookUnavailable, match="Temporary failure") as failed:
        resolve(judge("https://example.com/sesame"))
    assert failed.value.kind == "transient"
    assert failed.value.where == "https://example.com"


def test_a_name_without_an_address_leads_nowhere(names: Callable[..., list[str]]) -> None:
    names()
    with pytest.raises(WebhookUnavailable, match="no address"):
        resolve(judge("https://example.com/"))


def test_localhost_stands_for_the_machine_itself_and_nothing_else(names: Callable[..., list[str]]) -> None:
    safe = judge("http://localhost/", allow_loopback=True)
    names("127.0.0.1", "::1")
    assert resolve(safe) == (ip_address("127.0.0.1"), ip_address("::1"))
    for elsewhere in ("10.0.0.1", "8.8.8.8", "::ffff:127.0.0.1"):
        names("127.0.0.1", elsewhere)
        with pytest.raises(UnsafeUrl):
            resolve(safe)


def test_another_name_never_stands_for_the_machine_itself(names: Callable[..., list[str]]) -> None:
    names("127.0.0.1")
    with pytest.raises(UnsafeUrl):
        resolve(judge("https://example.com/", allow_loopback=True))


def test_an_address_stands_for_itself_without_any_name_server() -> None:
    assert resolve(judge("https://8.8.8.8/")) == (ip_address("8.8.8.8"),)


@given(st.ip_addresses(v=4))
def test_what_python_takes_for_private_is_never_public(address: object) -> None:
    parsed = ip_address(str(address))
    assert not (is_public(parsed) and (not parsed.is_global or parsed.is_multicast))


PIECES = ["https://", "http://", "example.com", "127.0.0.1", "localhost", "[::1]", "@", ":", "443", "/", "\\", "?", "#"]
PIECES += [".", "%00", "0x7f", "[", "]", "::", "1", "-", "xn--", "\t", "。", "a"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=20).map("https://".__add__))
def test_whatever_is_allowed_is_https_to_a_public_host(url: str) -> None:
    try:
        safe = judge(url)
    except UnsafeUrl:
        return
    assert url.lower().startswith("https://")
    assert safe.host in url.lower()
    assert 0 < safe.port < 65536
    assert "." in safe.host or is_public(ip_address(safe.host))
    assert safe.target.startswith("/")
