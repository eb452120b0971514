"""Reads a configuration of HAProxy into sections of lines, and chooses what of it is measured."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.service import Line, Origin
from webdyno.core.text import SECRET
from webdyno.systems.conf.config_files import Variables
from webdyno.systems.conf.relocation import RelocationRequest

SECTIONS = (
    *("global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "mailers"),
    *("userlist", "cache", "program", "ring", "http-errors", "fcgi-app", "log-forward"),
    *("crt-store", "traces", "log-profile"),
)
ITS_OWN = re.compile(r"HAPROXY_\w*")
"""Variables that HAProxy has by itself."""

_VARIABLE = re.compile(
    r"\$(?:\{(?P<name>[A-Za-z_]\w*)(?:\[\*\])?(?:-(?P<default>[^}]*))?\}|(?P<plain>[A-Za-z_]\w*))"
)
_ESCAPED = r"(?s:\\(?:x(?P<code>[0-9A-Fa-f]{2})|(?P<escaped>.)))"
_ESCAPE = re.compile(_ESCAPED)
_PART = re.compile(
    rf"""{_ESCAPED}|'(?P<single>[^']*)'?|"(?P<double>(?:\\.|[^"\\])*)"?""", re.DOTALL
)
LISTENING = ("frontend", "listen")
STATISTICS = re.compile(r"stats|http-request use-service prometheus-exporter")
REFUSING = {"deny", "reject", "silent-drop", "tarpit"}
ON_A_CONDITION = {"if", "unless"}


class Word(NamedTuple):
    """A word of a line."""

    raw: str
    """As it is written."""
    value: str
    """Without quotes, its variables filled."""


@dataclass(frozen=True)
class ConfigLine:
    """A line and its words, comments excluded."""

    text: str
    origin: Origin
    words: tuple[Word, ...]

    @property
    def values(self) -> list[str]:
        """The words without their quotes."""
        return [word.value for word in self.words]

    @property
    def name(self) -> str:
        """The first word; empty where there is none."""
        return self.words[0].value if self.words else ""


@dataclass
class ConfigSection:
    """A section; the lines before the first one have a kind without a name."""

    kind: str
    title: str
    lines: list[ConfigLine] = field(default_factory=list)
    """That which begins it is the first of them."""
    mode: str = "tcp"

    def lines_named(self, *names: str) -> list[ConfigLine]:
        return [line for line in self.lines if line.name in names]


def sections(request: RelocationRequest) -> list[ConfigSection]:
    """Read all sections; raise UserError where a variable has no value.

    Red Hat's unit starts HAProxy with the file and all that lie in the folder `conf.d` next to it.
    """
    reader = _Reader(request)
    all_sections = [ConfigSection("", "")]
    more = sorted(request.file.parent.glob("conf.d/[!.]*.cfg"))
    request.notes.extend(f"reads {file} as well, as Red Hat's HAProxy does" for file in more)
    for line in (line for file in (request.file, *more) for line in request.files.lines(file)):
        read = reader.line(line)
        if read.name in SECTIONS:
            all_sections.append(ConfigSection(read.name, next(iter(read.values[1:]), "")))
        all_sections[-1].lines.append(read)
    reader.variables.demand_all()
    _inherit_modes(all_sections)
    return all_sections


def _inherit_modes(configuration: Iterable[ConfigSection]) -> None:
    """Set the mode of each section: its own, or that of the defaults it follows or names."""
    named: dict[str, str] = {}
    last = "tcp"
    for section in configuration:
        head = section.lines[0].values if section.lines else []
        parent = head[head.index("from") + 1 :][:1] if "from" in head[1:] else []
        modes = [line.values[1] for line in section.lines_named("mode") if len(line.words) > 1]
        section.mode = modes[-1] if modes else named.get(parent[0], last) if parent else last
        if section.kind == "defaults":
            section.mode = modes[-1] if modes else named.get(parent[0], "tcp") if parent else "tcp"
            last = named[section.title] = section.mode


def _meant(escape: re.Match[str]) -> str:
    """Return the character of an escape, a blank for what is none: a value has one line."""
    if escape["escaped"]:
        return " " if escape["escaped"] in "nrt" else str(escape["escaped"])
    letter = chr(int(escape["code"], 16))
    return letter if letter.isprintable() else " "


