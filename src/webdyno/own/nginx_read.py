"""Reads a configuration of nginx into its directives, includes in their places."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import crossplane

from webdyno.model.errors import UserError
from webdyno.model.format import listed_to
from webdyno.model.origin import Line, Origin
from webdyno.own.config_files import BRACED_OR_PLAIN, Variables
from webdyno.own.relocation import RelocationRequest

Directive = dict[str, Any]
"""As crossplane gives it: `directive`, `args`, perhaps a `block` of more; and its `origin`."""

SYSTEM = Path("/etc/nginx")
"""Where nginx of distributions looks for relative paths."""
DEEPEST_BLOCKS = 100
INDENT = "    "
TEMPLATES = (".template", ".tmpl", ".tpl")
FOLDERS_OF_PARTS = {"conf.d", "sites-available", "sites-enabled", "http.d", "default.d"}
SHOWN_FILES = 3

_DEFINED = re.compile(
    r"\b(?:set|auth_request_set|perl_set|js_set|js_var)\s+\$(\w+)"
    r"|\b(?:map|geo|split_clients)\b[^;{]*\$(\w+)\s*\{"
    r"|\?P?<(\w+)>"
)
"""Where a configuration gives a variable its value."""
_COMMENT = re.compile(r"(?m)(?:^|(?<=[\s;{}]))#.*$")


def read_directives(request: RelocationRequest) -> list[Directive]:
    """Give all directives; raise UserError, with file and line, where that can't be."""
    reader = _Reader(request, Variables(request.given))
    directives = list(reader.file(request.file, None, 0, 0))
    reader.variables.demand_all()
    if reader.of_this_machine:
        named = listed_to(SHOWN_FILES, list(map(str, reader.of_this_machine)))
        request.notes.append(f"includes of this machine: {named}")
    return directives


def written(directives: list[Directive], depth: int = 0) -> Iterator[Line]:
    """Give the lines of directives, each with where it comes from."""
    margin = INDENT * depth
    for directive in directives:
        origin = directive.get("origin")
        if "block" in directive:
            head = crossplane.build([{**directive, "block": []}]).removesuffix("\n}")
            yield from (Line(margin + text, origin) for text in head.split("\n"))
            yield from written(directive["block"], depth + 1)
            yield Line(margin + "}", origin)
        else:
            text = margin + crossplane.build([directive])
            yield from (Line(part, origin) for part in text.split("\n"))


@dataclass
class _Reader:
    request: RelocationRequest
    variables: Variables
    of_this_machine: dict[Path, None] = field(default_factory=dict)
    """Files that were included from outside the configuration's folder."""

    def file(
        self, file: Path, named: Origin | None, includes: int, blocks: int
    ) -> Iterator[Directive]:
        """Give a file's directives, inside so many blocks."""
        text = self._filled(self.request.files.text(file, named, includes), file)
        yield from self._with_includes(_parsed(text, file), file, includes, blocks)

    def _with_includes(
        self, directives: list[Directive], file: Path, includes: int, blocks: int
    ) -> Iterator[Directive]:
        for directive in directives:
            origin = Origin(str(file), directive["line"])
            if blocks > DEEPEST_BLOCKS:
                raise UserError(f"{origin}: more than {DEEPEST_BLOCKS} blocks inside each other")
            if directive["directive"] == "include" and directive["args"]:
                yield from self._included(directive["args"][0], origin, includes, blocks)
                continue
            inner = {}
            if "block" in directive:
                children = self._with_includes(directive["block"], file, includes, blocks + 1)
                inner = {"block": list(children)}
            yield {**directive, **inner, "origin": origin}

    def _included(
        self, pattern: str, origin: Origin, includes: int, blocks: int
    ) -> Iterator[Directive]:
        for each in self._meant(pattern, origin):
            if not each.is_relative_to(self._home):
                self.of_this_machine[each] = None
            yield from self.file(each, origin, includes + 1, blocks)

    def _meant(self, pattern: str, origin: Origin) -> list[Path]:
        """Give the files that an include means; a template may mean another template."""
        find = self.request.files.included
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

    def _filled(self, text: str, file: Path) -> str:
        """Fill a template's variables: capital names, since nginx's own have small letters."""
        given = self.variables.values
        is_template = file.name.endswith(TEMPLATES)
        plain_text = _COMMENT.sub("", text)
        variables = [
            (match["name"], match["plain"]) for match in BRACED_OR_PLAIN.finditer(plain_text)
        ]
        braced = {name for name, _ in variables if name}
        defined = set(chain.from_iterable(_DEFINED.findall(plain_text)))
        filled = {
            name
            for name in filter(None, chain.from_iterable(variables))
            if name not in defined
            and (is_template or name.isupper())
            and (name in given or (name.isupper() and (is_template or name in braced)))
        }
        every = {match["name"] or match["plain"] for match in BRACED_OR_PLAIN.finditer(text)}
        return self.variables.filled(text, Origin(str(file), 1), BRACED_OR_PLAIN, every - filled)


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


def _parsed(text: str, file: Path) -> list[Directive]:
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
    directives: list[Directive] = payload["config"][0]["parsed"]
    return directives
