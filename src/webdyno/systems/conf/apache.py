"""Moves a configuration of Apache httpd: what it listens on, writes, runs, asks and passes on."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.service import Line
from webdyno.systems.conf.apache_hosts import line_to_backends, passed_on
from webdyno.systems.conf.apache_lines import (
    HOST_BEGIN,
    SYSTEM,
    ApacheLines,
    measured_lines,
    measured_port,
    outside_sections,
)
from webdyno.systems.conf.apache_modules import with_modules
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    KEY,
    NO_OTHER_USER,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    port_of,
    why_no_ciphers,
    with_marks_shown,
)

EXCLUDED = {
    **dict.fromkeys(("user", "group", "suexecusergroup", "assignuserid"), NO_OTHER_USER),
    "chrootdir": "root alone may change it",
    "pidfile": "it is in the run's folder",
    **dict.fromkeys(("scoreboardfile", "coredumpdirectory"), "it isn't needed"),
    "defaultruntimedir": "it is the run's folder",
    "scriptsock": "it is in the run's folder",
    "mutex": "its files are in the run's folder",
    "sslpassphrasedialog": "nobody is there to ask for a passphrase",
    **dict.fromkeys(("sslusestapling", "mdomain", "mdstapling"), "it would ask other machines"),
    "heartbeataddress": "it would send to other machines",
}
FILES = {
    **dict.fromkeys(("customlog", "transferlog", "globallog"), "access.log"),
    "forensiclog": "forensic.log",
    "scriptlog": "script.log",
    "davlockdb": "dav-lock",
    "mdstoredir": "md",
    "wsgisocketprefix": "wsgi",
}
"""What is written, and the name that it has in the run's folder."""
FOLDERS = {"cacheroot": "cache"}
"""Folders that have to be there."""
CACHES = {
    *("sslsessioncache", "sslstaplingcache", "authncachesocache", "cachesocache"),
    "authdigestshmemfile",
}
PATH_AT = {
    **dict.fromkeys(("alias", "scriptalias"), 1),
    **dict.fromkeys(("documentroot", "authuserfile", "authgroupfile", "sslcertificatefile"), 0),
    **dict.fromkeys(("sslcertificatekeyfile", "sslcertificatechainfile"), 0),
    "sslcacertificatefile": 0,
}
"""Directives with paths that may be relative, and which of their words that is."""
CIPHERS = {"sslciphersuite", "sslproxyciphersuite"}
TYPES, MAGIC = Path("/etc/mime.types"), Path("/etc/apache2/magic")

_WORD = re.compile(r'("(?:[^"\\]|\\.)*"|\S+)\s*')
_SECTION = re.compile(r'(\s*+<Directory\s++)"?([^"~>]++)"?(\s*+>)$', re.IGNORECASE)
MODULES_ELSEWHERE = re.compile(r"conf\.modules\.d/")
OURS_INSTEAD = {"sslcertificatefile": CERTIFICATE, "sslcertificatekeyfile": KEY}

_LINE = re.compile(r"(\s*)([A-Za-z]\w*)(?:\s+(.*))?$")


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration; raise UserError where it can't be measured."""
    reader = ApacheLines(request)
    lines = reader.all([request.file])
    changes: list[str] = []
    is_part = not _has(lines, "LoadModule")
    of_debian = SYSTEM / "mods-enabled"
    enabled = [path for kind in ("load", "conf") for path in sorted(of_debian.glob(f"*.{kind}"))]
    if is_part and enabled:
        changes.append(f"the modules of {SYSTEM}/mods-enabled (there is no LoadModule)")
        reader = ApacheLines(request)
        lines = reader.all([*enabled, request.file])
    port = measured_port(request, lines)
    lines = measured_lines(request, lines, port, changes)
    lines = [line_to_backends(request.backends, line) for line in lines]
    lines = list(_without_modules_elsewhere(lines, reader, changes))
    for line in lines:
        if line.origin in reader.missing:
            raise reader.missing[line.origin]
    head, lines = with_modules(lines, request.protocol, reader.existing, changes, is_part=is_part)
    directives = filter(None, (_LINE.match(line.text) for line in lines))
    pairs = [match[3] or "" for match in directives if match[2].lower() in OURS_INSTEAD]
    readable = all(request.may_read(first_word(words)[0].strip('"')) for words in pairs)
    mover = _Mover(request, port, not readable, reader, changes)
    body = [new for line in lines for new in mover.line(line)]
    whole = [*_ours([*head, *_head(request, lines, mover)]), *body, *_ours(mover.tail(lines))]
    config = "{{ server.folder }}/httpd.conf"
    user, folders = request.user, filter(Path.is_dir, reader.roots)
    able = (folder for folder in folders if not (user and user.kept_out_by(folder)))
    # The server root: where relative paths begin that nobody has looked up.
    words = ["{{ needs.binary }}", "-d", str(next(able, Path("/"))), "-f", config]
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


