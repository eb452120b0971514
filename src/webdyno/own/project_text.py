"""Writes a `webdyno.toml`: how an application is built, started and asked."""

from collections.abc import Iterator, Mapping

import tomli_w

from webdyno.own.layouts.found import FoundApp


def project_text(app: FoundApp, requests: Mapping[str, int | None]) -> str:
    """Give the file's text; comments stand where its user has to look.

    `requests` are paths, each with the status of its response where that has to be written.
    """
    load = _load(app)
    parts = [
        "[app]",
        *(f"# {doubt}" for doubt in app.doubts),
        *_lines(_app(app)),
        *([""] if load else []),
        *(["[load]", *_lines(load)] if load else []),
    ]
    for path, status in requests.items():
        parts += ["", "[[requests]]", *_lines({"path": path, "status": status})]
    return "\n".join(parts) + "\n"


def _app(app: FoundApp) -> dict[str, object]:
    return {
        "dir": app.dir if app.dir != "." else None,
        "build": app.build,
        **{f"services.{role}": name for role, name in app.services.items()},
        "setup": app.setup,
        "prepare": app.prepare if app.start else None,
        "start": app.start,
        "image": app.image,
        "conf": app.conf,
        "root": app.root,
        "ready_within": app.ready_within_s,
        **{f"environment.{name}": value for name, value in app.environment.items()},
    }


def _load(app: FoundApp) -> dict[str, object]:
    headers = {f"headers.{name}": value for name, value in app.headers.items()}
    return {**({"connections": app.connections} if app.connections else {}), **headers}


def _lines(pairs: Mapping[str, object]) -> Iterator[str]:
    """Write what is given; dotted keys stay in their table."""
    for key, value in pairs.items():
        if value is not None:
            written = tomli_w.dumps({"key": value}).strip()
            yield key + written.removeprefix("key")