class _Reader:
    """Takes lines apart, and fills variables as HAProxy does: between double quotes."""

    def __init__(self, request: RelocationRequest) -> None:
        self.variables = Variables(dict(request.given))
        self._own = {name for name, value in request.given.items() if SECRET.search(value)}

    def line(self, line: Line) -> ConfigLine:
        """Take a line apart; `setenv` and its like give variables to those that follow."""
        origin = line.origin or Origin("", 0)
        words = tuple(self._words(line.text, origin))
        if words and words[0].value in {"setenv", "presetenv"} and len(words) > 2:
            name, value = words[1].value, words[2].value
            given = dict(self.variables.values)
            if words[0].value == "setenv" or name not in given:
                given[name] = value
            self.variables.values = given
        is_address = words[:1] and words[0].value in {"bind", "server", "log", "listen"}
        if is_address:
            words = tuple(
                word._replace(value=self._fill(word.value, origin)) if index in {1, 2} else word
                for index, word in enumerate(words)
            )
        return ConfigLine(line.text, origin, words)

    def _words(self, text: str, origin: Origin) -> Iterable[Word]:
        raw = value = ""
        offset, is_word = 0, False
        while offset < len(text) and text[offset] != "#":
            letter = text[offset]
            match = _PART.match(text, offset)
            if letter.isspace():
                if is_word:
                    yield Word(raw, value)
                raw, value, is_word, offset = "", "", False, offset + 1
                continue
            part = match[0] if match else letter
            raw, is_word, offset = raw + part, True, offset + len(part)
            if match is None:
                value += letter
            elif match["double"] is not None:
                filled = self._fill(match["double"], origin)
                value += _ESCAPE.sub(_meant, filled)
            else:
                value += match["single"] if match["single"] is not None else _meant(match)
        if is_word:
            yield Word(raw, value)

    def _fill(self, text: str, origin: Origin) -> str:
        own = {
            name
            for match in _VARIABLE.finditer(text)
            if (name := match["name"] or match["plain"]) in self._own
            or ITS_OWN.fullmatch(name)
            or text[match.start() - 1 : match.start()] == "\\"
        }
        return self.variables.fill(text, origin, _VARIABLE, own)


@dataclass(frozen=True)
class MeasuredBind:
    """What is measured."""

    port: int
    section: ConfigSection
    bind: ConfigLine


def choose_bind(request: RelocationRequest, sections: Sequence[ConfigSection]) -> MeasuredBind:
    """Choose; raise UserError where nothing listens that could be asked."""
    listening = [section for section in sections if section.kind in LISTENING]
    if not listening:
        raise UserError(f"{request.file} has no frontend and no listen, so it serves nothing")
    binds = [
        MeasuredBind(port, section, bind)
        for section in listening
        for bind in section.lines_named("bind")
        if is_secure(bind) == request.is_secure
        for port in ports(bind)
    ]
    reasons = {id(measured): why_unlikely(request, measured.section) for measured in binds}
    unlikely = {
        port: next(filter(None, whys))
        for port in {measured.port for measured in binds}
        if all(whys := [reasons[id(measured)] for measured in binds if measured.port == port])
    }
    port = request.choose_port([measured.port for measured in binds], unlikely)
    fitting = [measured for measured in binds if measured.port == port]
    return next((measured for measured in fitting if not reasons[id(measured)]), fitting[0])


def is_secure(bind: ConfigLine) -> bool:
    return "ssl" in bind.values[2:]


def ports(bind: ConfigLine) -> Iterator[int]:
    """Return the ports of `:80`, `*:80`, `ipv4@10.0.0.1:80` or `:80,:8000-8010`."""
    for address in bind.values[1:2]:
        for each in address.split(","):
            match = re.search(r":([0-9]{1,5})(?:-[0-9]+)?$", each)
            if match and not each.startswith(("quic", "unix@", "abns@", "fd@", "/")):
                yield int(match[1])


def why_unlikely(request: RelocationRequest, section: ConfigSection) -> str:
    """Return a reason against measuring a section; empty if there is none."""
    passes = section.lines_named("use_backend", "default_backend", "server", "server-template")
    texts = [" ".join(line.values) for line in section.lines]
    responses = any(text.startswith("http-request return") for text in texts)
    if not passes and not responses and any(map(STATISTICS.match, texts)):
        return "its pages are statistics"
    if section.mode == "tcp":
        return "mode tcp: it doesn't speak HTTP itself"
    for line in section.lines_named("redirect", "http-request", "tcp-request"):
        words = line.values
        condition = words[_condition(words) :]
        without_tls = "ssl_fc" in " ".join(condition) and not request.is_secure
        if condition and not without_tls:
            continue
        if words[0] == "redirect" or words[1:2] == ["redirect"]:
            return "it only redirects"
        if REFUSING & set(words[1:3]):
            return "it refuses requests"
    return ""


def _condition(words: Sequence[str]) -> int:
    """Return where a line's condition begins; its end where it has none."""
    return next((index for index, word in enumerate(words) if word in ON_A_CONDITION), len(words))
