"""Writes a `webdyno.toml`: how an application is built, started and asked."""

import re
from collections.abc import Iterator, Mapping

import tomli_w

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.logins import Login

BARE = re.compile(r"[A-Za-z0-9_-]+")


def project_text(
    app: FoundApp, requests: Mapping[str, int | None], login: Login | None = None
) -> str:
    """Give the file's text; comments stand where its user has to look.

    `requests` are paths, each with the status of its response where that has to be written.
    """
    load = list(_lines(_load(app, login)))
    parts = ["[app]", *(f"# {doubt}" for doubt in app.doubts), *_lines(_app(app))]
    if load:
        parts += ["", "[load]", *load]
    for step in login.steps if login else ():
        parts += ["", "[[login]]", *_lines(step)]
    for path, status in requests.items():
        parts += ["", "[[requests]]", *_lines({"path": path, "status": status})]
    return "\n".join(parts) + "\n"


def _app(app: FoundApp) -> dict[str, object]:
    return {
        "dir": app.dir if app.dir != "." else None,
        "build": app.build,
        "services": app.services,
        "setup": app.setup,
        "prepare": app.prepare if app.start else None,
        "start": app.start,
        "image": app.image,
        "conf": app.conf,
        "root": app.root,
        "ready_within": app.ready_within_s,
        "environment": app.environment,
    }


def _load(app: FoundApp, login: Login | None) -> dict[str, object]:
    headers = {**app.headers, **(login.headers if login else {})}
    return {"connections": app.connections or None, "headers": headers}


def _lines(pairs: Mapping[str, object], within: str = "") -> Iterator[str]:
    """Write what is given, each value in a line of its own: dotted keys stay in their table."""
    for name, value in pairs.items():
        key = within + (name if BARE.fullmatch(name) else _written(name))
        if isinstance(value, Mapping):
            yield from _lines(value, f"{key}.")
        elif value is not None:
            yield f"{key} = {_written(value)}"


def _written(value: object) -> str:
    return tomli_w.dumps({"key": value}).strip().removeprefix("key = ")
