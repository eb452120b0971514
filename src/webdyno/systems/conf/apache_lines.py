"""Reads the lines of a configuration of Apache, and chooses which of its hosts is measured."""

import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.format import listed
from webdyno.core.service import Line, Origin
from webdyno.core.text import SECRET
from webdyno.systems.conf.apache_modules import BUILT_IN, DIRECTIVES, plain_module
from webdyno.systems.conf.config_files import MOST_FILES, Variables
from webdyno.systems.conf.relocation import FOLDER, HTTP, HTTPS, RelocationRequest, port_of

SYSTEM = Path("/etc/apache2")
"""Where Debian's Apache looks for relative paths."""
DEBIANS = {
    "APACHE_RUN_DIR": FOLDER,
    "APACHE_LOCK_DIR": FOLDER,
    "APACHE_LOG_DIR": FOLDER,
    "APACHE_PID_FILE": f"{FOLDER}/httpd.pid",
    "APACHE_LOG_ARGUMENTS": "",
    "APACHE_RUN_USER": "www-data",
    "APACHE_RUN_GROUP": "www-data",
}
"""What its /etc/apache2/envvars gives to configurations."""

MOST_DEFINED = 1_000_000
_INCLUDE = re.compile(r'\s*+Include(Optional)?\s++"?([^"]++)"?$', re.IGNORECASE)
_CONDITION = re.compile(
    r"\s*+<(/?)If(Define|Module)\b\s*+(!?)\s*+\"?([^\s\">]*+)\"?\s*+>", re.IGNORECASE
)
_DEFINE = re.compile(r'\s*+(Un)?Define\s++(\w++)\s*+("[^"]*"|\S*+)$', re.IGNORECASE)
_SERVER_ROOT = re.compile(r'\s*ServerRoot\s+"?([^"\s]+)', re.IGNORECASE)
_LOAD = re.compile(r"\s*LoadModule\s+(\w+)", re.IGNORECASE)
_MACRO = re.compile(r"\s*+<Macro\s++\S++\s++([^>]*+)>", re.IGNORECASE)
_QUOTED_NAME = re.compile(r"""(\s*)(["'])([^"'\\]*)\2\s*(.*)""", re.DOTALL)
_NAME = re.compile(r"\s*(?:<(?:/?[A-Za-z][\w-]*>?)|[A-Za-z][\w-]*)(?:\s|$)")
HOST_BEGIN = re.compile(r"(\s*+)<VirtualHost\s++(.*)>$", re.IGNORECASE)
HOST_END = re.compile(r"\s*</VirtualHost>", re.IGNORECASE)
_LISTEN = re.compile(r"\s*Listen\s+(\S+)\s*(\S*)", re.IGNORECASE)
_SSL = re.compile(r"\s*SSLEngine\s+on\b", re.IGNORECASE)
_NAMES = re.compile(r"\s*Server(?:Name|Alias)\s+(.*)", re.IGNORECASE)
_SECTION = re.compile(r"\s*<(/?)(?!If(?:Module|Define))\w", re.IGNORECASE)
_REDIRECTS_ALL = re.compile(
    r"\s*(?:Redirect\w*\s+(?:\w+\s+)?\"?/\"?\s|RedirectMatch\s+(?:\w+\s+)?\"?\^?/?(?:\(?\.\*\)?)?\$?\"?\s"
    r"|RewriteRule\s++\"?\^?/?(?:\(?\.[*?]+\)?)?\$?\"?\s++\"?https?://.*\[[^]]*\bR)",
    re.IGNORECASE,
)
_REWRITE_CONDITION = re.compile(r"\s*RewriteCond\s+(\S+)", re.IGNORECASE)
_HOLDS_FOR_ALL = re.compile(r"%\{(?:HTTPS|SERVER_NAME|SERVER_PORT|REQUEST_SCHEME)\}", re.IGNORECASE)
_REFUSES_ALL = re.compile(r"\s*Redirect\s+(?:4\d\d|gone)\s+\"?/\"?\s*$", re.IGNORECASE)


