"""What modules of Apache httpd a configuration needs, and whether this machine has them."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.format import listed, listed_to
from webdyno.core.service import Line
from webdyno.systems.conf.apache_hosts import PROXY_FLAG
from webdyno.systems.conf.relocation import MODULES

FOLDERS = (
    Path("/usr/lib/apache2/modules"),
    Path("/usr/lib64/httpd/modules"),
    Path("/usr/lib/httpd/modules"),
)
"""Where distributions put the modules; the service apache of the catalogue looks there as well."""
_MODULES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DIRECTIVES: dict[str, str] = _MODULES["directives"]
DEPEND: dict[str, list[str]] = _MODULES["depend"]
SCHEMES: dict[str, str] = _MODULES["schemes"]
HANDLERS: dict[str, str] = _MODULES["handlers"]
MODULE_OF = {
    directive.lower(): module for module, words in DIRECTIVES.items() for directive in words.split()
}
BUILT_IN = {"core", "so", "http", "log_config", "logio", "version", "unixd", "watchdog"}
"""Modules that a distribution may have compiled in; `LoadModule` would fail then."""
NOT_HERE = {"systemd": "no systemd starts it here"}
"""Modules that are excluded, and why."""
USUAL = (
    *("authz_core", "authz_host", "dir", "mime", "alias", "rewrite", "headers"),
    *("setenvif", "log_config", "filter", "deflate", "expires", "env", "negotiation", "autoindex"),
)
"""Debian loads them unless somebody says otherwise; for what is but a part of a configuration."""
SECURE = ("socache_shmcb", "ssl", "http2")
"""Next to these, for TLS."""
NOBODYS = {"none", "default-handler"}
"""What a handler is set to so that none is."""
CGI = {"cgi", "cgid"}
PACKAGES = {"php": "libapache2-mod-php"}
"""Of modules that don't come with Apache."""

Existing = Callable[[str], Path | None]
"""Returns the file that a path means; None where there is none."""
_LOAD = re.compile(r'(\s*)LoadModule\s+(\w+)\s+"?([^"\s]+)"?\s*$', re.IGNORECASE)
_DIRECTIVE = re.compile(r"\s*<?/?([A-Za-z][\w-]*)(.*)")
_SCHEME = re.compile(r"\b(fcgi|https?|h2c?|ajp|scgi|uwsgi|wss?|ftp|balancer)://")
_HANDLER = re.compile(r'\s*(?:Set|Add)Handler\s+("[^"]*"|\S+)', re.IGNORECASE)
_TYPE = re.compile(r"\s*(?:AddType|ForceType)\s+\"?(application/x-httpd-[^\s\"]+)", re.IGNORECASE)
_REWRITTEN = re.compile(
    r"(?i:\s*RewriteRule)\b.*\[(?:[^][,]*,)*?\s*H=([^][,]++)[^][]*\]\s*$", re.DOTALL
)
_ACTION = re.compile(r"\s*Action\s+\"?([^\s\"]+)", re.IGNORECASE)
_CONDITION = re.compile(r"\s*<(/?)If(?:Module|Define|Version)\b", re.IGNORECASE)


class Handler(NamedTuple):
    """What is to serve some files, and where that is said."""

    name: str
    line: Line
    is_certain: bool
    """Whether it holds without a condition."""

    @property
    def modules(self) -> list[str]:
        """The modules that serve it; none where it is nobody's that is known."""
        if self.name.startswith("proxy:"):
            return [SCHEMES[scheme] for scheme in _SCHEME.findall(self.name) if scheme in SCHEMES]
        module = HANDLERS.get(self.name.lower())
        return [module] if module else []


def plain_module(name: str) -> str:
    """Return a module's own name: `php` of php_module, php7_module and mod_php.c."""
    short = name.lower().removeprefix("mod_").removesuffix(".c").removesuffix("_module")
    return "php" if re.fullmatch(r"php\d*", short) else short


def folder() -> Path | None:
    """Return where this machine's modules are; None where there is no Apache."""
    return next((path for path in FOLDERS if path.is_dir()), None)


