"""Backends: what answers in the place of hosts that a configuration passes requests on to.

So a proxy can be measured without the rest of its world. A configuration is moved as if it named
addresses that stand for them, until the run knows where they listen.
"""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from webdyno.core.errors import UserError

SYSTEMS = ("cmd:", "rev:", "url:")
"""How systems begin that can be one."""
MOST = 100
NO_ROLES = {"web", "lock"}
"""Roles that are taken: that of the configuration's own server among them."""
ROLE_LETTERS = 18
HOSTS, FIRST_PORT = "127.251.113.", 61_000
"""Addresses that stand for them: each who reads a configuration takes them for this machine's."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_ASKED, WITHIN_S = 20, 1.0
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
    """One of them."""

    name: str
    """What the configuration calls it: `app`, `app:3000` or `/run/app.sock`."""
    system: str
    """`cmd:COMMAND`, another system, or empty where it is a Unix socket."""
    role: str
    """Of its service in the stack."""
    address: BackendAddress

    @property
    def templates(self) -> dict[str, str]:
        """Give the templates that become of its address."""
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
            host = called(name, place)
            roles = {*NO_ROLES, *(backend.role for backend in backends)}
            role = _NO_ROLE.sub("-", host.lower())[:ROLE_LETTERS].strip("-")
            role = role if role[:1].isalpha() else f"at-{role}"
            role = f"{role}-{number}" if role in roles else role
            backends.append(_backend(host, system, role, number, place))
        return cls(tuple(backends))

    def of_host(self, host: str, port: int | None) -> BackendAddress | None:
        """Give what answers in the place of a host; None where nothing does."""
        whole = f"{host}:{port}" if port else host
        return self._named(whole, host)

    def of_socket(self, path: str) -> BackendAddress | None:
        """Give what answers in the place of a Unix socket; None where nothing does."""
        return self._named(path)

    def _named(self, *names: str) -> BackendAddress | None:
        for name in map(_plain, names):
            if named := next(
                (backend for backend in self.every if _plain(backend.name) == name), None
            ):
                self.used[named.role] = named
                return named.address
        self.seen[names[0]] = None
        return None

    def silent(self) -> list[str]:
        """Say where on this machine nobody listens that requests are passed on to."""
        return [
            f"nobody listens at {name}, where requests are passed on to: start that, or say what "
            f"answers in its place, as in --backend {name}=cmd:'COMMAND'"
            for name in islice(filter(_is_silent, self.seen), MOST_ASKED)
        ]

    def changes(self) -> list[str]:
        """Say what answers in the place of whom."""
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
        socket.create_connection((host.strip("[]"), int(port)), WITHIN_S).close()
    except OSError:
        return True
    return False


def called(name: str, place: str) -> str:
    """Give the name of a host, or the path of a socket; raise UserError for what is neither."""
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
