"""Which services a stack runs for a site, with which settings, and where they listen."""

import errno
import random
import socket
import sys
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import NamedTuple, cast

import psutil

from webdyno.core.errors import OperationError, UserError
from webdyno.core.kernel import kernel_lines
from webdyno.core.load import SECURE, HttpProtocol
from webdyno.core.service import Service
from webdyno.core.setting import Setting, SettingValue, in_figures
from webdyno.core.stack import RoleDefinition, Site, Stack
from webdyno.core.testbed import ADDRESSES_EACH, OWN_NETWORKS
from webdyno.host.children import must, run_program
from webdyno.host.machine import first_number

WITHOUT_PASSWORD = {"fastcgi": "run PHP"}
"""What clients of a protocol may do as the servers' user, since it knows no password."""
_KEYS: dict[str, tuple[str, ...]] = {
    "ec": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "rsa": ("rsa:2048",),
}
CERTIFICATE_DAYS = 30
CERTIFICATE_WITHIN_S = 60.0
INSTALL_OPENSSL = (
    "TLS needs a certificate, which the program openssl makes; on Debian: apt-get install openssl"
)
HOST = "127.0.0.1"
LOWEST_PORT = 10_240
MOST_PORTS = 1000
"""Ports are drawn from at least so many, even where outgoing connections leave fewer."""
PORT_TRIES = 200
LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
NewSocket = Callable[[], socket.socket]
"""Makes a TCP socket; on some testbeds in another network namespace than ours."""


@dataclass(frozen=True)
class Role:
    """One service of a stack with every setting resolved."""

    name: str
    service: Service
    settings: Mapping[str, SettingValue]
    links: Mapping[str, str]
    """Link of the service to role."""

    @property
    def by_socket(self) -> bool:
        """Whether it listens on a Unix socket: the convention is a setting named `listen`."""
        own = self.service.own
        return self.settings.get("listen") == "unix" or (own is not None and own.by_socket)

    def on_a_port(self) -> "Role":
        """Return it listening on a port, where it has the choice: sockets reach no other host."""
        chooses = self.settings.get("listen") == "unix"
        return replace(self, settings={**self.settings, "listen": "tcp"}) if chooses else self

    @property
    def speaks(self) -> HttpProtocol:
        """What clients speak with it, of an HTTP server: the convention is a setting `protocol`."""
        return cast("HttpProtocol", self.settings.get("protocol", "http"))

    @property
    def has_certificate(self) -> bool:
        """Whether its folder has a certificate of the run's own.

        A user's own configuration may have hosts with TLS besides the one that is asked.
        """
        return self.speaks in SECURE or (self.service.own is not None and bool(self.service.files))


@dataclass(frozen=True)
class Placement:
    """A stack whose services are on several hosts, as one of them sees it."""

    mine: frozenset[str]
    """The roles that run here."""
    addresses: Mapping[str, tuple[str, int]]
    """Host and port of every role."""
    seed: bytes
    """What passwords are made from."""
    name: str
    """Of the folder by which the site's files are found, the same on all hosts."""


@dataclass(frozen=True)
class ResolvedStack:
    """Everything that runs for a site, in the order in which it starts."""

    roles: list[Role]
    site_settings: Mapping[str, SettingValue]


def resolve_stack(
    stack: Stack, site: Site | None, settings: Mapping[str, SettingValue], server_cpus: int
) -> ResolvedStack:
    """Return all roles, data services of the site included, with their settings.

    `settings` are those of stack and site, as users name them. Raise UserError for one that doesn't
    exist or is out of range, and for services that link in a circle.
    """
    served = stack.with_services(site.services) if site else stack
    resolved = {role: _default_settings(part) for role, part in served.services.items()}
    exposed = served.exposed_settings()
    own = site.settings if site else {}
    for name in settings:
        if name not in exposed and name not in own:
            raise UserError(f"stack {stack.name} has no setting {name!r}")
    for name, (setting, sets) in exposed.items():
        value = _value(stack, name, setting, settings)
        for role, inner in sets:
            resolved[role][inner] = value
    roles = [
        _role(name, served.services[name], resolved[name], server_cpus)
        for name in _start_order(served)
    ]
    return ResolvedStack(
        roles, {name: _value(stack, name, setting, settings) for name, setting in own.items()}
    )


def resolve_services(parts: Mapping[str, RoleDefinition], server_cpus: int) -> list[Role]:
    """Return the roles of services that run on their own, with their usual settings."""
    return [_role(name, part, _default_settings(part), server_cpus) for name, part in parts.items()]


def _default_settings(part: RoleDefinition) -> dict[str, SettingValue]:
    return {
        name: setting.default for name, setting in part.service.settings.items()
    } | part.settings


def _value(
    stack: Stack, name: str, setting: Setting, settings: Mapping[str, SettingValue]
) -> SettingValue:
    value = settings.get(name, setting.default)
    if fault := setting.fault(value):
        raise UserError(f"stack {stack.name}: setting {name} {fault}, not {value!r}")
    return value


def _role(
    name: str, part: RoleDefinition, settings: Mapping[str, SettingValue], server_cpus: int
) -> Role:
    return Role(
        name=name,
        service=part.service,
        settings={setting: in_figures(value, server_cpus) for setting, value in settings.items()},
        links=part.links,
    )


def _start_order(stack: Stack) -> list[str]:
    """Links start before those who use them, the front last."""
    before = {role: set(part.links.values()) for role, part in stack.services.items()}
    before[stack.front] |= before.keys() - {stack.front}
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise UserError(f"stack {stack.name}: services link in a circle: {circle}") from None