def _without_modules_elsewhere(
    lines: Iterable[Line], reader: ApacheLines, changes: list[str]
) -> Iterator[Line]:
    """Leave out where other distributions have the lines that load their modules."""
    for line in lines:
        if line.origin in reader.missing and MODULES_ELSEWHERE.search(line.text):
            changes.append(f"excluded: {line.text.strip()} (this machine's modules instead)")
        else:
            yield line


def _ours(texts: list[str]) -> list[Line]:
    return [Line(text, None) for text in texts]


def _has(lines: list[Line], name: str) -> bool:
    return any(re.match(rf"\s*{name}\b", line.text, re.IGNORECASE) for line in lines)


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
            self.changes.append(f"<VirtualHost *:$PORT>, not <VirtualHost {match[2].strip()}>")
            yield Line(f"{match[1]}<VirtualHost *:{PORT}>", line.origin)
        elif match := _LINE.match(line.text):
            new = self._directive(match[2], (match[3] or "").strip())
            if new is not None:
                yield Line(match[1] + new, line.origin)
        else:
            new = with_whole_path(line.text, self.reader)
            text = new if new == line.text else self._note_change(new, line.text.strip())
            yield Line(text, line.origin)

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
        """Return what becomes of a directive; None where it is excluded."""
        lower, written = name.lower(), f"{name} {words}".strip()
        if why := why_excluded(lower, words):
            self.changes.append(f"excluded: {written} ({why})")
            return None
        if lower == "listen":
            is_measured = port_of(words.split()[0] if words else "") == self.port
            moved = f"Listen {HOST}:$PORT, not {written}"
            excluded = f"excluded: {written} (another port is measured)"
            self.changes.append(moved if is_measured else excluded)
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
            return self._note_change(f'{name} "{self.request.root}"', written)
        if program := program_of(lower, words):
            self.changes.append(f"runs {program}, as {written} says")
        after = move_directive(lower, name, words, self.reader, self.folders)
        return written if after in {None, written} else self._note_change(str(after), written)

    def _note_change(self, new: str, written: str) -> str:
        self.changes.append(f"{with_marks_shown(new)}, not {written}")
        return new


def first_word(words: str) -> tuple[str, str]:
    """Split the first word off, which may be in quotes."""
    match = _WORD.match(words)
    return (match[1], words[match.end() :]) if match else (words, "")


def why_excluded(lower: str, words: str) -> str | None:
    """Return why a directive is excluded; None where it stays."""
    if lower in CIPHERS and (why := why_no_ciphers(words)):
        return why
    return None if words.lower() == "off" else EXCLUDED.get(lower)


def program_of(lower: str, words: str) -> str | None:
    """Return the program that a directive has the server run, or the code that it loads."""
    if lower == "rewritemap" and (match := re.search(r"\bprg:(\S.*)", words)):
        return match[1].strip('"')
    if lower == "extfilterdefine" and (match := re.search(r'\bcmd=("[^"]*"|\S+)', words)):
        return match[1].strip('"')
    if lower == "loadfile":
        return first_word(words)[0].strip('"')
    return None


def move_directive(
    lower: str, name: str, words: str, reader: ApacheLines, folders: list[str]
) -> str | None:
    """Return a directive whose files are moved; None where it has none."""
    if lower == "errorlog":
        return f"{name} /dev/stderr"
    if lower in FILES:
        _, rest = first_word(words)
        return f'{name} "{FOLDER}/{FILES[lower]}" {rest}'.rstrip()
    if lower in FOLDERS:
        folders.append(FOLDERS[lower])
        return f'{name} "{FOLDER}/{FOLDERS[lower]}"'
    if lower in CACHES:
        return f"{name} " + re.sub(r"(:|^)/[^\"(\s]+", rf"\1{FOLDER}/{lower}", words)
    if lower in {"typesconfig", "mimemagicfile"}:
        path = words.strip('"')
        magic = MAGIC if MAGIC.is_file() else Path(os.devnull)
        file = reader.existing(path) or (TYPES if lower == "typesconfig" else magic)
        return None if str(file) == path else f'{name} "{file}"'
    if lower in PATH_AT:
        places = list(_WORD.finditer(words))[PATH_AT[lower] :]
        path = places[0][1].strip('"') if places else ""
        if path and not path.startswith(("/", "$", "@")):
            start, end = places[0].span(1)
            words = f'{words[:start]}"{_whole(path, reader)}"{words[end:]}'
        return f"{name} {words}"
    return None


def with_whole_path(text: str, reader: ApacheLines) -> str:
    """Return the line of a section, a `<Directory>` with a whole path."""
    match = _SECTION.match(text)
    if not match or match[2].startswith("/") or "*" in match[2]:
        return text
    return f'{match[1]}"{_whole(match[2].strip(), reader)}"{match[3]}'


def _whole(path: str, reader: ApacheLines) -> Path:
    """Return what a relative path means: what is there, else next to where webdyno is called."""
    begin = reader.request.folder or reader.request.file.parent
    return reader.existing(path) or begin / path
