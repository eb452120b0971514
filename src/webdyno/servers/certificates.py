"""The certificate that servers show over TLS.

Made by and for this process, one for all variants.
"""

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from webdyno.host.children import must, run_program

SECURE = frozenset({"https", "h2"})
"""Protocols that are spoken over TLS."""

_KEYS: dict[str, tuple[str, ...]] = {
    "ec": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "rsa": ("rsa:2048",),
}
DAYS = 30
WITHIN_S = 60.0
INSTALL = (
    "TLS needs a certificate, which the program openssl makes; on Debian: apt-get install openssl"
)


class Certificate(NamedTuple):
    """A certificate with its key, as PEM."""

    certificate: str
    key: str


@cache
def certificate(host: str, kind: str) -> Certificate:
    """Make a self-signed certificate for an address; raise OperationError where openssl can't.

    `kind` is ec, on the curve P-256 as most certificates are today, or rsa, of 2048 bits.
    """
    with tempfile.TemporaryDirectory(prefix="webdyno-certificate-") as folder:
        files = Certificate(f"{folder}/certificate.pem", f"{folder}/key.pem")
        words = [
            *("openssl", "req", "-x509", "-nodes", "-newkey", *_KEYS[kind]),
            *("-keyout", files.key, "-out", files.certificate, "-days", str(DAYS)),
            *("-subj", f"/CN={host}", "-addext", f"subjectAltName=IP:{host}"),
        ]
        made = run_program(words, within_s=WITHIN_S, install=INSTALL)
        must(made, "openssl couldn't make a certificate")
        return Certificate(Path(files.certificate).read_text(), Path(files.key).read_text())
