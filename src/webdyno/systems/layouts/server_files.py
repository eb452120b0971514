"""Gunicorn's file of settings: what of it would leave the folder, or hold a port, is overridden."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.tables import read_text

CALLS = re.compile(r"(?:^|[/\s])gunicorn\s")
CONFIG = re.compile(r"(?:-c|--config)[ =](?:file:|python:)?(?P<file>[\w./-]+)")
USUAL_FILE = "gunicorn.conf.py"
"""Which Gunicorn reads without a flag."""
SETTING = re.compile(
    r"""^(?P<name>accesslog|errorlog|pidfile|bind|user|group|chdir|daemon)\s*=\s*"""
    r"""(?:\[\s*)?["']?(?P<value>[^"'\n#\]]+)""",
    re.MULTILINE,
)
OVERRIDDEN = {
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


def with_own_files(app: FoundApp, folder: Path) -> FoundApp:
    """Return an application whose Gunicorn writes into its folder, and listens on its port."""
    start = app.start or ""
    if not CALLS.search(start):
        return app
    named = CONFIG.search(start)
    file = named["file"] if named else USUAL_FILE
    settings = dict(SETTING.findall(read_text(folder / file) or ""))
    if settings.get("daemon", "").strip() == "True":
        doubt = IN_THE_BACKGROUND.format(file=file, value="True")
        app = replace(app, doubts=(*app.doubts, doubt))
    leading = [name for name in OVERRIDDEN if _leads_away(name, settings.get(name, ""), start)]
    if not leading:
        return app
    note = f"{file}: {', '.join(leading)} would lead out of here, and are overridden"
    flags = " ".join(OVERRIDDEN[name] for name in leading)
    return replace(app, start=f"{start} {flags}", notes=(*app.notes, note))


def _leads_away(name: str, value: str, start: str) -> bool:
    if name == "bind":
        return bool(value) and "$PORT" not in start
    return (name in {"user", "group"} and bool(value.strip())) or value.startswith("/")