class ApacheLines:
    """The lines of one configuration as Apache would see them."""

    def __init__(self, request: RelocationRequest) -> None:
        self.request = request
        self.missing: dict[Origin, UserError] = {}
        """Includes of what can't be found, by their lines: for who needs these."""
        its_folder = self.request.file.parent
        red_hats = [its_folder.parent] if its_folder.name == "conf" else []
        begin = [self.request.folder] if self.request.folder else []
        self.roots = [*red_hats, its_folder, *begin, SYSTEM]
        """Where relative paths are looked for, the likeliest first."""
        given = self.request.given
        self._values = {**DEBIANS, **given}
        self._variables = Variables(self._values)
        self._kept = {name for name, text in given.items() if SECRET.search(text)}
        """Variables that Apache itself fills in."""
        self._defined: set[str] = set()
        self._loaded: set[str] = set()
        self._conditions: list[tuple[bool | None, Origin, str]] = []

    def all(self, files: Iterable[Path]) -> list[Line]:
        """Read the lines of files, one after the other; raise UserError where that can't be."""
        lines = [line for file in files for line in self._lines(file)]
        if self._conditions:
            _, origin, kind = self._conditions[-1]
            section = f"If{kind.capitalize()}"
            raise UserError(f"{origin}: <{section}> has no end; close it with </{section}>")
        self._variables.demand_all()
        return lines

    def existing(self, path: str) -> Path | None:
        """Return the file or folder that a path means; None where there is none."""
        return next((file for root in self.roots if os.path.lexists(file := root / path)), None)

    def _lines(self, file: Path, named: Origin | None = None, depth: int = 0) -> Iterator[Line]:
        for written, origin in _join_lines(self.request.files.lines(file, named, depth)):
            text = _plain(written)
            if match := _CONDITION.match(text):
                if self._condition(match, origin):
                    yield Line(text, origin)
                continue
            if not self._is_read():
                continue
            if match := _MACRO.match(text):
                self._kept |= _parameters(match[1], origin)
            filled = self._variables.fill(text, origin, own=self._kept)
            line = Line(_plain(filled), origin)
            if line.text.endswith("\\"):
                raise UserError(f"{origin} ends in a backslash and a blank; leave one of them out")
            if (words := line.text.split()) and not _NAME.match(line.text):
                raise UserError(f"{origin}: {words[0]} is no directive's name; write it out")
            self._note(line.text)
            if not (include := _INCLUDE.match(line.text)):
                yield line
                continue
            try:
                included = self._files_of_include(include[2], bool(include[1]), origin)
            except UserError as error:
                self.missing[origin] = error
                yield line
                continue
            for each in included:
                yield from self._lines(each, origin, depth + 1)

    def _note(self, text: str) -> None:
        """Remember what a line says about those that follow."""
        if match := _DEFINE.match(text):
            undoes, name, value = match[1], match[2], match[3].strip('"')
            if any(holds is None for holds, *_ in self._conditions):
                self._kept.add(name)
            elif undoes:
                self._values.pop(name, None)
                self._defined.discard(name)
            else:
                self._values[name] = value
                self._defined.add(name)
                if sum(map(len, self._values.values())) > MOST_DEFINED:
                    raise UserError(
                        f"{name}: what is defined has more than {MOST_DEFINED:,} characters by "
                        "then; have it name fewer others"
                    )
        elif match := _SERVER_ROOT.match(text):
            if os.path.isdir(match[1]):  # noqa: PTH112 (Path's raises)
                self.roots.insert(0, Path(match[1]))
        elif match := _LOAD.match(text):
            self._loaded.add(plain_module(match[1]))

    def _condition(self, match: re.Match[str], origin: Origin) -> bool:
        """Open or close a section; whether its line stays."""
        ends, kind, isnt, name = match[1], match[2].lower(), bool(match[3]), match[4]
        if ends:
            if not self._conditions or self._conditions[-1][2] != kind:
                raise UserError(f"{origin}: </If{match[2]}> closes no <If{match[2]}>")
            closed, *_ = self._conditions.pop()
            return closed is not False and self._is_read()
        holds = self._is_loaded(name)
        if kind == "define":
            holds = None if name in self._kept else name in self._defined
        stays = self._is_read()
        self._conditions.append((None if holds is None else holds != isnt, origin, kind))
        return stays and self._is_read()

    def _is_read(self) -> bool:
        return all(holds is not False for holds, *_ in self._conditions)

    def _is_loaded(self, name: str) -> bool | None:
        """Whether a module is there; None where nobody knows before Apache starts."""
        module = plain_module(name)
        if module in self._loaded or module in BUILT_IN:
            return True
        return False if self._loaded and module in DIRECTIVES else None

    def _files_of_include(self, pattern: str, is_optional: bool, origin: Origin) -> list[Path]:
        """Return the files that an include means, a folder's below it included."""
        if "${" in pattern:
            return []  # its variables are demanded in the end
        if is_optional and not glob.has_magic(pattern) and not self.existing(pattern):
            return []
        paths = self.request.files.files_of_include(pattern, self.roots, origin)
        if not paths and not is_optional:
            looked = " or ".join(dict.fromkeys(str(root / pattern) for root in self.roots))
            raise UserError(
                f"{origin} includes {pattern}, and there is no {looked}; copy these files there, "
                "or leave the line out"
            )
        below = islice((each for included in paths for each in _files_of(included)), MOST_FILES + 1)
        return list(below)


