"""Hosts that configurations pass requests on to: which are other machines, and their backends.

A backend answers in the place of a host, so a proxy can be measured without the rest of its world.
A configuration is moved as if it named addresses that stand for backends, until the run knows where
they listen.
"""

import os
import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.format import listed, listed_to
from webdyno.core.service import Origin
from webdyno.core.stack import Stack
from webdyno.systems.containers.compose_file import USUAL_FILES

LOOKED_UP_WITHIN_S = 15.0
AT_ONCE = 16
MOST_NAMES = 2_000
ANY_PORT = 9
"""Nothing is sent there."""

_NAME_OR_ADDRESS = re.compile(r"\[?(?!_)[\w.:-]+(%\w+)?\]?")
"""But for one of a service (`_http._tcp.example.com`), which has other names for its places."""
_WORD = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w.-]+")
MOST_ABOVE = 3
"""Folders in which a Compose file is looked for, up from a configuration's own."""
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
        f"containers it names (image:{_composed_near(file)}#SERVICE)"
    )


def _composed_near(file: Path) -> str:
    """Return the Compose file next to a configuration or above it, as somebody there types it."""
    places = (folder / name for folder in list(file.parents)[:MOST_ABOVE] for name in USUAL_FILES)
    near = next((place for place in places if place.is_file()), None)
    return os.path.relpath(near) if near else USUAL_FILES[0]


def elsewhere(passed_on: Iterable[PassedOn]) -> list[str]:
    """Return a sentence on those that are other machines, if there are any."""
    hosts = not_here(target.host for target in passed_on)
    sentence = (
        f"passes requests on to {listed(hosts)}, which isn't this machine: that is loaded, too"
    )
    return [sentence] if hosts else []


def not_here(hosts: Iterable[str]) -> list[str]:
    """Return the hosts that may be other machines, among them those without a known address."""
    return [
        host
        for host, addresses in _looked_up(hosts).items()
        if not addresses or not all(map(is_here, addresses))
    ]


def not_loopback(passed_on: Sequence[PassedOn]) -> list[PassedOn]:
    """Return those that may be another machine's, whichever machine the server will run on."""
    addresses = _looked_up(target.host for target in passed_on)
    return [
        target
        for target in dict.fromkeys(passed_on)
        if not (known := addresses[target.host]) or not all(map(_is_loopback, known))
    ]


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
    """Return the addresses of hosts; None where there are too many, or it takes too long.

    Neither is anything known of what is no name, such as a variable.
    """
    addresses: dict[str, list[str] | None] = dict.fromkeys(hosts)
    names = [host for host in addresses if _NAME_OR_ADDRESS.fullmatch(host)][:MOST_NAMES]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        pending = {host: pool.submit(_addresses, host) for host in names}
        wait(pending.values(), timeout=LOOKED_UP_WITHIN_S)
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
        resolved = {str(address[4][0]) for address in socket.getaddrinfo(host.strip("[]"), None)}
        return sorted({*read, *resolved})
    except (OSError, UnicodeError):
        return []


def find_places(
    hosts: Iterable[str],
    texts: Mapping[Path, str],
    environment: Mapping[str, str],
    likely: re.Pattern[str],
) -> list[PassedOn]:
    """Return each host with every line of a user's files that names it, or a variable with it.

    For servers that report hosts without lines. Those that aren't `likely` count where no other is.
    """
    known = dict.fromkeys(hosts)
    by_word: dict[str, list[str]] = defaultdict(list)
    for host in known:
        variables = [name for name, value in environment.items() if host in _WORD.findall(value)]
        for word in (*_WORD.findall(host)[-1:], *variables, *(f"env.{name}" for name in variables)):
            by_word[word].append(host)
    likely_places: dict[str, list[Origin]] = defaultdict(list)
    other_places: dict[str, list[Origin]] = defaultdict(list)
    for file, text in texts.items() if known else ():
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("#"):
                continue
            places = likely_places if likely.search(line) else other_places
            for word in set(_WORD.findall(line)):
                for host in by_word.get(word, []):
                    places[host].append(Origin(str(file), number))
    passed_on = []
    for host in known:
        named_in: list[Origin | None] = [*(likely_places[host] or other_places[host])]
        passed_on += [PassedOn(host, place) for place in named_in or [None]]
    return passed_on