def file_of(module: str) -> str | None:
    """Return the name of a module's file; None where this machine doesn't have it."""
    modules_here = folder()
    if modules_here is None:
        return None if module in PACKAGES else f"mod_{module}.so"
    pattern = "libphp*.so" if module == "php" else f"mod_{module}.so"
    return next((path.name for path in sorted(modules_here.glob(pattern))), None)


def with_modules(
    lines: list[Line], protocol: str, existing: Existing, changes: list[str], *, is_part: bool
) -> tuple[list[str], list[Line]]:
    """Return lines that load more modules, and the others, which load this machine's modules.

    Raise UserError where it lacks one, and where files would be sent as their source.
    """
    loaded_modules = [plain_module(match[2]) for line in lines if (match := _LOAD.match(line.text))]
    head: list[str] = []
    if is_part:
        more = needed_modules(lines, protocol, loaded_modules)
        head = [text for module in more for text in _load(module)]
        if more:
            why = "its directives need them" if loaded_modules else "there is no LoadModule"
            changes.append(f"the modules {', '.join(more)} ({why})")
        loaded_modules += more
    refuse_unserved(lines, loaded_modules)
    return head, list(_from_here(lines, existing, changes))


def _load(module: str) -> Iterator[str]:
    """Return the lines that load a module of this machine's, unless it is built in."""
    file = file_of(module) or f"mod_{module}.so"
    yield f"<IfModule !{module}_module>"
    yield f"    LoadModule {module}_module {MODULES}/{file}"
    yield "</IfModule>"


def _from_here(lines: list[Line], existing: Existing, changes: list[str]) -> Iterator[Line]:
    """Return the lines, each module loaded from where it is on this machine."""
    lacking: dict[str, str] = {}
    elsewhere: list[str] = []
    modules_here = folder()
    for line in lines:
        match = _LOAD.match(line.text)
        if not match:
            yield line
            continue
        indent, name, path = match.groups()
        module = plain_module(name)
        if module in NOT_HERE:
            changes.append(f"excluded: {line.text.strip()} ({NOT_HERE[module]})")
            continue
        file = existing(path)
        is_here = file and modules_here and file.resolve().is_relative_to(modules_here.resolve())
        if is_here:
            yield Line(f"{indent}LoadModule {name} {file}", line.origin)
        elif file:
            changes.append(f"runs {file}, as LoadModule {name} says (it is no module of Apache's)")
            yield Line(f'{indent}LoadModule {name} "{file}"', line.origin)
        elif module in BUILT_IN or file_of(module):
            elsewhere.append(path)
            yield from (Line(indent + text, line.origin) for text in _load(module))
        else:
            lacking[module] = f"{line.origin} loads "
    refuse_missing(lacking)
    if elsewhere:
        changes.append(f"modules of this machine's Apache, not {listed_to(1, elsewhere)}")


def needed_modules(lines: Sequence[Line], protocol: str, loaded: Iterable[str]) -> list[str]:
    """Return the modules that lines need next to those loaded; raise UserError for one not here."""
    present = {*loaded}
    needs: dict[str, Line | None] = dict.fromkeys([] if present else USUAL)
    if protocol in {"https", "h2"}:
        needs |= dict.fromkeys(SECURE)
    if protocol == "h2c":
        needs["http2"] = None
    for line, is_certain in _with_certainty(lines):
        if is_certain:
            needs |= {name: line for name in _of_line(line.text) if name not in needs}
    for handler in set_handlers(lines):
        if handler.is_certain or all(map(file_of, handler.modules)):
            optional = () if handler.is_certain else ("php",)
            others = [name for name in handler.modules if name not in {*needs, *optional}]
            needs |= dict.fromkeys(others, handler.line)
    complete = _with_dependencies(needs)
    if not any(name.startswith("mpm_") for name in present):
        complete = {"mpm_prefork" if "php" in complete else "mpm_event": None, **complete}
    if "cgid" in complete and ("mpm_prefork" in complete or present & CGI):
        complete.pop("cgid")
        complete |= {} if present & CGI else {"cgi": None}
    more = {name: line for name, line in complete.items() if name not in present}
    lacking = [name for name in more if name not in BUILT_IN and file_of(name) is None]
    who = {name: f"{line.origin} needs " if line else "" for name, line in more.items()}
    refuse_missing({name: who[name] for name in lacking})
    return list(more)


