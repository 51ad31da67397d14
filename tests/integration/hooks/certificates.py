"""A throw-away certificate authority."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CONFIGURATION = """
[req]
distinguished_name = subject
x509_extensions = authority
[subject]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[ca]
default_ca = issued
[issued]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
copy_extensions = copy
unique_subject = no
policy = anybody
x509_extensions = receiver
[anybody]
commonName = supplied
[receiver]
basicConstraints = CA:FALSE
authorityKeyIdentifier = keyid
"""
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_ALWAYS = ("20200101000000Z", "20991231000000Z")
_LONG_AGO = ("20200101000000Z", "20200102000000Z")


@dataclass(frozen=True)
class Authority:
    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "authority.pem"

    def server(self, names: str, *, expired: bool = False) -> ssl.SSLContext:
        """What a server of these `names` (`DNS:a,IP:b`) shows."""
        name = "".join(filter(str.isalnum, names)) + ("-expired" if expired else "")
        request, key, certificate = (self.folder / f"{name}.{kind}" for kind in ("request", "key", "pem"))
        if not certificate.exists():
            asked = ("-keyout", key, "-out", request, "-subj", "/CN=receiver", "-addext", f"subjectAltName={names}")
            self.openssl("req", "-new", *_NEW_KEY, *asked)
            start, end = _LONG_AGO if expired else _ALWAYS
            signer = ("-cert", self.certificate, "-keyfile", self.folder / "authority.key")
            span = ("-startdate", start, "-enddate", end)
            self.openssl("ca", "-batch", "-notext", *signer, *span, "-in", request, "-out", certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def self_signed(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.folder / "authority.key")
        return context

    def openssl(self, command: str, *arguments: str | Path) -> None:
        configuration = ("-config", self.folder / "openssl.cnf")
        subprocess.run(["openssl", command, *configuration, *arguments], check=True, capture_output=True)


def new_authority(folder: Path) -> Authority:
    authority = Authority(folder)
    (folder / "openssl.cnf").write_text(_CONFIGURATION.format(folder=folder))
    (folder / "index").touch()
    named = ("-subj", "/CN=throw-away", "-days", "2")
    authority.openssl(
        "req", "-x509", *_NEW_KEY, "-keyout", folder / "authority.key", "-out", authority.certificate, *named
    )
    return authority
