"""`url:http://127.0.0.1:9000`: something that runs already, here or on a machine vouched for."""

import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from webdyno.core.errors import UserError
from webdyno.systems.target import GeneratedService, TargetSpec

LOCALHOST, IPV4, IPV6 = "localhost", "127.0.0.1", "::1"
EXAMPLE = f"url:http://{IPV4}:9000"
RESPONDS_WITHIN_S = 5.0
LOOPBACK_WITHIN_S = 1.0
PORTS = {"http": 80, "https": 443}
SPOKEN = {"http": ("http", "h2c"), "https": ("https", "h2", "h3")}
"""By a URL's scheme: what clients may speak."""


class _Place(NamedTuple):
    address: str
    called: str = ""


def make(spec: TargetSpec) -> GeneratedService:
    """Have it watched. Whether another machine may be loaded is asked before anything is."""
    scheme, host, port = _parts(spec)
    place = _place(host, port, spec)
    own = {"port": port, "listens_at": place.address}
    if place.called:
        own["called"] = place.called if port == PORTS[scheme] else f"{place.called}:{port}"
    facts = {"started": "before the run, by somebody else"}
    service = spec.service(SPOKEN[scheme], own, facts=facts, ready_within_s=RESPONDS_WITHIN_S)
    return GeneratedService(service)


def _parts(spec: TargetSpec) -> tuple[str, str, int]:
    try:
        url = urlsplit(spec.text)
        port = url.port or PORTS.get(url.scheme, 0)
    except ValueError:
        raise UserError(f"{spec.place}: {spec.text} is no URL, such as {EXAMPLE}") from None
    if url.scheme not in SPOKEN or url.username is not None:
        raise UserError(
            f"{spec.place}: a variant's URL begins with http:// or https://, such as {EXAMPLE}"
        )
    if url.path not in {"", "/"} or url.query or url.fragment:
        raise UserError(
            f"{spec.place}: a variant's URL ends with its port; what is requested is said by "
            "--path, or by load.paths in a file"
        )
    return url.scheme, url.hostname or "", port


def _place(host: str, port: int, spec: TargetSpec) -> _Place:
    """Return the address that is loaded, one of a name's if it has several."""
    if host == LOCALHOST:
        for address in (IPV4, IPV6):
            with suppress(OSError), socket.create_connection((address, port), LOOPBACK_WITHIN_S):
                return _Place(address)
        return _Place(IPV4)
    try:
        ip = ip_address(host)
    except ValueError:
        return _look_up(host, port, spec)
    if ip.is_unspecified:
        raise UserError(
            f"{spec.place}: {host} is where a server listens, and nobody's address; give "
            f"{IPV4} for this machine"
        )
    return _Place(str(ip))


def _look_up(host: str, port: int, spec: TargetSpec) -> _Place:
    try:
        called = host.encode("idna").decode()
        addresses = socket.getaddrinfo(called, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UserError(
            f"{spec.place}: {host or spec.text} isn't known on this machine; give an address, such "
            f"as {EXAMPLE}"
        ) from None
    first, *others = dict.fromkeys(str(address[4][0]) for address in addresses)
    among = f", one of its {len(others) + 1} addresses" if others else ""
    spec.notify(f"{host} is measured at {first}{among}")
    return _Place(first, called)
