"""Which URLs are queues of Amazon SQS.

Only hosts of Amazon's own domains: what their names stand for is Amazon's to say, an address in somebody's private
network included (VPC endpoints). So a manifest leads nobody to another host, and nothing has to be pinned.
"""

from __future__ import annotations

import re

from hakiri_dagster.errors import UnsafeUrl
from hakiri_dagster.security.url_guard import SafeUrl, judge

ALLOWED = "write it as Amazon shows it, like https://sqs.eu-central-1.amazonaws.com/123456789012/orders"

_AMAZON = re.compile(
    r"(?:[a-z0-9-]+\.)*?sqs\.(?P<region>[a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?"
    r"|(?P<legacy>[a-z0-9-]+)\.queue\.amazonaws\.com(?:\.cn)?"
)


def judged_queue_url(url: str, *, allow_loopback: bool) -> SafeUrl:
    try:
        safe = judge(url, allow_loopback=allow_loopback)
    except UnsafeUrl as error:
        raise UnsafeUrl(error.what, where=error.where, hint=ALLOWED) from None
    if not safe.loopback and _AMAZON.fullmatch(safe.host) is None:
        raise UnsafeUrl("the URL names a host that is not Amazon's SQS", hint=ALLOWED)
    if "?" in safe.target or not safe.target.strip("/"):
        raise UnsafeUrl("the URL names no queue", hint=ALLOWED)
    return safe


def region_of(url: str) -> str | None:
    host = re.match(r"https?://([^/:?#]+)", url)
    found = None if host is None else _AMAZON.fullmatch(host[1].lower())
    return None if found is None else found["region"] or found["legacy"]