def refuse_missing(lacking: dict[str, str]) -> None:
    """Raise UserError for modules that this machine lacks, each with who needs it."""
    if not lacking:
        return
    named = listed(f"{who}{module}_module" for module, who in lacking.items())
    packages = [PACKAGES[name] for name in lacking if name in PACKAGES]
    install = f"install {listed(packages)}" if packages else "install them"
    raise UserError(
        f"this machine's Apache lacks modules: {named}; {install}, take the lines out, or measure "
        "the image that has them (image:NAME)"
    )


def refuse_unserved(lines: Sequence[Line], loaded: Iterable[str]) -> None:
    """Raise UserError for a handler that nobody serves: files would be sent as their source."""
    present = {*loaded}
    names = {match[1].lower() for line in lines if (match := _ACTION.match(line.text))}
    is_foreign = bool(present - DIRECTIVES.keys() - BUILT_IN - {"php"})
    for handler in set_handlers(lines):
        modules = handler.modules
        is_known = handler.name.lower() in NOBODYS | names or (not modules and is_foreign)
        if is_known or not handler.is_certain:
            continue
        lacking = [
            name for name in modules if name not in present and not (name in CGI and present & CGI)
        ]
        if lacking or not modules:
            served = f"needs {lacking[0]}_module, which is not loaded" if lacking else "is unknown"
            raise UserError(
                f"{handler.line.origin}: the handler {handler.name} {served}, so files would be "
                "sent as their source; load the module that serves it, or take the line out"
            )


def set_handlers(lines: Sequence[Line]) -> Iterator[Handler]:
    """Return the handlers that files have: by name, by the type that PHP has, by a rewrite."""
    for line, is_certain in _with_certainty(lines):
        name = ""
        if match := _HANDLER.match(line.text):
            name = match[1].strip('"')
        elif (match := _TYPE.match(line.text)) or (match := _REWRITTEN.match(line.text)):
            name = match[1].strip()
        if name and not name.startswith("%{") and "expr=" not in name:
            yield Handler(name, line, is_certain)


def _with_certainty(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    depth = 0
    for line in lines:
        if match := _CONDITION.match(line.text):
            depth += -1 if match[1] else 1
        else:
            yield line, depth <= 0


def _of_line(text: str) -> Iterator[str]:
    if not (match := _DIRECTIVE.match(text)):
        return
    name, rest = match[1].lower(), match[2]
    if module := MODULE_OF.get(name):
        yield module
    is_proxy = name.startswith(("proxy", "balancermember"))
    if is_proxy or (name == "rewriterule" and PROXY_FLAG.search(rest)):
        yield from (SCHEMES[scheme] for scheme in _SCHEME.findall(rest) if scheme in SCHEMES)
    if name.startswith("scriptalias"):
        yield "cgid"
    if name == "authtype":
        yield from ("auth_digest",) if "digest" in rest.lower() else ("auth_basic",)
    if name == "require" and rest.split()[:1] == ["group"]:
        yield "authz_groupfile"
    if name in {"setoutputfilter", "addoutputfilter"} and "INCLUDES" in rest:
        yield "include"


def _with_dependencies(modules: dict[str, Line | None]) -> dict[str, Line | None]:
    complete: dict[str, Line | None] = {}

    def add(module: str, line: Line | None) -> None:
        if module in complete:
            return
        more = ("proxy",) if module.startswith(("proxy_", "lbmethod_")) else ()
        for other in (*more, *DEPEND.get(module, [])):
            if other != module and other not in waiting:
                waiting.add(other)
                add(other, line)
                waiting.discard(other)
        complete.setdefault(module, line)

    waiting: set[str] = set()
    for module, line in modules.items():
        add(module, line)
    return complete
