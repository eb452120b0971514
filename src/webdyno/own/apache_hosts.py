"""The virtual hosts of Apache: which port is measured, and which of its hosts answers there."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webdyno.model.format import listed
from webdyno.model.origin import Line
from webdyno.own.moved import HTTP, HTTPS, Wanted

HOST = re.compile(r"(\s*)<VirtualHost\s+(.*?)\s*>\s*$", re.IGNORECASE)
HOST_END = re.compile(r"\s*</VirtualHost>", re.IGNORECASE)

_LISTEN = re.compile(r"\s*Listen\s+(\S+)\s*(\S*)", re.IGNORECASE)
_SSL = re.compile(r"\s*SSLEngine\s+on\b", re.IGNORECASE)
_NAMES = re.compile(r"\s*Server(?:Name|Alias)\s+(.*)", re.IGNORECASE)
_SECTION = re.compile(r"\s*<(/?)(?!VirtualHost|If(?:Module|Define))\w", re.IGNORECASE)
_REDIRECTS_ALL = re.compile(
    r"\s*(?:Redirect\w*\s+(?:\w+\s+)?\"?/\"?\s|RedirectMatch\s+(?:\w+\s+)?\"?\^?/?(?:\(?\.\*\)?)?\$?\"?\s"
    r"|RewriteRule\s+\"?\^?/?(?:\(?\.[*?]+\)?)?\$?\"?\s+\"?https?://.*\[[^]]*\bR)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\s*RewriteCond\s+(\S+)", re.IGNORECASE)
_HOLDS_FOR_ALL = re.compile(r"%\{(?:HTTPS|SERVER_NAME|SERVER_PORT|REQUEST_SCHEME)\}", re.IGNORECASE)
_REFUSES_ALL = re.compile(r"\s*Redirect\s+(?:4\d\d|gone)\s+\"?/\"?\s*$", re.IGNORECASE)


@dataclass(eq=False)
class VirtualHost:
    """A `<VirtualHost>`, with the lines from its beginning to its end."""

    addresses: str
    lines: list[Line]

    @property
    def ports(self) -> list[int | None]:
        """The ports it is for, None being any."""
        return [port_of(it) for it in self.addresses.split()]

    @property
    def is_secure(self) -> bool:
        """Whether it says that it speaks TLS."""
        return any(_SSL.match(it.text) for it in self.lines)

    @property
    def names(self) -> list[str]:
        """The names it answers to."""
        found = (_NAMES.match(it.text) for it in self.lines)
        return [name.strip('"') for it in found if it for name in it[1].split()]

    @property
    def why_not(self) -> str:
        """What speaks against measuring it; empty where nothing does."""
        everywhere = list(_outside_sections(self.lines[1:-1]))
        if any(_REFUSES_ALL.match(it.text) for it in everywhere):
            return "it refuses everything"
        if _redirects_all(everywhere):
            return "it only redirects"
        locations = "".join(f"{it.text.strip()}\n" for it in self.lines)
        is_denied = re.search(r"(?i)<Location \"?/\"?>\s*Require all denied", locations)
        return "it refuses everything" if is_denied else ""


def hosts_of(lines: Sequence[Line]) -> list[VirtualHost]:
    """Give the hosts in the order in which they stand."""
    hosts: list[VirtualHost] = []
    here: VirtualHost | None = None
    for line in lines:
        if found := HOST.match(line.text):
            here = VirtualHost(found[2], [])
            hosts.append(here)
        if here:
            here.lines.append(line)
        if HOST_END.match(line.text):
            here = None
    return hosts


def measured_port(wanted: Wanted, lines: Sequence[Line]) -> int:
    """Choose the port that is measured; a host speaks TLS if it says SSLEngine on."""
    hosts = hosts_of(lines)
    ports: list[int | None] = []
    secure: set[int | None] = {HTTPS}
    for line in lines:
        if found := _LISTEN.match(line.text):
            ports.append(port_of(found[1]))
            secure |= {ports[-1]} if found[2].lower() == "https" else set()
    for host in hosts:
        ports += host.ports
        secure |= set(host.ports) if host.is_secure else set()
    if not wanted.is_secure and (not ports or None in ports):
        ports.append(HTTP)
    fitting = [it for it in ports if it is not None and (it in secure) == wanted.is_secure]
    return wanted.measured(fitting, _against(hosts, fitting))


def _against(hosts: Sequence[VirtualHost], ports: Sequence[int]) -> dict[int, str]:
    """Give what speaks against ports: each of their hosts refuses, or only redirects.

    There may be thousands of hosts, with a port each.
    """
    on_port: dict[int | None, list[int]] = {}
    for at, host in enumerate(hosts):
        for port in set(host.ports):
            on_port.setdefault(port, []).append(at)
    on_any = on_port.get(None, [])
    why_not = [it.why_not for it in hosts]
    against = {}
    for port in dict.fromkeys(ports):
        there = sorted({*on_port.get(port, []), *on_any})
        if there and all(why_not[at] for at in there):
            against[port] = why_not[there[0]]
    return against


def asked_for(wanted: Wanted, lines: Sequence[Line], port: int, changes: list[str]) -> list[Line]:
    """Leave hosts out that are on other ports, and have the one come first that is to answer."""
    hosts = hosts_of(lines)
    kept: list[VirtualHost] = []
    left_out: list[VirtualHost] = []
    for it in hosts:
        (kept if {port, None} & set(it.ports) else left_out).append(it)
    changes += [f"left out: <VirtualHost {it.addresses}>, which isn't asked for" for it in left_out]
    first = _first(wanted, kept, changes)
    in_order = sorted(kept, key=lambda it: it is not first)
    moved = [line for host in in_order for line in host.lines]
    within = {id(it) for host in hosts for it in host.lines}
    begun = False
    result: list[Line] = []
    for line in lines:
        if id(line) not in within:
            result.append(line)
        elif not begun:
            begun = True
            result += moved
    return result


def _first(wanted: Wanted, kept: Sequence[VirtualHost], changes: list[str]) -> VirtualHost | None:
    """Choose the host that answers requests that name none."""
    if not kept:
        return None
    first = kept[0]
    if wanted.host:
        if not any(wanted.host.lower() in map(str.lower, it.names) for it in kept):
            changes.append(f"no host is called {wanted.host}, so the first one answers")
        return first
    chosen = next((it for it in kept if not it.why_not), first)
    if chosen is not first:
        others = listed(it.names[0] for it in kept if it is not chosen and it.names)
        more = f"; --host NAME asks for another one: {others}" if others else ""
        name = chosen.names[0] if chosen.names else "the next one"
        changes.append(f"{name} answers, not the first host, since {first.why_not}{more}")
    return chosen


def _redirects_all(lines: Sequence[Line]) -> bool:
    """Whether every request is redirected, whatever it asks for."""
    is_conditional = False
    for line in lines:
        if found := _CONDITION.match(line.text):
            is_conditional |= not _HOLDS_FOR_ALL.search(found[1])
        elif _REDIRECTS_ALL.match(line.text) and not is_conditional:
            return True
        else:
            is_conditional = False
    return False


def _outside_sections(lines: Sequence[Line]) -> Iterator[Line]:
    depth = 0
    for line in lines:
        if found := _SECTION.match(line.text):
            depth += -1 if found[1] else 1
        elif depth <= 0:
            yield line


def port_of(address: str) -> int | None:
    """Give the port of `80`, `*:80` or `[::]:80`; None where any port is meant."""
    last = address.rpartition(":")[2]
    return int(last) if last.isascii() and last.isdecimal() and len(last) <= 5 else None
