"""`url:http://127.0.0.1:9000`: something that runs already, on this machine."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from webdyno.model.errors import UserError
from webdyno.own.target import GeneratedService, TargetSpec

LOCALHOST, IPV4 = "localhost", "127.0.0.1"
READY_WITHIN_S = 5.0
PORTS = {"http": 80, "https": 443}
SPOKEN = {"http": ("http", "h2c"), "https": ("https", "h2")}
"""By a URL's scheme: what clients may speak."""


def make(spec: TargetSpec) -> GeneratedService:
    """Have it watched; raise UserError for what isn't on the loopback interface."""
    scheme, host, port = _parts(spec)
    return GeneratedService(
        spec.service(
            SPOKEN[scheme],
            {"port": port, "listens_at": host, "ready_within_s": READY_WITHIN_S},
            facts={"started": "before the run, by somebody else"},
        )
    )


def _parts(spec: TargetSpec) -> tuple[str, str, int]:
    try:
        url = urlsplit(spec.text)
        port = url.port or PORTS.get(url.scheme, 0)
    except ValueError:
        raise UserError(f"{spec.place}: {spec.text} is no URL, such as {_example()}") from None
    if url.scheme not in SPOKEN or url.username is not None:
        raise UserError(
            f"{spec.place}: a variant's URL begins with http:// or https://, such as {_example()}"
        )
    if (host := _loopback(url.hostname or "")) is None:
        raise UserError(
            f"{spec.place}: {url.hostname or spec.text} is not this machine; webdyno puts load "
            f"on its loopback interface alone: {IPV4}, [::1] or {LOCALHOST}"
        )
    if url.path not in {"", "/"} or url.query or url.fragment:
        raise UserError(
            f"{spec.place}: a variant's URL ends with its port; what is requested is said by "
            "--path, or by load.paths in a file"
        )
    return url.scheme, host, port


def _loopback(host: str) -> str | None:
    """Give the address of this machine that a URL names; None where it is another machine's."""
    if host == LOCALHOST:
        return IPV4
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return str(address) if address.is_loopback else None


def _example() -> str:
    return f"url:http://{IPV4}:9000"
