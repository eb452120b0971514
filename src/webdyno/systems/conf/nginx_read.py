"""Reads a configuration of nginx: its directives, and whom it passes requests on to."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import crossplane

from webdyno.core.errors import UserError
from webdyno.core.format import listed_to
from webdyno.core.service import Origin
from webdyno.systems.conf.config_files import BRACED_OR_PLAIN, Variables
from webdyno.systems.conf.passing import PORTS, Backends, PassedOn
from webdyno.systems.conf.relocation import RelocationRequest

SYSTEM = Path("/etc/nginx")
"""Where nginx of distributions looks for relative paths."""
DEEPEST_BLOCKS = 100
TEMPLATES = (".template", ".tmpl", ".tpl")
FOLDERS_OF_PARTS = {"conf.d", "sites-available", "sites-enabled", "http.d", "default.d"}
SHOWN_FILES = 3

_DEFINED = re.compile(r"\b(?:set|auth_request_set|perl_set|js_set|js_var)\s+\$(\w+)|\?P?<(\w+)>")
_DEFINED_BY_BLOCK = re.compile(r"\b(?:map|geo|split_clients)\b([^;{]*)(\{?)")
_LAST_VARIABLE = re.compile(r"\$(\w+)\s*\Z")
"""Where a configuration gives a variable its value."""
_COMMENT = re.compile(r"(?m)(?:^|(?<=[\s;{}]))#.*$")


@dataclass(eq=False)
class Directive:
    """A directive, perhaps with a block of others, and where it stands."""

    name: str
    args: list[str]
    block: "list[Directive] | None" = None
    origin: Origin | None = None

    @property
    def inner(self) -> "list[Directive]":
        """The directives of its block; none without a block."""
        return [] if self.block is None else self.block

    @property
    def text(self) -> str:
        """Its line, without what belongs to a block."""
        return " ".join([self.name, *self.args])


def of_name(name: str, block: Iterable[Directive]) -> list[Directive]:
    """Return the directives of a block that have a name."""
    return [directive for directive in block if directive.name == name]


def read_directives(request: RelocationRequest) -> list[Directive]:
    """Read all directives; raise UserError, with file and line, where that can't be."""
    reader = _Reader(request, Variables(request.given))
    directives = list(reader.file(request.file, None, 0, 0))
    reader.variables.demand_all()
    if reader.of_this_machine:
        named = listed_to(SHOWN_FILES, list(map(str, reader.of_this_machine)))
        request.notes.append(f"includes of this machine: {named}")
    return directives


@dataclass
class _Reader:
    request: RelocationRequest
    variables: Variables
    of_this_machine: dict[Path, None] = field(default_factory=dict)
    """Files that were included from outside the configuration's folder."""

    def file(
        self, file: Path, named: Origin | None, includes: int, blocks: int
    ) -> Iterator[Directive]:
        """Return a file's directives, inside so many blocks."""
        text = self._fill(self.request.files.text(file, named, includes), file)
        yield from self._with_includes(_parse(text, file), file, includes, blocks)

    def _with_includes(
        self, parsed: list[dict[str, Any]], file: Path, includes: int, blocks: int
    ) -> Iterator[Directive]:
        """Read what crossplane has parsed, with what it includes."""
        for each in parsed:
            name, args, origin = each["directive"], each["args"], Origin(str(file), each["line"])
            if blocks > DEEPEST_BLOCKS:
                raise UserError(f"{origin}: more than {DEEPEST_BLOCKS} blocks inside each other")
            if name == "include" and args:
                for path in self._files_of_include(args[0], origin):
                    if not path.is_relative_to(self._home):
                        self.of_this_machine[path] = None
                    yield from self.file(path, origin, includes + 1, blocks)
                continue
            block = None
            if "block" in each:
                block = list(self._with_includes(each["block"], file, includes, blocks + 1))
            yield Directive(name, args, block, origin)

    def _files_of_include(self, pattern: str, origin: Origin) -> list[Path]:
        """Find the files that an include means; a template may mean another template."""
        find = self.request.files.files_of_include
        folders = [self.request.file.parent, self._home, SYSTEM]
        try:
            return find(pattern, folders, origin)
        except UserError:
            if not origin.file.endswith(TEMPLATES):
                raise
            with suppress(UserError):
                return find(f"{pattern}{Path(origin.file).suffix}", folders, origin)
            raise

    @property
    def _home(self) -> Path:
        """The folder of the whole configuration: a part of one lies in a folder of that."""
        folder = self.request.file.parent
        return folder.parent if folder.name in FOLDERS_OF_PARTS else folder

    def _fill(self, text: str, file: Path) -> str:
        """Fill a template's variables: capital names, since nginx's own have small letters."""
        given = self.variables.values
        is_template = file.name.endswith(TEMPLATES)
        plain_text = _COMMENT.sub("", text)
        variables = BRACED_OR_PLAIN.findall(plain_text)
        braced = {name for name, _ in variables if name}
        defined = set(chain.from_iterable(_DEFINED.findall(plain_text)))
        for head, begins in _DEFINED_BY_BLOCK.findall(plain_text):
            if begins and (variable := _LAST_VARIABLE.search(head)):
                defined.add(variable[1])
        filled = {
            name
            for name in filter(None, chain.from_iterable(variables))
            if name not in defined
            and (is_template or name.isupper())
            and (name in given or (name.isupper() and (is_template or name in braced)))
        }
        every = {match["name"] or match["plain"] for match in BRACED_OR_PLAIN.finditer(text)}
        return self.variables.fill(text, Origin(str(file), 1), BRACED_OR_PLAIN, every - filled)


