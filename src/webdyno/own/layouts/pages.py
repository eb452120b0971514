"""Pages as they are, with or without a configuration of nginx."""

from pathlib import Path

from webdyno.own.layouts.app import FoundApp

PYTHON_QUEUE = 4
"""Connections that Python's own server takes at once without fail: it lets five wait."""
FOLDERS = (".", "public", "html", "www", "site", "_site", "dist")
ROOTED = "root is {root}, in the place of what nginx.conf names"
MOST_PATHS = 6


def find_nginx(folder: Path) -> FoundApp | None:
    """Take a configuration of nginx, with the pages beside it."""
    if not (folder / "nginx.conf").is_file():
        return None
    root = _folder_of_pages(folder)
    notes = (ROOTED.format(root=root),) if root else ()
    return FoundApp("nginx.conf", conf="nginx.conf", root=root, notes=notes)


def find_pages(folder: Path) -> FoundApp | None:
    """Have Python's own server give a folder of HTML."""
    inner = _folder_of_pages(folder)
    if inner is None:
        return None
    names = sorted(path.name for path in (folder / inner).glob("*.html"))
    server = "python3 -m http.server $PORT --bind 127.0.0.1"
    return FoundApp(
        f"{inner}/index.html".removeprefix("./"),
        server if inner == "." else f"{server} --directory {inner}",
        paths=("/", *(f"/{name}" for name in names if name != "index.html"))[:MOST_PATHS],
        connections=PYTHON_QUEUE,
    )


def _folder_of_pages(folder: Path) -> str | None:
    return next((path for path in FOLDERS if (folder / path / "index.html").is_file()), None)
