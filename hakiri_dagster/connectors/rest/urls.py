"""URLs of an API: how they are made, which of them are followed, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit, urlunsplit

from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.errors import SourceError, UnsafeUrl
from hakiri_dagster.manifest.api_urls import judged
from hakiri_dagster.security.pinned_connection import origin
from hakiri_dagster.security.secrets import MASK, redact
from hakiri_dagster.security.url_guard import SafeUrl

_LIKE_A_SECRET = re.compile(
    r"(?:^|[_.-])(?:access_?token|api_?key|app_?key|auth|authorization|client_?secret|credential|key|passw(?:or)?d|"
    r"private_?token|secret|sig|signature|token)$",
    re.IGNORECASE,
)
_LONGEST_SHOWN = 300


def with_params(url: str, params: Iterable[tuple[str, str]]) -> str:
    """What the URL says of these already, it says no more. What it says of others stays as it is written."""
    added = list(params)
    if not added:
        return url
    names = {name for name, _ in added}
    parts = urlsplit(url)
    kept = [piece for piece in parts.query.split("&") if piece and not _names(piece) & names]
    return urlunsplit(parts._replace(query="&".join([*kept, urlencode(added)])))


def without_params(url: str, names: Collection[str]) -> str:
    parts = urlsplit(url)
    kept = [piece for piece in parts.query.split("&") if piece and not _names(piece) & set(names)]
    return urlunsplit(parts._replace(query="&".join(kept)))


def params_of(url: str) -> Pairs:
    return tuple(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def values_by_name(params: Pairs) -> Mapping[str, Sequence[str]]:
    """Of which several may have one name."""
    found: dict[str, list[str]] = {}
    for name, value in params:
        found.setdefault(name, []).append(value)
    return found


def _names(piece: str) -> set[str]:
    return {name for name, _ in parse_qsl(piece, keep_blank_values=True)}


def next_of(base: SafeUrl, at: SafeUrl, link: str, *, what: str) -> SafeUrl:
    """Where a link of an answer leads. To the API itself only: what is asked there carries its credentials."""
    try:
        target = urldefrag(urljoin(at.url, link.strip())).url
        to = judged(target, allow_loopback=base.loopback)
    except (ValueError, UnsafeUrl) as error:
        reason = error.what if isinstance(error, UnsafeUrl) else "it is no URL"
        raise SourceError(f"GET {shown(at.url)}: {what} is not followed: {reason}", hint=_STAYS) from None
    if origin(to) != origin(base):
        raise SourceError(
            f"GET {shown(at.url)}: {what} leads to {origin(to)}, away from {origin(base)}, and is not followed",
            hint=_STAYS,
        )
    return to


_STAYS = "credentials are sent to `base_url` only; if the API has moved, write its new address there"


def shown(url: str, secret_params: Collection[str] = ()) -> str:
    """Without what may be a secret, and not too long for a line."""
    parts = urlsplit(url)
    query = "&".join(
        f"{name}={MASK if name in secret_params or _LIKE_A_SECRET.search(name) else value}"
        for name, value in params_of(url)
    )
    host = parts.netloc.rpartition("@")[2]
    text = f"{parts.scheme}://{host}{parts.path}" + (f"?{query}" if query else "")
    return one_line(text, _LONGEST_SHOWN)


def one_line(text: str, at_most: int) -> str:
    """Without secrets: cut, one would not be known any more."""
    plain = "".join(character if character.isprintable() else " " for character in redact(text))
    plain = " ".join(plain.split())
    return plain if len(plain) <= at_most else f"{plain[:at_most]}…"
