"""Moves a configuration of Apache httpd: listening, writing, users, includes and all."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.model.mistake import Mistake
from webdyno.own.moved import (
    CERTIFICATE,
    FOLDER,
    HOST,
    HTTP,
    HTTPS,
    KEY,
    MODULES,
    PORT,
    Moved,
    Wanted,
    shown,
)

DEEPEST = 20
"""Includes within includes; more of them go round in a circle."""
SYSTEM = Path("/etc/apache2")
"""Where Debian's Apache looks for relative paths."""
LEFT_OUT = {
    "user": "an ordinary user has no other",
    "group": "an ordinary user has no other",
    "chrootdir": "root alone may change it",
    "pidfile": "it is in the run's folder",
    "scoreboardfile": "it isn't needed",
    "coredumpdirectory": "it isn't needed",
    "defaultruntimedir": "it is the run's folder",
    "mutex": "its files are in the run's folder",
}
LOGS = ("customlog", "transferlog")
USUAL_MODULES = (
    *("mpm_event", "authz_core", "authz_host", "dir", "mime", "alias", "rewrite", "headers"),
    *("setenvif", "log_config", "filter", "deflate", "expires", "env", "negotiation", "autoindex"),
)
"""Debian loads them unless somebody says otherwise; for what is but a part of a configuration."""
SECURE_MODULES = ("socache_shmcb", "ssl", "http2")
"""Beside these, for TLS."""
OURS_INSTEAD = {"sslcertificatefile": CERTIFICATE, "sslcertificatekeyfile": KEY}
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

_LINE = re.compile(r"(\s*)([A-Za-z]\w*)(?:\s+(.*))?$")
_HOST = re.compile(r"(\s*)<VirtualHost\s+(.*?)\s*>\s*$", re.IGNORECASE)
_HOST_END = re.compile(r"\s*</VirtualHost>", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Z_]\w*)\}")


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration; raise Mistake where it can't be measured."""
    file, root = wanted.file, wanted.root
    lines = _with_includes(file)
    mover = _Mover(wanted, _measured_port(wanted, lines), _pairs_to_replace(wanted, lines))
    body = mover.all(lines)
    modules = (*USUAL_MODULES, *(SECURE_MODULES if wanted.is_secure else ()))
    whole = [*_head(lines, modules, mover.changes), *body]
    if root and not mover.has_root:
        whole.append(f'DocumentRoot "{root}"')
        mover.changes.append(f"DocumentRoot {root} (there was none)")
    if root:
        whole += [f'<Directory "{root}">', "    Require all granted", "</Directory>"]
    config = "{{ server.folder }}/httpd.conf"
    words = ["{{ needs.binary }}", "-d", str(_server_root(file, lines)), "-f", config]
    return Moved(
        name="httpd.conf",
        text="\n".join(whole) + "\n",
        changes=mover.changes,
        start=[words[0], "-DFOREGROUND", *words[1:]],
        check=[words[0], "-t", *words[1:]],
    )


def _pairs_to_replace(wanted: Wanted, lines: list[str]) -> bool:
    """Whether there is a certificate or key that the server couldn't read."""
    named = [
        _first_word(found[3] or "")[0].strip('"')
        for line in lines
        if (found := _LINE.match(line)) and found[2].lower() in OURS_INSTEAD
    ]
    return not all(map(wanted.may_read, named))


def _head(lines: list[str], modules: Sequence[str], changes: list[str]) -> Iterator[str]:
    """Give what comes before the user's lines."""
    text = "\n".join(lines)
    defined = set(re.findall(r"(?im)^\s*Define\s+(\w+)", text)) | os.environ.keys()
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        if name in DEBIANS and name not in defined:
            yield f'Define {name} "{DEBIANS[name]}"'
    if not re.search(r"(?im)^\s*LoadModule\b", text):
        changes.append(f"the modules {', '.join(modules)} (there is no LoadModule)")
        for name in modules:  # some of them may be built in
            yield f"<IfModule !{name}_module>"
            yield f"    LoadModule {name}_module {MODULES}/mod_{name}.so"
            yield "</IfModule>"
    if not re.search(r"(?im)^ServerName\b", text):
        yield f"ServerName {HOST}"
    if not re.search(r"(?im)^\s*TypesConfig\b", text) and Path("/etc/mime.types").is_file():
        yield "<IfModule mime_module>\n    TypesConfig /etc/mime.types\n</IfModule>"
    yield f"Listen {HOST}:{PORT}"
    yield f'PidFile "{FOLDER}/httpd.pid"'
    yield f'DefaultRuntimeDir "{FOLDER}"'
    if not re.search(r"(?im)^ErrorLog\b", text):
        yield "ErrorLog /dev/stderr"


