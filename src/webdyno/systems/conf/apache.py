"""Moves a configuration of Apache httpd: listening, writing, users, includes and all."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.format import listed_to
from webdyno.core.service import Line
from webdyno.systems.conf import apache_directives, apache_modules
from webdyno.systems.conf.apache_directives import line_to_backends, passed_on
from webdyno.systems.conf.apache_lines import (
    HOST_BEGIN,
    SYSTEM,
    ApacheLines,
    measured_lines,
    measured_port,
    outside_sections,
)
from webdyno.systems.conf.apache_modules import BUILT_IN, NOT_HERE, file_of, folder, plain_module
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    KEY,
    MODULES,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    port_of,
    with_marks_shown,
)

OURS_INSTEAD = {"sslcertificatefile": CERTIFICATE, "sslcertificatekeyfile": KEY}
TYPES = Path("/etc/mime.types")

_LINE = re.compile(r"(\s*)([A-Za-z]\w*)(?:\s+(.*))?$")

_LOAD = re.compile(r'(\s*)LoadModule\s+(\w+)\s+"?([^"\s]+)"?\s*$', re.IGNORECASE)


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration; raise UserError where it can't be measured."""
    reader = ApacheLines(request)
    lines = reader.all([request.file])
    changes: list[str] = []
    is_part = not _has(lines, "LoadModule")
    if is_part and (enabled := _debians_modules()):
        changes.append(f"the modules of {SYSTEM}/mods-enabled (there is no LoadModule)")
        reader = ApacheLines(request)
        lines = reader.all([*enabled, request.file])
    port = measured_port(request, lines)
    lines = measured_lines(request, lines, port, changes)
    lines = [line_to_backends(request.backends, line) for line in lines]
    apache_directives.refuse_missing_includes(lines, reader)
    head, lines = _loaded(lines, reader, changes, is_part=is_part)
    mover = _Mover(request, port, _pairs_to_replace(request, lines), reader, changes)
    body = [new for line in lines for new in mover.line(line)]
    whole = [*_ours([*head, *_head(request, lines, mover)]), *body, *_ours(mover.tail(lines))]
    config = "{{ server.folder }}/httpd.conf"
    words = ["{{ needs.binary }}", "-d", str(_server_root(reader)), "-f", config]
    return RelocatedConfig(
        name="httpd.conf",
        text="\n".join(line.text for line in whole) + "\n",
        changes=[with_marks_shown(change) for change in changes],
        start=[words[0], "-DFOREGROUND", *words[1:]],
        check=[words[0], "-t", *words[1:]],
        folders=mover.folders,
        passed_on=[target for line in lines for target in passed_on(line)],
        origins=[line.origin for line in whole],
    )


def _ours(texts: list[str]) -> list[Line]:
    return [Line(text, None) for text in texts]


def _has(lines: list[Line], name: str) -> bool:
    return any(re.match(rf"\s*{name}\b", line.text, re.IGNORECASE) for line in lines)


def _pairs_to_replace(request: RelocationRequest, lines: list[Line]) -> bool:
    """Whether there is a certificate or key that the server couldn't read."""
    named = [
        apache_directives.first_word(match[3] or "")[0].strip('"')
        for line in lines
        if (match := _LINE.match(line.text)) and match[2].lower() in OURS_INSTEAD
    ]
    return not all(map(request.may_read, named))


def _head(request: RelocationRequest, lines: list[Line], mover: "_Mover") -> list[str]:
    head = [f"Listen {HOST}:{PORT}", f'PidFile "{FOLDER}/httpd.pid"']
    head.append(f'DefaultRuntimeDir "{FOLDER}"')
    outside = list(outside_sections(lines))
    if not _has(outside, "ServerName"):
        head.append(f"ServerName {HOST}")
    if not _has(outside, "ErrorLog"):
        head.append("ErrorLog /dev/stderr")
    if request.is_secure and not _has(lines, "SSLCertificateFile"):
        head += [f'SSLCertificateFile "{CERTIFICATE}"', f'SSLCertificateKeyFile "{KEY}"']
        mover.changes.append(
            "SSLCertificateFile RUN/certificate.pem (the run's own), since none is named"
        )
    return head