def _plain(text: str) -> str:
    """Return a line without what Apache takes off it: quotes of its first word, blanks behind."""
    text = text.rstrip()
    match = _QUOTED_NAME.fullmatch(text)
    return f"{match[1]}{match[3]} {match[4]}".rstrip() if match else text


def _parameters(words: str, origin: Origin) -> set[str]:
    """Return a macro's parameters; raise UserError where one could be a directive's name."""
    for word in words.split():
        if not re.match(r"[\"']?[$%@](?!\{)", word):
            raise UserError(f"{origin}: have the macro's parameter {word} begin with $, as $NAME")
    return set(re.findall(r"\w+", words))


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(
            file for file in islice(path.rglob("*"), MOST_FILES + 1) if file.is_file()
        )
    else:
        yield path


def _join_lines(lines: Iterable[Line]) -> Iterator[tuple[str, Origin]]:
    """Join continued lines, and omit comments and empty lines."""
    parts: list[str] = []
    first: Origin | None = None
    for text, origin in lines:
        first = first or origin
        if text.endswith("\\"):
            parts.append(text[:-1])
            continue
        whole = "".join([*parts, text])
        if first and whole.strip() and not whole.lstrip().startswith("#"):
            yield whole, first
        parts, first = [], None
    whole = "".join(parts)
    if first and whole.strip() and not whole.lstrip().startswith("#"):
        yield whole, first


@dataclass(eq=False)
class VirtualHost:
    """A `<VirtualHost>`, with the lines from its beginning to its end."""

    addresses: str
    lines: list[Line]

    @property
    def ports(self) -> list[int | None]:
        """The ports it is for, None being any."""
        return [port_of(word) for word in self.addresses.split()]

    @property
    def is_secure(self) -> bool:
        return any(_SSL.match(line.text) for line in self.lines)

    @property
    def names(self) -> list[str]:
        """The names it answers to."""
        matches = (_NAMES.match(line.text) for line in self.lines)
        return [name.strip('"') for match in matches if match for name in match[1].split()]

    @property
    def why_not(self) -> str:
        """The reason against measuring it; empty where there is none."""
        everywhere = list(outside_sections(self.lines[1:-1]))
        if any(_REFUSES_ALL.match(line.text) for line in everywhere):
            return "it refuses everything"
        if _redirects_all(everywhere):
            return "it only redirects"
        locations = "".join(f"{line.text.strip()}\n" for line in self.lines)
        is_denied = re.search(r"(?i)<Location \"?/\"?>\s*Require all denied", locations)
        return "it refuses everything" if is_denied else ""


def hosts_of(lines: Sequence[Line]) -> list[VirtualHost]:
    """Return the hosts in the order in which they stand."""
    hosts: list[VirtualHost] = []
    host: VirtualHost | None = None
    for line in lines:
        if match := HOST_BEGIN.match(line.text):
            host = VirtualHost(match[2].strip(), [])
            hosts.append(host)
        if host:
            host.lines.append(line)
        if HOST_END.match(line.text):
            host = None
    return hosts


