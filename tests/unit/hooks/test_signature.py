from __future__ import annotations

import pytest

from hakiri_dagster.errors import UsageError
from hakiri_dagster.hooks.signature import sign, verify

# printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
SIGNED = "sha256=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686"


def test_a_receiver_computes_the_signature_with_any_tool() -> None:
    assert sign("secret", "1700000000", b'{"a":1}') == SIGNED


def test_the_signature_of_what_was_sent_is_right() -> None:
    assert verify("secret", "1700000000", b'{"a":1}', SIGNED)


@pytest.mark.parametrize(
    ("secret", "timestamp", "body", "signature"),
    [
        ("Secret", "1700000000", b'{"a":1}', SIGNED),
        ("secret", "1700000001", b'{"a":1}', SIGNED),
        ("secret", "1700000000", b'{"a":2}', SIGNED),
        ("secret", "1700000000", b'{"a":1}', SIGNED.removeprefix("sha256=")),
        ("secret", "1700000000", b'{"a":1}', SIGNED[:-1]),
        ("secret", "1700000000", b'{"a":1}', ""),
        ("secret", "1700000000", b'{"a":1}', "sha256=ä"),
    ],
)
def test_any_other_secret_time_body_or_signature_is_wrong(
    secret: str, timestamp: str, body: bytes, signature: str
) -> None:
    assert not verify(secret, timestamp, body, signature)


def test_an_empty_secret_neither_signs_nor_verifies() -> None:
    with pytest.raises(UsageError, match="is empty"):
        sign("", "1700000000", b"")
    with pytest.raises(UsageError, match="is empty"):
        verify("", "1700000000", b"", "sha256=")
