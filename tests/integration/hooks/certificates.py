"""A throw-away certificate authority."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import trustme

_BEGINNING = datetime(2020, 1, 1, tzinfo=UTC)
_LONG_AGO = datetime(2020, 1, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Authority:
    certificate: Path
    _issuer: trustme.CA = field(default_factory=trustme.CA)

    def server(self, *names: str, expired: bool = False) -> ssl.SSLContext:
        """What a server of these names and addresses shows."""
        end = _LONG_AGO if expired else None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._issuer.issue_cert(*names, not_before=_BEGINNING, not_after=end).configure_cert(context)
        return context

    def self_signed(self) -> ssl.SSLContext:
        """The authority's own certificate, as if it were a server's."""
        chain = self.certificate.with_name("self-signed.pem")
        chain.write_bytes(self._issuer.private_key_pem.bytes() + self._issuer.cert_pem.bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


def new_authority(folder: Path) -> Authority:
    authority = Authority(folder / "authority.pem")
    authority._issuer.cert_pem.write_to_path(str(authority.certificate))
    return authority
