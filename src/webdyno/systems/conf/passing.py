"""Hosts that configurations pass requests on to: where they stand, and which are other machines."""

import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.format import listed, listed_to
from webdyno.core.service import Origin
from webdyno.core.stack import Stack

WITHIN_S = 15.0
AT_ONCE = 16
MOST_NAMES = 2_000
ANY_PORT = 9
"""Nothing is sent there."""

_NAME = re.compile(r"\[?(?!_)[\w.:-]+(%\w+)?\]?")
"""But for one of a service (`_http._tcp.example.com`), which has other names for its places."""
_WORD = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w.-]+")
SHOWN_PLACES = 20
"""Of each host."""


class PassedOn(NamedTuple):
    """A place of a configuration at which requests are passed on."""

    host: str
    """A name or an address; as it is written where only a request reports which."""
    origin: Origin | None
    """None where the line isn't known."""


def demand_known(passed_on: Iterable[PassedOn], file: Path) -> None:
    """Raise UserError, naming all of them, where this machine doesn't know some.

    A server that can't resolve one often doesn't start, and names that one alone.
    """
    first: dict[str, Origin | None] = {}
    for target in passed_on:
        first.setdefault(target.host, target.origin)
    unknown = [host for host, addresses in _looked_up(first).items() if addresses == []]
    if not unknown:
        return
    places = ", ".join(f"{host} ({first[host] or file})" for host in unknown)
    flags = " ".join(f"--backend {host}=cmd:'COMMAND'" for host in unknown)
    raise UserError(
        f"hosts aren't known on this machine: {places}. Say what answers in their place: {flags} "
        "(or HOST=127.0.0.1:PORT, where that runs already); or measure it together with the "
        "containers it names (image:compose.yaml#SERVICE)"
    )


def elsewhere(passed_on: Iterable[PassedOn]) -> list[str]:
    """Say which of them are other machines, in a line for people; nothing where none is."""
    if not (hosts := not_here(target.host for target in passed_on)):
        return []
    return [f"passes requests on to {listed(hosts)}, which isn't this machine: that is loaded, too"]


def not_here(hosts: Iterable[str]) -> list[str]:
    """Give the hosts that may be other machines, among them those without a known address."""
    return [
        host
        for host, addresses in _looked_up(hosts).items()
        if not addresses or not all(map(is_here, addresses))
    ]


def not_loopback(passed_on: Sequence[PassedOn]) -> list[PassedOn]:
    """Give those that may be another machine's, whichever machine the server will run on."""
    looked_up = _looked_up(target.host for target in passed_on)
    within = {
        host
        for host, addresses in looked_up.items()
        if addresses and all(map(_is_loopback, addresses))
    }
    return [target for target in dict.fromkeys(passed_on) if target.host not in within]


def is_here(address: str) -> bool:
    """Whether an address is this machine's: it would be spoken with from that very address."""
    if _is_loopback(address):
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, ANY_PORT))
            ours = str(probe.getsockname()[0])
    except OSError:
        return False
    return ours.partition("%")[0] == address.partition("%")[0]


def _is_loopback(address: str) -> bool:
    """Whether an address is loopback on any machine; the unspecified one leads there as well."""
    ip = ip_address(address)
    ip = (ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip
    return ip.is_loopback or ip.is_unspecified


def _looked_up(hosts: Iterable[str]) -> dict[str, list[str] | None]:
    """Give the addresses of hosts; None where there are too many, or it takes too long to report.

    Neither is anything known of what is no name, such as a variable.
    """
    addresses: dict[str, list[str] | None] = dict.fromkeys(hosts)
    names = [host for host in addresses if _NAME.fullmatch(host)][:MOST_NAMES]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        pending = {host: pool.submit(_addresses, host) for host in names}
        wait(pending.values(), timeout=WITHIN_S)
        addresses |= {host: value.result() for host, value in pending.items() if value.done()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return addresses


_DECIMALS = re.compile(r"\d+(?:\.\d+){3}")


def _addresses(host: str) -> list[str]:
    # What begins with a zero is octal to the C library, and decimal to nginx.
    is_decimal = _DECIMALS.fullmatch(host) is not None
    read = [".".join(str(int(part)) for part in host.split("."))] if is_decimal else []
    try:
        found = {str(address[4][0]) for address in socket.getaddrinfo(host.strip("[]"), None)}
        return sorted({*read, *found})
    except (OSError, UnicodeError):
        return []


class _Place(NamedTuple):
    origin: Origin
    is_likely: bool


def placed(
    hosts: Iterable[str],
    texts: Mapping[Path, str],
    environment: Mapping[str, str],
    likely: re.Pattern[str],
) -> list[PassedOn]:
    """Give each host with every line of a user's files that names it, by itself or by a variable.

    For servers that say of hosts without their lines. Lines that aren't like `likely` count where
    no other names it.
    """
    by_word: dict[str, list[str]] = defaultdict(list)
    for host in (known := dict.fromkeys(hosts)):
        for word in _words_for(host, environment):
            by_word[word].append(host)
    found_places: dict[str, list[_Place]] = {host: [] for host in known}
    if known:
        for origin, text in _lines(texts):
            for word in set(_WORD.findall(text)):
                for host in by_word.get(word, []):
                    found_places[host].append(_Place(origin, bool(likely.search(text))))
    return [
        PassedOn(host, place) for host, places in found_places.items() for place in _best(places)
    ]


def _best(places: list[_Place]) -> list[Origin | None]:
    return (
        [place.origin for place in places if place.is_likely]
        or [place.origin for place in places]
        or [None]
    )


def _words_for(host: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Give what stands in a file for a host: itself, and variables whose value names it."""
    yield from _WORD.findall(host)[-1:]
    for name, value in environment.items():
        if host in _WORD.findall(value):
            yield from (name, f"env.{name}")


def _lines(texts: Mapping[Path, str]) -> Iterator[tuple[Origin, str]]:
    for file, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                yield Origin(str(file), number), line


def other_machines(stacks: Iterable[Stack], *, anywhere: bool) -> list[str]:
    """Give the hosts that aren't this machine, each with every place that names it.

    `anywhere`: whatever isn't the loopback interface is somebody else's to another machine.
    """
    services = [role.service for stack in stacks for role in stack.services.values()]
    kept = [target for service in services if service.own for target in service.own.passes_on]
    places: dict[str, dict[str, None]] = {}
    for target in kept:
        places.setdefault(target.host, {})[target.at] = None
    if anywhere:
        hosts = [target.host for target in not_loopback([PassedOn(host, None) for host in places])]
    else:
        hosts = not_here(places)
    return [f"{host} ({listed_to(SHOWN_PLACES, list(places[host]))})" for host in hosts]