@dataclass
class _Mover:
    """Changes a configuration line by line, and notes what it changes."""

    request: RelocationRequest
    port: int
    own_certificate: bool
    """Whether the run's own certificate is shown."""
    reader: ApacheLines
    changes: list[str]

    def __post_init__(self) -> None:
        self.folders: list[str] = []
        self.has_root = False

    def line(self, line: Line) -> Iterator[Line]:
        if match := HOST_BEGIN.match(line.text):
            self.changes.append(f"<VirtualHost *:$PORT>, not <VirtualHost {match[2]}>")
            yield Line(f"{match[1]}<VirtualHost *:{PORT}>", line.origin)
        elif match := _LINE.match(line.text):
            new = self._directive(match[2], (match[3] or "").strip())
            if new is not None:
                yield Line(match[1] + new, line.origin)
        else:
            yield Line(self._section(line.text), line.origin)

    def tail(self, lines: list[Line]) -> list[str]:
        root, tail = self.request.root, []
        if not _has(lines, "TypesConfig") and TYPES.is_file():
            tail += ["<IfModule mime_module>", f"    TypesConfig {TYPES}", "</IfModule>"]
        if root and not self.has_root:
            tail.append(f'DocumentRoot "{root}"')
            self.changes.append(f"DocumentRoot {root} (there was none)")
        if root:
            tail += [f'<Directory "{root}">', "    Require all granted", "</Directory>"]
        return tail

    def _directive(self, name: str, words: str) -> str | None:
        """Give what becomes of a directive; None where it is excluded."""
        lower, written = name.lower(), f"{name} {words}".strip()
        if why := apache_directives.why_excluded(lower, words):
            self.changes.append(f"excluded: {written} ({why})")
            return None
        if lower == "listen":
            listens = f"Listen {HOST}:$PORT"
            left = f"excluded: {written} (another port is measured)"
            is_measured = port_of(words.split()[0] if words else "") == self.port
            self.changes.append(f"{listens}, not {written}" if is_measured else left)
            return None
        if lower == "serverroot":
            return None  # it is said when it is started
        if lower in OURS_INSTEAD and self.own_certificate:
            new = f'{name} "{OURS_INSTEAD[lower]}"'
            self.changes.append(self.request.unreadable(new, words))
            return new
        if lower == "sslcertificatechainfile" and self.own_certificate:
            self.changes.append(f"excluded: {written} (it is of another certificate)")
            return None
        if lower == "documentroot" and self.request.root:
            self.has_root = True
            return self._changed(f'{name} "{self.request.root}"', written)
        if program := apache_directives.program_of(lower, words):
            self.changes.append(f"runs {program}, as {written} says")
        after = apache_directives.moved_directive(lower, name, words, self.reader, self.folders)
        return written if after in {None, written} else self._changed(str(after), written)

    def _changed(self, new: str, written: str) -> str:
        self.changes.append(f"{with_marks_shown(new)}, not {written}")
        return new

    def _section(self, text: str) -> str:
        """Give the line of a section, whose folder may be relative."""
        new = apache_directives.moved_section(text, self.reader)
        return text if new == text else self._changed(new, text.strip())


def _server_root(reader: ApacheLines) -> Path:
    """Give where the server begins relative paths that nobody has looked up."""
    user = reader.request.user
    able = (
        root for root in reader.roots if root.is_dir() and not (user and user.kept_out_by(root))
    )
    return next(able, Path("/"))


def _debians_modules() -> list[Path]:
    """Give the files by which Debian's Apache loads its modules, where it is set up here."""
    of_modules = SYSTEM / "mods-enabled"
    return [path for kind in ("load", "conf") for path in sorted(of_modules.glob(f"*.{kind}"))]


def _loaded(
    lines: list[Line], reader: ApacheLines, changes: list[str], *, is_part: bool
) -> tuple[list[str], list[Line]]:
    """Give lines that load what is needed, and the configuration with its own loaded from here.

    Raise UserError where this machine lacks a module, and where files would be sent as their
    source.
    """
    loaded_modules = [plain_module(match[2]) for line in lines if (match := _LOAD.match(line.text))]
    head: list[str] = []
    if is_part:
        more = apache_modules.needed(lines, reader.request.protocol, loaded_modules)
        head = [text for module in more for text in _load(module)]
        if more:
            why = "its directives need them" if loaded_modules else "there is no LoadModule"
            changes.append(f"the modules {', '.join(more)} ({why})")
        loaded_modules += more
    apache_modules.refuse_unserved(lines, loaded_modules)
    return head, list(_from_here(lines, reader, changes))


def _load(module: str) -> Iterator[str]:
    """Give the lines that load a module of this machine's, unless it is built in."""
    file = file_of(module) or f"mod_{module}.so"
    yield f"<IfModule !{module}_module>"
    yield f"    LoadModule {module}_module {MODULES}/{file}"
    yield "</IfModule>"


def _from_here(lines: list[Line], reader: ApacheLines, changes: list[str]) -> Iterator[Line]:
    """Give the lines, each module loaded from where it is on this machine."""
    lacking: dict[str, str] = {}
    elsewhere: list[str] = []
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
        file = reader.existing(path)
        if file and _is_of_this_machine(file):
            yield Line(f"{indent}LoadModule {name} {file}", line.origin)
        elif file:
            changes.append(f"runs {file}, as LoadModule {name} says (it is no module of Apache's)")
            yield Line(f'{indent}LoadModule {name} "{file}"', line.origin)
        elif module in BUILT_IN or file_of(module):
            elsewhere.append(path)
            yield from (Line(indent + text, line.origin) for text in _load(module))
        else:
            lacking[module] = f"{line.origin} loads "
    apache_modules.refuse_missing(lacking)
    if elsewhere:
        changes.append(f"modules of this machine's Apache, not {listed_to(1, elsewhere)}")


def _is_of_this_machine(file: Path) -> bool:
    modules = folder()
    return modules is not None and file.resolve().is_relative_to(modules.resolve())