@dataclass
class _Mover:
    """Changes a configuration line by line, and notes what it changes."""

    wanted: Wanted
    port: int
    own_certificate: bool
    """Whether the run's own certificate is shown."""

    def __post_init__(self) -> None:
        self.changes: list[str] = []
        self.has_root = False

    def all(self, lines: list[str]) -> list[str]:
        """Give all lines, moved; hosts on other ports than the measured one are left out."""
        kept, leaving = [], False
        for line in lines:
            if found := _HOST.match(line):
                leaving = not any(_port(it) in {self.port, None} for it in found[2].split())
                if leaving:
                    self._note(f"left out: <VirtualHost {found[2]}>, which isn't asked for")
                else:
                    line = f"{found[1]}<VirtualHost *:{PORT}>"
                    self._note(f"<VirtualHost *:$PORT>, not <VirtualHost {found[2]}>")
            elif not leaving:
                line = self._line(line) or ""
            if not leaving and line:
                kept.append(line)
            if _HOST_END.match(line):
                leaving = False
        return kept

    def _line(self, line: str) -> str | None:
        """Give what becomes of a line; None where it is left out."""
        found = _LINE.match(line)
        if not found:
            return line
        indent, name, words = found[1], found[2], (found[3] or "").strip()
        lower = name.lower()
        if lower in LEFT_OUT:
            self._note(f"left out: {name} {words} ({LEFT_OUT[lower]})")
            return None
        if lower == "listen":
            new = f"Listen {HOST}:$PORT" if _port(words.split()[0]) == self.port else "nothing"
            self._note(f"{new}, not Listen {words}")
            return None
        if lower == "serverroot":
            return None  # it is said when it is started
        if lower in OURS_INSTEAD and self.own_certificate:
            new = f'{name} "{OURS_INSTEAD[lower]}"'
            self._note(self.wanted.unreadable(new, words))
            return f"{indent}{new}"
        changed = self._changed(lower, name, words)
        if changed is None:
            return line
        self._note(f"{shown(changed)}, not {name} {words}")
        return f"{indent}{changed}"

    def _changed(self, lower: str, name: str, words: str) -> str | None:
        if lower == "errorlog" and words != "/dev/stderr":
            return f"{name} /dev/stderr"
        if lower in LOGS:
            _, rest = _first_word(words)
            return f'{name} "{FOLDER}/access.log" {rest}'.rstrip()
        if lower == "documentroot" and self.wanted.root:
            self.has_root = True
            return f'{name} "{self.wanted.root}"'
        return None

    def _note(self, change: str) -> None:
        self.changes.append(change)


def _first_word(words: str) -> tuple[str, str]:
    """Split the first word off, which may be in quotes."""
    found = re.match(r'("(?:[^"\\]|\\.)*"|\S+)\s*(.*)', words)
    return (found[1], found[2]) if found else (words, "")


def _measured_port(wanted: Wanted, lines: list[str]) -> int:
    """Choose the port that is measured; a host speaks TLS if it says SSLEngine on."""
    ports: list[int | None] = []
    secure: set[int | None] = {HTTPS}
    here: list[int | None] = []
    for line in lines:
        if found := re.match(r"\s*Listen\s+(\S+)\s*(\S*)", line, re.IGNORECASE):
            ports.append(_port(found[1]))
            secure |= {ports[-1]} if found[2].lower() == "https" else set()
        elif found := _HOST.match(line):
            here = [_port(it) for it in found[2].split()]
            ports += here
        elif _HOST_END.match(line):
            here = []
        elif re.match(r"\s*SSLEngine\s+on\b", line, re.IGNORECASE):
            secure |= set(here)
    if not wanted.is_secure and (not ports or None in ports):
        ports.append(HTTP)
    fitting = [it for it in ports if it is not None and (it in secure) == wanted.is_secure]
    return wanted.measured(fitting)


def _port(address: str) -> int | None:
    """Give the port of `80`, `*:80` or `[::]:80`; None where any port is meant."""
    last = address.rpartition(":")[2]
    return int(last) if last.isdecimal() else None


def _server_root(file: Path, lines: list[str]) -> Path:
    """Give where relative paths begin."""
    for line in lines:
        if found := re.match(r'\s*ServerRoot\s+"?([^"\s]+)', line, re.IGNORECASE):
            return Path(found[1])
    return (
        SYSTEM if SYSTEM.is_dir() and not (file.parent / "mods-enabled").is_dir() else file.parent
    )


def _with_includes(file: Path, top: Path | None = None, depth: int = 0) -> list[str]:
    """Give the lines of a configuration, those that it includes in their place."""
    if depth > DEEPEST:
        raise Mistake(f"{file} includes itself, by way of other files perhaps")
    text = re.sub(r"\\\n\s*", " ", file.read_text(encoding="utf-8", errors="replace"))
    lines: list[str] = []
    for line in text.splitlines():
        found = re.match(r'\s*Include(Optional)?\s+"?([^"]+?)"?\s*$', line, re.IGNORECASE)
        if line.lstrip().startswith("#") or not line.strip():
            continue
        if not found:
            lines.append(line)
            continue
        included = list(_included(found[2], (top or file).parent))
        if not included and not found[1] and "*" not in found[2]:
            raise Mistake(f"{file} includes {found[2]}, which isn't there")
        for each in included:
            lines += _with_includes(each, top or file, depth + 1)
    return lines


def _included(pattern: str, beside: Path) -> Iterator[Path]:
    """Give the files that an include means: beside the configuration, or where Debian has them."""
    whole = [Path(pattern)] if pattern.startswith("/") else [beside / pattern, SYSTEM / pattern]
    for path in whole:
        found = sorted(Path("/").glob(str(path).lstrip("/")))
        files = [each for it in found for each in (sorted(it.rglob("*")) if it.is_dir() else [it])]
        if files:
            yield from (it for it in files if it.is_file())
            return
