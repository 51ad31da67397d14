"""Where a REST API may be, and where below it a table is."""

from __future__ import annotations

from hakiri_dagster.errors import UnsafeUrl
from hakiri_dagster.security.url_guard import SafeUrl, judge

ALLOWED = (
    "the URL of an API is https://, the full name of a host on the internet, in ASCII, and no user name; "
    "HAKIRI_WEBHOOKS_TO_LOOPBACK=true allows those of this machine as well"
)


def judged(url: str, *, allow_loopback: bool) -> SafeUrl:
    try:
        return judge(url, allow_loopback=allow_loopback)
    except UnsafeUrl as error:
        raise UnsafeUrl(error.what, where=error.where, hint=ALLOWED) from None


def joined(base_url: str, path: str) -> str:
    """A path goes below the base, also when it begins with a slash."""
    return f"{base_url.rstrip('/')}/{path.lstrip('/')}" if path.strip("/") else base_url
