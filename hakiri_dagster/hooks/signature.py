"""How the receiver of a webhook knows that it comes from here, and that nobody changed it on the way.

It shares a secret with us, and with every POST computes the HMAC-SHA256, keyed with the secret, of the value of
`X-Hakiri-Timestamp`, a full stop, and the body, byte by byte as it came, before any JSON is read. `sha256=` and that
in hexadecimal has to be `X-Hakiri-Signature`, compared in constant time. It then drops what is older than a few minutes
by the timestamp (seconds since 1970), and what it has already seen by its `Idempotency-Key`: a POST of which the answer
was lost is sent again.
"""

from __future__ import annotations

import hmac

from hakiri_dagster.errors import UsageError

TIMESTAMP = "X-Hakiri-Timestamp"
SIGNATURE = "X-Hakiri-Signature"


def sign(secret: str, timestamp: str, body: bytes) -> str:
    if not secret:
        raise UsageError(
            "the secret that signs a webhook is empty, so anybody could sign like this",
            hint="give it a value, or none at all to send without a signature",
        )
    return "sha256=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def verify(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), signature.encode())
