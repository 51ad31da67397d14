from __future__ import annotations

import pytest

from hakiri_dagster.security.pinned_connection import authority
from hakiri_dagster.security.url_guard import judge


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/hook", "example.com"),
        ("HTTPS://Example.com:443/hook", "example.com"),
        ("https://example.com:8443/hook", "example.com:8443"),
        ("https://example.com:80/hook", "example.com:80"),
        ("https://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]"),
        ("https://[2606:4700:4700::1111]:8443/", "[2606:4700:4700::1111]:8443"),
        ("http://localhost:80/", "localhost"),
        ("http://localhost:443/", "localhost:443"),
    ],
)
def test_a_host_is_named_with_its_port_unless_that_goes_without_saying(url: str, expected: str) -> None:
    assert authority(judge(url, allow_loopback=True)) == expected
