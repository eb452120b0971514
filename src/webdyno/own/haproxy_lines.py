"""Reads a configuration of HAProxy: sections of lines, and the words of a line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from webdyno.model.origin import Line, Origin
from webdyno.model.text import SECRET
from webdyno.own.moved import Wanted
from webdyno.own.variables import Variables

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
_PART = re.compile(r"""(?s)\\(?P<escaped>.)|'(?P<single>[^']*)'?|"(?P<double>(?:\\.|[^"\\])*)"?""")


class Word(NamedTuple):
    """A word of a line."""

    raw: str
    """As it is written."""
    value: str
    """Without quotes, its variables filled."""


@dataclass(frozen=True)
class ConfigLine:
    """A line and its words, comments left out."""

    text: str
    origin: Origin
    words: tuple[Word, ...]

    @property
    def values(self) -> list[str]:
        """The words without their quotes."""
        return [it.value for it in self.words]

    @property
    def name(self) -> str:
        """The first word; empty where there is none."""
        return self.words[0].value if self.words else ""


@dataclass
class Section:
    """A section; the lines before the first one have a kind without a name."""

    kind: str
    title: str
    lines: list[ConfigLine] = field(default_factory=list)
    """That which begins it is the first of them."""
    mode: str = "tcp"

    def named(self, *names: str) -> list[ConfigLine]:
        """Give the lines that begin with one of these words."""
        return [it for it in self.lines if it.name in names]


def sections(wanted: Wanted) -> list[Section]:
    """Read all sections; raise Mistake where a variable has no value.

    Red Hat's unit starts HAProxy with the file and all that lie in the folder `conf.d` beside it.
    """
    reader = _Reader(wanted)
    found = [Section("", "")]
    more = sorted(wanted.file.parent.glob("conf.d/[!.]*.cfg"))
    wanted.notes.extend(f"reads {it} as well, as Red Hat's HAProxy does" for it in more)
    for line in (line for file in (wanted.file, *more) for line in wanted.files.lines(file)):
        read = reader.line(line)
        if read.name in SECTIONS:
            found.append(Section(read.name, next(iter(read.values[1:]), "")))
        found[-1].lines.append(read)
    reader.variables.demand_all()
    _inherit_modes(found)
    return found


def _inherit_modes(found: Iterable[Section]) -> None:
    """Give each section its mode: its own, or that of the defaults it follows or names."""
    named: dict[str, str] = {}
    last = "tcp"
    for section in found:
        head = section.lines[0].values if section.lines else []
        parent = head[head.index("from") + 1 :][:1] if "from" in head[1:] else []
        said = [it.values[1] for it in section.named("mode") if len(it.words) > 1]
        section.mode = said[-1] if said else named.get(parent[0], last) if parent else last
        if section.kind == "defaults":
            section.mode = said[-1] if said else named.get(parent[0], "tcp") if parent else "tcp"
            last = named[section.title] = section.mode


class _Reader:
    """Takes lines apart, and fills variables as HAProxy does: between double quotes."""

    def __init__(self, wanted: Wanted) -> None:
        self.variables = Variables(dict(wanted.given))
        self._own = {name for name, it in wanted.given.items() if SECRET.search(it)}

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
                it._replace(value=self._filled(it.value, origin)) if at in {1, 2} else it
                for at, it in enumerate(words)
            )
        return ConfigLine(line.text, origin, words)

    def _words(self, text: str, origin: Origin) -> Iterable[Word]:
        raw = value = ""
        at, is_word = 0, False
        while at < len(text) and text[at] != "#":
            letter = text[at]
            found = _PART.match(text, at)
            if letter.isspace():
                if is_word:
                    yield Word(raw, value)
                raw, value, is_word, at = "", "", False, at + 1
                continue
            part = found[0] if found else letter
            raw, is_word, at = raw + part, True, at + len(part)
            if found is None:
                value += letter
            elif found["double"] is not None:
                filled = self._filled(found["double"], origin)
                value += re.sub(r"\\(.)", r"\1", filled)
            else:
                value += found["escaped"] or found["single"] or ""
        if is_word:
            yield Word(raw, value)

    def _filled(self, text: str, origin: Origin) -> str:
        own = {
            name
            for it in _VARIABLE.finditer(text)
            if (name := it["name"] or it["plain"]) in self._own
            or ITS_OWN.fullmatch(name)
            or text[it.start() - 1 : it.start()] == "\\"
        }
        return self.variables.filled(text, origin, _VARIABLE, own)