def refuse_open_port(role: Role, stack: Stack, *, is_private: bool) -> None:
    """Raise UserError where any account of this machine could have the servers' user run code.

    `is_private`: no other account reaches the network that the servers are in.
    """
    may = WITHOUT_PASSWORD.get(role.service.protocol)
    if may is None or is_private or role.by_socket:
        return
    targets = stack.exposed_settings().items()
    setting = next(
        (name for name, target in targets if (role.name, "listen") in target.sets), "listen"
    )
    raise UserError(
        f"stack {stack.name}: {role.service.title} would listen on TCP where any account of this "
        f"machine could {may} as the servers' user, since its protocol knows no password; "
        f"measure in a network of its own (--testbed netns, as root), or leave {setting} at unix"
    )


def is_asked_from_elsewhere(role: Role, roles: Sequence[Role], placement: Placement) -> bool:
    """Whether a service that links to a role is on another host than that role.

    As far as this host is concerned: one of both runs here. Hosts of a test may share an address.
    """
    clients = [client.name for client in roles if role.name in client.links.values()]
    is_mine = role.name in placement.mine
    return any((client in placement.mine) != is_mine for client in clients)


def on_ports(roles: Sequence[Role], placement: Placement) -> list[Role]:
    """Return services that listen on ports, by which other hosts reach them.

    Those that let clients run code keep their Unix sockets unless another host asks them.
    """
    return [
        role
        if role.service.protocol in WITHOUT_PASSWORD
        and not is_asked_from_elsewhere(role, roles, placement)
        else role.on_a_port()
        for role in roles
    ]


class Certificate(NamedTuple):
    """A certificate with its key, as PEM."""

    certificate: str
    key: str


@cache
def certificate(host: str, kind: str) -> Certificate:
    """Make a self-signed certificate (ec: P-256, rsa: 2048 bits); raise OperationError."""
    with tempfile.TemporaryDirectory(prefix="webdyno-certificate-") as folder:
        files = Certificate(f"{folder}/certificate.pem", f"{folder}/key.pem")
        words = [
            *("openssl", "req", "-x509", "-nodes", "-newkey", *_KEYS[kind]),
            *("-keyout", files.key, "-out", files.certificate, "-days", str(CERTIFICATE_DAYS)),
            *("-subj", f"/CN={host}", "-addext", f"subjectAltName=IP:{host}"),
        ]
        made = run_program(words, within_s=CERTIFICATE_WITHIN_S, install=INSTALL_OPENSSL)
        must(made, "openssl couldn't make a certificate")
        return Certificate(Path(files.certificate).read_text(), Path(files.key).read_text())


def free_port(
    new_socket: NewSocket = socket.socket, taken: Container[int] = (), host: str = HOST
) -> int:
    """Return a port that nobody listens on and that no outgoing connection will be given.

    `taken` are ports that were given away already, though nobody may listen on them yet. The kernel
    takes ports of outgoing connections from its local port range; a port below that can't be taken
    by the load's own connections between now and the server's start. It is drawn at random, so that
    stacks which start at the same time don't meet.
    """
    highest = max(LOWEST_PORT + MOST_PORTS, first_number(LOCAL_PORTS, 32_768)) - 1
    for _ in range(PORT_TRIES):
        port = random.SystemRandom().randint(LOWEST_PORT, highest)
        if port not in taken and _can_listen(port, new_socket, host) is None:
            return port
    raise OperationError(f"found no free port on {host} between {LOWEST_PORT} and {highest}")


def tcp(host: str, new_socket: NewSocket = socket.socket) -> socket.socket:
    """Make a socket to connect to an address; only servers that ran before have an IPv6 one."""
    return socket.socket(socket.AF_INET6) if ":" in host else new_socket()


def own_network_host() -> str:
    """Draw an address, not the client's, for servers that have a network of their own.

    It is the third of as many as that network has, of which no route of this machine knows.
    """
    draw, taken = random.SystemRandom(), _routes()
    while True:
        block = draw.randrange(1, OWN_NETWORKS.num_addresses // ADDRESSES_EACH)
        first = OWN_NETWORKS[block * ADDRESSES_EACH]
        network = ip_network(f"{first}/{32 - (ADDRESSES_EACH - 1).bit_length()}")
        if not any(network.overlaps(route) for route in taken):
            return str(first + 2)


def _routes() -> list[IPv4Network]:
    """Return the networks that routes of this machine lead to, without that to all others."""
    routes = []
    with suppress(OSError):
        for line in kernel_lines(Path("/proc/net/route"))[1:]:
            _, goal, _, _, _, _, _, mask, *_ = line.split()
            packed, ones = int(goal, 16).to_bytes(4, sys.byteorder), int(mask, 16).bit_count()
            if ones:
                routes.append(IPv4Network((packed, ones)))
    return routes


def demand_port(port: int) -> int:
    """Return the port back if it is free, else raise OperationError that says who holds it."""
    fault = _can_listen(port)
    if fault is None:
        return port
    if fault.errno == errno.EADDRINUSE:
        raise OperationError(
            f"port {port} is in use{_holder(port)}; stop that or choose another --port"
        )
    raise OperationError(f"can't listen on port {port}: {fault.strerror}; choose another --port")


def _can_listen(
    port: int, new_socket: NewSocket = socket.socket, host: str = HOST
) -> OSError | None:
    with new_socket() as probe:
        # As servers do it: connections that linger after their end don't block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def _holder(port: int) -> str:
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ""
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
        if listens and connection.pid is not None:
            try:
                name = psutil.Process(connection.pid).name()
            except psutil.Error:
                break
            return f" by {name} (process {connection.pid})"
    return ""