def _demand_ends(copy: str, file: Path) -> None:
    """Raise UserError for a directive without its end, which crossplane would let pass."""
    first, line = "", 0
    try:
        for word, number, quoted in crossplane.lex(copy):
            if word in {";", "{", "}"} and not quoted:
                if word == "}" and first:
                    break
                first = ""
            elif quoted or not word.startswith("#"):
                first, line = first or word, number
        else:
            if not first:
                return
    except crossplane.errors.NgxParserSyntaxError:
        return  # the parser says the same, and names its line
    raise UserError(f'{file}:{line}: directive "{first:.60}" is not terminated by ";"')


def _parse(text: str, file: Path) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as copy:
        copy.write(text)
        copy.flush()
        _demand_ends(copy.name, file)
        payload = crossplane.parse(
            copy.name, single=True, strict=False, check_ctx=False, check_args=False, comments=False
        )
    if payload["errors"]:
        fault = payload["errors"][0]
        line = fault["line"] or text.count("\n") + 1
        why = fault["error"].rpartition(" in ")[0] or fault["error"] or "unexpected end of file"
        if "recursion" in why:
            why = "blocks are nested too deep"
        raise UserError(f"{file}:{line}: {why}")
    parsed: list[dict[str, Any]] = payload["config"][0]["parsed"]
    return parsed