def other_machines(stacks: Iterable[Stack], *, anywhere: bool) -> list[str]:
    """Return the hosts that aren't this machine, each with every place that names it.

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


SYSTEMS = ("cmd:", "rev:", "url:")
"""How systems begin that can be one."""
MOST = 100
NO_ROLES = {"web", "lock"}
"""Roles that are taken: that of the configuration's own server among them."""
ROLE_LETTERS = 18
HOSTS, FIRST_PORT = "127.251.113.", 61_000
"""Addresses that stand for them: each who reads a configuration takes them for this machine's."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_ASKED, LISTENS_WITHIN_S = 20, 1.0
HIGHEST_PORT = 65_536
PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
"""Where schemes lead without a port."""

_NAME = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?")
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):[0-9]{1,5}")
_SOCKET = re.compile(r"(?:unix:)?(?P<path>/[^\s:;|\"]+)")
_NO_ROLE = re.compile(r"[^a-z0-9]+")


class BackendAddress(NamedTuple):
    """Where a backend is, as a configuration can name it until it is filled in."""

    host: str
    port: str
    text: str
    """Both."""
    socket: str = ""
    """The path of a Unix socket, which is there already, in the place of all of these."""


@dataclass(frozen=True)
class NamedBackend:
    """A backend that a user gives."""

    name: str
    """What the configuration calls it: `app`, `app:3000` or `/run/app.sock`."""
    system: str
    """`cmd:COMMAND`, another system, or empty where it is a Unix socket."""
    role: str
    """Of its service in the stack."""
    address: BackendAddress

    @property
    def templates(self) -> dict[str, str]:
        """What each part of its address becomes, as templates."""
        if not self.system:
            return {}
        service = f"services['{self.role}']"
        host = f"{{{{ '[' ~ {service}.host ~ ']' if ':' in {service}.host else {service}.host }}}}"
        port = f"{{{{ {service}.port }}}}"
        address = self.address
        return {address.text: f"{host}:{port}", address.host: host, address.port: port}


@dataclass
class Backends:
    """Those that a user gives, and what a configuration makes of them."""

    every: tuple[NamedBackend, ...] = ()
    used: dict[str, NamedBackend] = field(default_factory=dict, init=False)
    """By role: those that the configuration passes requests on to."""
    seen: dict[str, None] = field(default_factory=dict, init=False)
    """What the configuration names."""

    @classmethod
    def of(cls, given: Mapping[str, str], place: str) -> "Backends":
        """Read what a user gives by name; raise UserError where that isn't right."""
        if len(given) > MOST:
            raise UserError(f"{place}: there are more than {MOST} backends")
        backends: list[NamedBackend] = []
        for number, (name, system) in enumerate(given.items(), 1):
            host = host_or_socket(name, place)
            roles = {*NO_ROLES, *(backend.role for backend in backends)}
            role = _NO_ROLE.sub("-", host.lower())[:ROLE_LETTERS].strip("-")
            role = role if role[:1].isalpha() else f"at-{role}"
            role = f"{role}-{number}" if role in roles else role
            backends.append(_backend(host, system, role, number, place))
        return cls(tuple(backends))

    def of_host(self, host: str, port: int | None) -> BackendAddress | None:
        """Return what answers in the place of a host; None where nothing does."""
        return self._backend_named(f"{host}:{port}" if port else host, host)

    def of_socket(self, path: str) -> BackendAddress | None:
        """Return what answers in the place of a Unix socket; None where nothing does."""
        return self._backend_named(path)

    def _backend_named(self, *names: str) -> BackendAddress | None:
        for name in map(_plain, names):
            for backend in self.every:
                if _plain(backend.name) == name:
                    self.used[backend.role] = backend
                    return backend.address
        self.seen[names[0]] = None
        return None

    def silent(self) -> list[str]:
        """Return sentences on addresses of this machine at which nobody listens."""
        return [
            f"nobody listens at {name}, where requests are passed on to: start that, or say what "
            f"answers in its place, as in --backend {name}=cmd:'COMMAND'"
            for name in islice(filter(_is_silent, self.seen), MOST_ASKED)
        ]

    def changes(self) -> list[str]:
        """Return sentences on what answers in whose place."""
        sentences = []
        for backend in self.used.values():
            if backend.system:
                sentences.append(f"{backend.name} is {backend.system.removeprefix('url:http://')}")
            else:
                alien = "its CPU time counts as other programs'"
                sentences.append(f"{backend.name} is unix:{backend.address.socket} ({alien})")
        return sentences


def _plain(name: str) -> str:
    """Write a name so that it is the same as others for the same."""
    host, colon, port = name.lower().rpartition(":")
    host, rest = (host, f"{colon}{port}") if port.isdecimal() and colon else (name.lower(), "")
    return f"{LOOPBACK[0] if host in LOOPBACK else host}{rest}"


def _is_silent(name: str) -> bool:
    if name.startswith("/"):
        return not os.path.exists(name)  # noqa: PTH110 (Path's raises)
    host, _, port = name.rpartition(":")
    if host not in LOOPBACK or not port.isdecimal() or not 0 < int(port) < HIGHEST_PORT:
        return False
    try:
        socket.create_connection((host.strip("[]"), int(port)), LISTENS_WITHIN_S).close()
    except OSError:
        return True
    return False


def host_or_socket(name: str, place: str) -> str:
    """Return the name of a host, or the path of a socket; raise UserError for what is neither."""
    if match := _SOCKET.fullmatch(name):
        return match["path"]
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{place}: backend {name!r:.80} is no host, as in app or app:3000, and no path of a "
            "Unix socket; write it as the configuration does, without http://"
        )
    return name


def _backend(name: str, system: str, role: str, number: int, place: str) -> NamedBackend:
    host, port = f"{HOSTS}{number}", FIRST_PORT + number
    address = BackendAddress(host, f"@webdyno-port-{number}@", f"{host}:{port}")
    if match := _SOCKET.fullmatch(system):
        return NamedBackend(name, "", role, address._replace(socket=match["path"]))
    if _ADDRESS.fullmatch(system):
        return NamedBackend(name, f"url:http://{system}", role, address)
    if not system.startswith(SYSTEMS):
        raise UserError(
            f"{place}: backend {name}={system:.80}: a backend is a command (cmd:COMMAND), an "
            "address of this machine (127.0.0.1:PORT) or a Unix socket (unix:/PATH)"
        )
    return NamedBackend(name, system, role, address)
