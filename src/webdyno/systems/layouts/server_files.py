"""Application servers' own files: what leads out of the folder, or holds a port, is overridden.

Flags of Gunicorn and Puma count more than their files; the build copies uWSGI's without it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, first_of

ON_PORT = "$PORT"
VENV = ".venv"

CALLS_GUNICORN = re.compile(r"(?:^|[/\s])gunicorn\s")
GUNICORN_CONFIG = re.compile(r"(?:-c|--config)[ =](?:file:|python:)?(?P<file>[\w./-]+)")
GUNICORN_FILE = "gunicorn.conf.py"
"""Which Gunicorn reads without a flag."""
GUNICORN_SETTING = re.compile(
    r"""^(?P<name>accesslog|errorlog|pidfile|bind|user|group|chdir|daemon)\s*=\s*"""
    r"""(?:\[\s*)?["']?(?P<value>[^"'\n#\]]+)""",
    re.MULTILINE,
)
FLAGS_OF_GUNICORN = {
    "accesslog": "--access-logfile access.log",
    "errorlog": "--error-logfile -",
    "pidfile": "--pid gunicorn.pid",
    "user": "--user $(id -u)",
    "group": "--group $(id -g)",
    "chdir": "--chdir .",
    "bind": "--bind 127.0.0.1:$PORT",
}
"""By setting: the flag, which counts more than the file."""
IN_THE_BACKGROUND = (
    "{file} has daemon = {value}, which no flag undoes: it has to stay in the foreground"
)

CALLS_PUMA = re.compile(r"(?:^|[/\s])puma(?:\s|$)")
PUMA_CONFIG = re.compile(r"(?:-C|--config)[ =](?P<file>[\w./-]+)")
PUMA_FILES = ("config/puma/production.rb", "config/puma.rb")
"""One of which Puma reads without a flag."""
FLAGS_OF_PUMA = {
    "pidfile": "--pidfile puma.pid",
    "state_path": "--state puma.state",
    "stdout_redirect": "--redirect-stdout /dev/stdout --redirect-stderr /dev/stderr "
    "--redirect-append",
    "activate_control_app": "--control-url auto",
    "directory": "--dir .",
    "bind": "--bind tcp://127.0.0.1:$PORT",
    "port": "--bind tcp://127.0.0.1:$PORT",
}
PUMA_SETTING = re.compile(rf"({'|'.join(FLAGS_OF_PUMA)})\b(.*)")
READS_PORT = re.compile(r"(?<!\w)PORT\b")
QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
INTERPOLATED = "#{"
KEEPERS = (".keep", ".gitkeep", ".gitignore")
"""Files by which Git keeps an otherwise empty folder."""

UWSGI_FILE = re.compile(r"(?!/)[\w./-]+\.ini")
UWSGI_SETTING = re.compile(r"^[ \t]*([\w-]+)[ \t]*=[ \t]*(\S*)", re.MULTILINE)
UWSGI_SOCKETS = ("http", "http-socket", "socket", "uwsgi-socket", "fastcgi-socket", "https")
UWSGI_NEVER = ("daemonize", "daemonize2", "uid", "gid", "stats", "emperor", "chown-socket")
UWSGI_VENVS = ("virtualenv", "venv", "home")
OF_VENV = "$(VIRTUAL_ENV)"
UWSGI_PLACES = (
    *UWSGI_VENVS,
    *("chdir", "pidfile", "pidfile2", "safe-pidfile"),
    *("logto", "logto2", "req-logger", "logger", "log-master"),
)
UWSGI_COPY = "uwsgi.webdyno.ini"


def with_own_files(app: FoundApp, folder: Path) -> FoundApp:
    """Return an application whose server writes into its folder, and listens on its port."""
    start = app.start or ""
    if CALLS_GUNICORN.search(start):
        return _with_gunicorn(app, start, folder)
    if CALLS_PUMA.search(start):
        return _with_puma(app, start, folder)
    if file := _uwsgis_file(start):
        return _with_uwsgi(app, start, file, folder)
    return app


def _with_gunicorn(app: FoundApp, start: str, folder: Path) -> FoundApp:
    named = GUNICORN_CONFIG.search(start)
    file = named["file"] if named else GUNICORN_FILE
    settings = dict(GUNICORN_SETTING.findall(read_text(folder / file) or ""))
    if settings.get("daemon", "").strip() == "True":
        doubt = IN_THE_BACKGROUND.format(file=file, value="True")
        app = replace(app, doubts=(*app.doubts, doubt))

    def leads_away(name: str, value: str) -> bool:
        if name == "bind":
            return bool(value) and ON_PORT not in start
        return (name in {"user", "group"} and bool(value.strip())) or value.startswith("/")

    leading = [name for name in FLAGS_OF_GUNICORN if leads_away(name, settings.get(name, ""))]
    return _with_flags(app, file, leading, (FLAGS_OF_GUNICORN[name] for name in leading))


def _with_puma(app: FoundApp, start: str, folder: Path) -> FoundApp:
    named = PUMA_CONFIG.search(start)
    file = named["file"] if named else first_of(folder, *PUMA_FILES)
    if file is None:
        return app
    statements = _statements_of_ruby(read_text(folder / file) or "")

    def leads_away(name: str) -> bool:
        said = statements.get(name)
        if said is None:
            return False
        if name in {"bind", "port"}:
            return ON_PORT not in start and not READS_PORT.search(said)
        if name == "activate_control_app":
            return True
        paths = QUOTED.findall(said)
        return any(path.startswith("/") or INTERPOLATED in path for path in paths) or (
            name != "directory" and not all(_is_kept(folder, path) for path in paths)
        )

    leading = [name for name in FLAGS_OF_PUMA if leads_away(name)]
    return _with_flags(app, file, leading, (FLAGS_OF_PUMA[name] for name in leading))


def _statements_of_ruby(text: str) -> dict[str, str]:
    """Return settings at a line's beginning with what follows, indented lines and a block's end."""
    statements: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if setting := PUMA_SETTING.match(line):
            current = statements[setting[1]] = [setting[2]]
        elif line.startswith((" ", "\t", "}", "end")):
            current.append(line)
        else:
            current = []
    return {name: "\n".join(lines) for name, lines in statements.items()}


def _is_kept(folder: Path, path: str) -> bool:
    """Whether a revision has the folder of a file: by Git's ways to keep one that is empty."""
    if "/" not in path:
        return True
    parent = PurePosixPath(path).parent
    return any((folder / parent / keeper).is_file() for keeper in KEEPERS)


def _uwsgis_file(start: str) -> str | None:
    """Return the file of settings that a line calls uWSGI with, in the folder."""
    words = iter(start.split())
    called = any(PurePosixPath(word).name == "uwsgi" for word in words)
    return next(filter(UWSGI_FILE.fullmatch, words), None) if called else None


def _with_uwsgi(app: FoundApp, start: str, file: str, folder: Path) -> FoundApp:
    text = read_text(folder / file)
    if text is None:
        return app
    settings = dict(UWSGI_SETTING.findall(text))
    leading = [
        *(name for name in UWSGI_SOCKETS if "PORT" not in settings.get(name, "PORT")),
        *(name for name in UWSGI_NEVER if name in settings),
        *(name for name in UWSGI_PLACES if settings.get(name, "").startswith("/")),
    ]
    kept = settings.keys() - set(leading)
    flags = []
    if ON_PORT not in start and not kept & set(UWSGI_SOCKETS):
        flags.append(f"--http-socket 127.0.0.1:{ON_PORT}")
    if VENV in start and not kept & set(UWSGI_VENVS):
        flags.append(f"--virtualenv {VENV}")
    if VENV in start and any(OF_VENV in settings[name] for name in kept & set(UWSGI_VENVS)):
        start = f"VIRTUAL_ENV={VENV} {start}"
    if leading:
        copy = PurePosixPath(file).with_name(UWSGI_COPY).as_posix()
        start = start.replace(file, copy)
        lacks = f"grep -vE '^[[:space:]]*({'|'.join(leading)})[[:space:]]*=' {file} >{copy}"
        app = replace(app, build=f"{app.build} && {lacks}" if app.build else lacks)
    return _with_flags(replace(app, start=start), file, leading, flags)


def _with_flags(app: FoundApp, file: str, leading: Sequence[str], flags: Iterable[str]) -> FoundApp:
    """Add flags to how it starts, and say what they, or a copy of the file, override."""
    note = f"{file}: {', '.join(leading)} would lead out of here, and are overridden"
    notes = (*app.notes, note) if leading else app.notes
    return replace(app, start=" ".join([app.start or "", *dict.fromkeys(flags)]), notes=notes)