TABLES = {"map", "geo", "split_clients"}
"""Blocks that give a variable one of several values."""
DEFAULTS = {"default", "*"}
AFTER_THE_HOST = {"request_uri": ["/"], "is_args": ["", "/"]}
"""What ends a host before it, or is empty: nothing in a configuration changes how these begin."""
MOST_VALUES = 1_000
DEEPEST = 5
"""Variables within the values of variables."""
_PASSING = re.compile(r"\w+_pass|endpoint|js_fetch_proxy")
"""`endpoint` is where `otel_exporter` says of each request."""
_SCHEME = re.compile(r"(?:[a-z0-9]+|\$\w+)://")
_IP = re.compile(r"[0-9.]+|\[.*\]")
_HOST = re.compile(r"\[[^\]]*\]|[^:/\s]+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ARGUMENTS = re.compile(r"(?i)\A\$(?:\{(?:args|query_string)\}|(?:args|query_string)\b)")
_OF_NGINX = re.compile(
    r"args|query_string|limit_rate|(?:arg|cookie|http|jwt|sent_http|sent_trailer|upstream)_.*"
)
"""Variables that have values of their own where a configuration gives them others."""
_READS = re.compile(
    r"(?:proxy|fastcgi|grpc|memcached|scgi|uwsgi)_.+|if|return|rewrite|add_header|add_trailer|root|"
    r"alias|try_files|error_page|access_log|log_format|limit_.+|sub_filter"
)
"""Directives that give no variable a value; others may, those that they name."""
_RUNS_CODE = re.compile(r"\w*(?:js|lua|perl|ruby|wasm)\w*")
"""Directives of code, which gives whichever variable any value."""
_GROUP = re.compile(r"\(\?P?[<'](\w+)[>']")
_TARGET = re.compile(
    r"(?P<scheme>[a-z0-9]+://)?(?P<host>\[[^\]]*\]|[\w.-]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?$].*)?"
)
_BY_SOCKET = re.compile(r"(?P<scheme>[a-z0-9]+://)?unix:(?P<path>[^:;\s]+)(?::(?P<rest>.*))?")
_AUTHORITY = re.compile(r"(?P<scheme>(?:[a-z0-9]+://)?)(?P<at>[^/]*)(?P<rest>/.*|)")


def hosts_at_start(directives: Sequence[Directive]) -> list[PassedOn]:
    """Return the hosts that nginx looks up when it starts, whether or not it passes requests on."""
    groups = _groups(directives)
    every = chain.from_iterable(groups.values())
    members = [member for member in every if "resolve" not in member.args]
    targets = [target for target in _targets(directives) if "$" not in target.args[0]]
    return list(_hosts(_in_order(directives, [*targets, *members]), groups, {}))


def passed_on(directives: Sequence[Directive]) -> list[PassedOn]:
    """Return all places where requests are passed on.

    A variable is each value that the configuration gives it; else it stands as it is written. Name
    servers are among them where they say at which address a name is.
    """
    groups, values = _groups(directives), _values(directives)
    targets = list(_targets(directives))
    named = {host for target in targets for host in _hosts_named(target.args[0], values)}
    is_open = any("$" in host for host in named)
    used = [group for name, group in groups.items() if is_open or name in named]
    members = list(chain.from_iterable(used))
    at_requests = [each for each in targets if "$" in each.args[0]]
    at_requests += [each for each in members if "resolve" in each.args]
    names = [each for each in _hosts(at_requests, groups, values) if not _IP.fullmatch(each.host)]
    resolvers = of_name("resolver", _everything(directives)) if names else []
    words = [(word, each.origin) for each in resolvers for word in each.args if "=" not in word]
    return [
        *_hosts(_in_order(directives, [*targets, *members]), groups, values),
        *(PassedOn(_host_of(word), origin) for word, origin in words),
    ]


def _in_order(all_of_it: Sequence[Directive], some: Iterable[Directive]) -> list[Directive]:
    chosen = set(map(id, some))
    return [directive for directive in _everything(all_of_it) if id(directive) in chosen]


def _hosts(
    places: Sequence[Directive],
    groups: Mapping[str, Sequence[Directive]],
    values: Mapping[str, Sequence[str]],
) -> Iterator[PassedOn]:
    for place in places:
        for host in _hosts_named(place.args[0], values):
            if place.name == "server" or host not in groups:
                yield PassedOn(host, place.origin)


def _hosts_named(target: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return the hosts that a target may name: none for a Unix socket."""
    for text in _expand(target, values):
        host = _host_of(text)
        if host and host != "unix" and not host.startswith("."):  # of an empty variable
            yield host


def _host_of(text: str) -> str:
    match = _HOST.match(text, scheme.end() if (scheme := _SCHEME.match(text)) else 0)
    return match[0].lower() if match else ""


def _expand(text: str, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return all that a text may come to be; a variable stays that only a request has."""
    texts = [text]
    for _ in range(DEEPEST):
        texts = [new for text in texts for new in _with_first_variable_filled(text, values)]
        if len(texts) > MOST_VALUES:
            return [text]
    return list(dict.fromkeys(texts))


def _with_first_variable_filled(text: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for match in _VARIABLE.finditer(text):
        name, before = (match[1] or match[2]).lower(), text[: match.start()]
        given = AFTER_THE_HOST.get(name) if name == "request_uri" or _host_of(before) else None
        for value in given or values.get(name, []):
            rest = text[match.end() :]
            # Where there is no question mark there are no arguments.
            yield before + (value + rest if value or not given else _ARGUMENTS.sub("", rest))
        if given or name in values:
            return
    yield text


def _values(directives: Sequence[Directive]) -> dict[str, list[str]]:
    """Return what variables may be, by names in small letters, but for those that may be anything.

    A variable is empty where nothing that gives it a value has been come by.
    """
    every = list(_everything(directives))
    values: dict[str, list[str]] = {}
    unknown = {name for directive in every for name in _GROUP.findall(directive.text)}
    entries = {id(entry) for table in every if table.name in TABLES for entry in table.inner}
    if any(_RUNS_CODE.fullmatch(each.name) for each in every if id(each) not in entries):
        return {}
    for directive in every:
        name, words = directive.name, directive.args
        if name == "set" and len(words) == 2:
            values.setdefault(words[0].lstrip("$").lower(), [""]).append(words[1])
        elif name in TABLES and words:
            given = [entry.args[-1] for entry in directive.inner if entry.args]
            has_default = any(entry.name in DEFAULTS for entry in directive.inner)
            values.setdefault(words[-1].lstrip("$").lower(), [""] * (not has_default)).extend(given)
        elif id(directive) not in entries and not _READS.fullmatch(name):
            unknown.update(chain.from_iterable(_VARIABLE.findall(directive.text)))
    for name in [*filter(_OF_NGINX.fullmatch, values), *map(str.lower, unknown)]:
        values.pop(name, None)
    return {name: list(dict.fromkeys(given)) for name, given in values.items()}


def _groups(directives: Sequence[Directive]) -> dict[str, list[Directive]]:
    """Return members by the name of their group, which may be one of HTTP and one of TCP."""
    groups: dict[str, list[Directive]] = {}
    for upstream in of_name("upstream", _everything(directives)):
        servers = [each for each in of_name("server", upstream.inner) if each.block is None]
        if upstream.args:
            members = groups.setdefault(upstream.args[0].lower(), [])
            members += [server for server in servers if server.args]
    return groups


def _targets(directives: Sequence[Directive]) -> Iterator[Directive]:
    for directive in _everything(directives):
        if _PASSING.fullmatch(directive.name) and directive.args:
            yield directive


def _everything(directives: Sequence[Directive]) -> Iterator[Directive]:
    for directive in directives:
        yield directive
        yield from _everything(directive.inner)


def lead_to_backends(backends: Backends, directives: Sequence[Directive]) -> None:
    """Have targets, members of groups and variables name backends in the place of hosts."""
    groups, values = _groups(directives), _values(directives)
    for passing in _targets(directives):
        target = _with_host(passing.args[0], values)
        passing.args = [_instead(target, groups, backends), *passing.args[1:]]
    for member in chain.from_iterable(groups.values()):  # also one called like its group
        member.args = [_instead(member.args[0], {}, backends), *member.args[1:]]
    for directive in _everything(directives):
        entries = directive.inner if directive.name in TABLES else []
        if directive.name == "set" and len(directive.args) == 2:
            entries = [directive]
        for entry in entries:
            *before, value = entry.args or [""]
            if _SCHEME.match(value) or re.search(r"[^:]:[0-9]+$", value):
                entry.args = [*before, _instead(value, groups, backends)]


def _with_host(target: str, values: Mapping[str, Sequence[str]]) -> str:
    """Fill the variable that is a target's host, if it has but one value."""
    match = _AUTHORITY.fullmatch(target)
    if not match or "$" not in match["at"]:
        return target
    may_be = [text for text in _expand(match["at"], values) if _host_of(text)]
    if len(may_be) != 1 or not re.fullmatch(r"[\w.-]+(?::[0-9]+)?", may_be[0]):
        return target
    return f"{match['scheme']}{may_be[0]}{match['rest']}"


def _instead(target: str, groups: Mapping[str, Sequence[Directive]], backends: Backends) -> str:
    """Return a target with the address of a backend, if it leads to one; else as it is."""
    if match := _BY_SOCKET.fullmatch(target):
        address, rest = backends.of_socket(match["path"]), match["rest"] or ""
    elif (match := _TARGET.fullmatch(target)) and match["host"].lower() not in groups:
        scheme = (match["scheme"] or "http://").removesuffix("://")
        port = int(match["port"]) if match["port"] else PORTS.get(scheme)
        address, rest = backends.of_host(match["host"], port), match["rest"] or ""
    else:
        return target
    if address is None:
        return target
    where = f"unix:{address.socket}{':' if rest else ''}" if address.socket else address.text
    return f"{match['scheme'] or ''}{where}{rest}"
