"""Hosts that a configuration passes requests on to: whether they are known, and where they are."""

import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from webdyno.model.format import listed
from webdyno.model.mistake import Mistake
from webdyno.model.origin import Origin

WITHIN_S = 15.0
AT_ONCE = 16
MOST_NAMES = 200

Hosts = Mapping[str, Origin | None]
"""Names and addresses, and where each stands first."""


def demand_known(hosts: Hosts, file: Path) -> None:
    """Raise Mistake, naming all of them, where this machine doesn't know some.

    A server that can't resolve one doesn't start, and names that one alone.
    """
    unknown = [host for host, found in _looked_up(hosts).items() if not found]
    if not unknown:
        return
    places = ", ".join(f"{host} ({hosts[host] or file})" for host in unknown)
    raise Mistake(
        f"hosts aren't known on this machine: {places}. Its server starts only where each of them "
        "is: add them to /etc/hosts, or measure it together with the containers it names "
        "(image:compose.yaml#SERVICE)"
    )


def elsewhere(hosts: Hosts) -> list[str]:
    """Say which of them are other machines, in a line for people; nothing where none is."""
    found = [host for host, at in _looked_up(hosts).items() if not all(map(_is_here, at))]
    if not found:
        return []
    return [f"passes requests on to {listed(found)}, which isn't this machine: that is loaded, too"]


def _looked_up(hosts: Iterable[str]) -> dict[str, list[str]]:
    """Give the addresses of hosts; of those that take too long nothing is known."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        asked = {host: pool.submit(_addresses, host) for host in list(hosts)[:MOST_NAMES]}
        wait(asked.values(), timeout=WITHIN_S)
        return {host: it.result() for host, it in asked.items() if it.done()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _addresses(host: str) -> list[str]:
    try:
        return sorted({str(it[4][0]) for it in socket.getaddrinfo(host.strip("[]"), None)})
    except (OSError, UnicodeError):
        return []


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine's: those alone can be bound."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
