"""Where a URL of a manifest may lead: by https to an address that everybody can reach, never into a private network.

Judged twice: by its text when the manifest is read, without DNS; and by the addresses its name stands for when it is
used. Whoever connects must connect to one of those very addresses: a name may stand for another one a moment later.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from hakiri_dagster.errors import UnsafeUrl, WebhookUnavailable

Address = IPv4Address | IPv6Address

ALLOWED = "the URL of a webhook is https://, the full name of a host on the internet, in ASCII, and no user name"

# IANA's special-purpose registries, spelled out: what `is_global` says of them differs between releases of Python, and
# it takes multicast and 6to4 relays for global.
_SPECIAL_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's NAT; the metadata of Alibaba
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the platform of Azure, on an address that looks public
        "169.254.0.0/16",  # link-local; the metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; the metadata of Oracle
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_UNICAST_IPV6 = IPv6Network("2000::/3")
"""All else is loopback, unspecified, private, link-local, site-local, multicast or an IPv4 address in disguise."""

_SPECIAL_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_PRIVATE_NAMES = re.compile(
    r"(?:.*\.)?(?:localhost|localdomain|internal|local|intranet|private|corp|home|lan|home\.arpa)"
)
_ODD_CHARACTERS = frozenset(' "<>\\^`{|}')
_AUTHORITY = re.compile(r"(?:(?P<name>[^\[\]:]+)|\[(?P<ipv6>[0-9a-f.]*:[0-9a-f:.]*)\])(?::(?P<port>[1-9][0-9]{0,4}))?")
_NO_AUTHORITY = "names no host and port that there could be"
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SHOWN = re.compile(
    _SCHEME.pattern + r"(?:[^/?#@\\]*@)?(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?![^/?#])(?!.*@)",
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SafeUrl:
    """`host` is what the certificate has to name; an IPv6 address in it is without brackets. The URL and `target`, its
    path and query, often hold a token: they are not shown."""

    url: str = field(repr=False)
    host: str
    port: int
    target: str = field(repr=False)
    loopback: bool


def judge(url: str, *, allow_loopback: bool = False) -> SafeUrl:
    """By its text alone. `allow_loopback` is the operator's word, never the manifest's: then `localhost` and the
    addresses of the machine itself may be named, also by http."""
    parts = _split(url)
    host, port = _authority(parts, url)
    loopback = allow_loopback and _names_loopback(host)
    if parts.scheme != "https" and not (loopback and parts.scheme == "http"):
        raise _refusal("is not https", url)
    if not loopback:
        _refuse_private(host, url)
    return SafeUrl(url, host, port or (443 if parts.scheme == "https" else 80), _target(parts), loopback)


def resolve(safe: SafeUrl) -> tuple[Address, ...]:
    """Every address the name stands for now. A single one that it must not stand for condemns the name."""
    try:
        found = socket.getaddrinfo(safe.host, safe.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise WebhookUnavailable(
            f"the host cannot be resolved: {error.strerror or error}", where=_shown(safe.url)
        ) from error
    addresses = tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))
    if not addresses:
        raise WebhookUnavailable("the host has no address", where=_shown(safe.url))
    is_right = _is_loopback if safe.loopback else is_public
    if not all(map(is_right, addresses)):
        raise _refusal("leads to an address that is not for everybody", safe.url)
    return addresses


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    return address in _UNICAST_IPV6 and not any(address in network for network in _SPECIAL_IPV6)


def _split(url: str) -> SplitResult:
    # Before anything else: urlsplit drops tabs, line feeds and what stands before the scheme.
    if not url.isascii() or not url.isprintable() or not _ODD_CHARACTERS.isdisjoint(url):
        raise _refusal("holds characters that no URL holds", url)
    if "#" in url:
        raise _refusal("holds a fragment, which is never sent", url)
    try:
        return urlsplit(url)
    except ValueError:
        raise _refusal(_NO_AUTHORITY, url) from None


def _authority(parts: SplitResult, url: str) -> tuple[str, int | None]:
    if "@" in parts.netloc:
        raise _refusal("holds a user name or password, and a webhook sends none: it is signed with its `secret`", url)
    authority = _AUTHORITY.fullmatch(parts.netloc.lower())
    if authority is None:
        raise _refusal(_NO_AUTHORITY, url)
    port = int(authority["port"]) if authority["port"] else None
    if port is not None and port > 65535:
        raise _refusal(_NO_AUTHORITY, url)
    return authority["name"] or authority["ipv6"], port


def _refuse_private(host: str, url: str) -> None:
    address = _literal(host, url)
    if address is not None:
        if not is_public(address):
            raise _refusal("leads to an address that is not for everybody", url)
        return
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise _refusal("names no host that there could be", url)
    if len(labels) == 1 or _PRIVATE_NAMES.fullmatch(host):
        # A name without a dot is looked up in the domains of the network that this machine happens to be in.
        raise _refusal("names a host of a private network", url)


def _literal(host: str, url: str) -> Address | None:
    """None for a name. What ends in a number is an address to the C library, be it decimal, octal, hexadecimal or cut
    short; here only what it is in its plain form."""
    try:
        return ip_address(host)
    except ValueError:
        if _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
            raise _refusal("writes an address in an odd way", url) from None
        return None


def _names_loopback(host: str) -> bool:
    try:
        return _is_loopback(ip_address(host))
    except ValueError:
        return host == "localhost"


def _is_loopback(address: Address) -> bool:
    """`is_loopback` has changed its mind about IPv4 addresses in IPv6 ones."""
    return address == IPv6Address("::1") or (isinstance(address, IPv4Address) and address.is_loopback)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _refusal(what: str, url: str) -> UnsafeUrl:
    return UnsafeUrl(f"the URL {what}", where=_shown(url), hint=ALLOWED)


def _shown(url: str) -> str | None:
    """Scheme and host. Where there is a stray @, what looks like a host may be a piece of a password."""
    scheme, shown = _SCHEME.match(url), _SHOWN.match(url)
    if scheme is None:
        return None
    return scheme[0] + (shown["host"] if shown else "…")