def measured_port(request: RelocationRequest, lines: Sequence[Line]) -> int:
    """Choose the port that is measured; a host speaks TLS if it says SSLEngine on."""
    hosts = hosts_of(lines)
    ports: list[int | None] = []
    secure: set[int | None] = {HTTPS}
    for line in lines:
        if match := _LISTEN.match(line.text):
            ports.append(port_of(match[1]))
            secure |= {ports[-1]} if match[2].lower() == "https" else set()
    for host in hosts:
        ports += host.ports
        secure |= set(host.ports) if host.is_secure else set()
    if not request.is_secure and (not ports or None in ports):
        ports.append(HTTP)
    fitting = [port for port in ports if port is not None and (port in secure) == request.is_secure]
    called = [host for host in hosts if _is_called(host, request.host)]
    with_host = {port for host in called for port in host.ports if port}
    return request.choose_port(fitting, _against(hosts, fitting), with_host)


def _against(hosts: Sequence[VirtualHost], ports: Sequence[int]) -> dict[int, str]:
    """Return the reasons against ports: each of their hosts refuses, or only redirects."""
    reasons: dict[int | None, dict[int, str]] = defaultdict(dict)
    for index, host in enumerate(hosts):  # there may be thousands, with a port each
        why_not = host.why_not
        for port in host.ports:
            reasons[port][index] = why_not
    against = {}
    for port in dict.fromkeys(ports):
        of_port = dict(sorted({**reasons[port], **reasons[None]}.items()))
        if of_port and all(of_port.values()):
            against[port] = next(iter(of_port.values()))
    return against


def measured_lines(
    request: RelocationRequest, lines: Sequence[Line], port: int, changes: list[str]
) -> list[Line]:
    """Leave hosts out that are on other ports, and have the one come first that is to answer."""
    hosts = hosts_of(lines)
    kept: list[VirtualHost] = []
    for host in hosts:
        if {port, None} & set(host.ports):
            kept.append(host)
        else:
            changes.append(f"excluded: <VirtualHost {host.addresses}>, which isn't requested")
    first = _first(request, kept, changes)
    in_order = sorted(kept, key=lambda host: host is not first)
    moved = [line for host in in_order for line in host.lines]
    within = {id(line) for host in hosts for line in host.lines}
    begun = False
    result: list[Line] = []
    for line in lines:
        if id(line) not in within:
            result.append(line)
        elif not begun:
            begun = True
            result += moved
    return result


def _first(
    request: RelocationRequest, kept: Sequence[VirtualHost], changes: list[str]
) -> VirtualHost | None:
    """Choose the host that answers requests that name none."""
    if not kept:
        return None
    first = kept[0]
    names = [name for host in kept for name in host.names]
    if request.host:
        is_called = any(_is_called(host, request.host) for host in kept)
        request.note_site(request.host if is_called else "", names)
        return first
    chosen = next((host for host in kept if not host.why_not), first)
    if chosen is not first:
        others = listed(host.names[0] for host in kept if host is not chosen and host.names)
        more = f"; --host NAME asks for another one: {others}" if others else ""
        name = chosen.names[0] if chosen.names else "the next one"
        changes.append(f"{name} answers, not the first host, since {first.why_not}{more}")
    else:
        request.note_site(next(iter(first.names), ""), names)
    return chosen


def _is_called(host: VirtualHost, name: str) -> bool:
    """Whether a host answers to a name; aliases may have wildcards."""
    return bool(name) and any(fnmatchcase(name.lower(), called.lower()) for called in host.names)


def _redirects_all(lines: Sequence[Line]) -> bool:
    is_conditional = False
    for line in lines:
        if match := _REWRITE_CONDITION.match(line.text):
            is_conditional |= not _HOLDS_FOR_ALL.search(match[1])
        elif _REDIRECTS_ALL.match(line.text) and not is_conditional:
            return True
        else:
            is_conditional = False
    return False


def outside_sections(lines: Sequence[Line]) -> Iterator[Line]:
    """Return the lines that hold for all of what these are of: a server, or a virtual host."""
    depth = 0
    for line in lines:
        if match := _SECTION.match(line.text):
            depth += -1 if match[1] else 1
        elif depth <= 0:
            yield line
