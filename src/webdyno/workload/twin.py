"""A twin site: made-up files with a log's paths and sizes, for stacks to serve."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import tomli_w

from webdyno.model.format import size
from webdyno.model.mistake import Mistake, Trouble
from webdyno.workload.log import Log

NAME = "twin"
SUCCESS = 200
LARGEST_FILE_BYTES = 2**30
MOST_BYTES = 4 * 2**30
LONGEST_PATH = 200
_PLAIN = re.compile(r"(?:/[^/.{}\\\x00-\x1f\x7f][^/{}\\\x00-\x1f\x7f]*)+/?|/")
"""A path that every server answers with a file: nothing hidden, nothing empty."""


def twin_of(log: Log, entries: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Give a twin's `site.toml` as data, and the requests for it.

    A file has the median size that its path was answered with. What isn't a plain file (queries,
    redirects, missing pages, a path that is a folder of others as well) becomes a file of another
    name. Raise Mistake where the files would be too large.
    """
    sizes = _sizes(log)
    folders = {up for entry in entries for up in _folders_above(unquote(entry["path"]))}
    names: dict[str, str] = {}
    files, pages = dict[str, Any](), dict[str, Any]()
    for entry in entries:
        path = entry["path"]
        if path in names:
            continue
        plain = entry.get("status", SUCCESS) == SUCCESS and len(path) <= LONGEST_PATH
        file = _file(unquote(path)) if plain and "?" not in path else None
        if file is None or f"/{file}" in folders or file in files:
            names[path], file = f"/{NAME}-{len(names)}.html", f"{NAME}-{len(names)}.html"
        else:
            names[path] = path
        files[file] = {"size_bytes": sizes[path]}
        pages[names[path]] = {"body_bytes": sizes[path]}
    if (total := sum(sizes[path] for path in names)) > MOST_BYTES:
        raise Mistake(
            f"--twin: its files would have {size(total)}, and {size(MOST_BYTES)} are the most; "
            "choose some hours with --from and --to"
        )
    site = {
        "title": f"Made-up files as in a log: {len(files)} paths",
        "needs": ["static"],
        "files": files,
        "paths": pages,
    }
    return site, [
        {**{key: it[key] for key in it if key != "status"}, "path": names[it["path"]]}
        for it in entries
    ]


def write_twin(folder: Path, site: dict[str, Any]) -> None:
    """Write a catalogue that has the twin; raise Trouble where that fails."""
    place = folder / "sites" / NAME
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / "site.toml").write_text(tomli_w.dumps(site), encoding="utf-8")
    except OSError as error:
        raise Trouble(f"{place}: can't be written: {error.strerror}") from None


def _sizes(log: Log) -> dict[str, int]:
    """Give each path's median size, of answers in full to a GET if there are any."""
    in_full = log.status == SUCCESS
    sizes: defaultdict[str, int] = defaultdict(int)
    order = np.argsort(log.asked_id, kind="stable")
    bounds = np.searchsorted(log.asked_id[order], np.arange(len(log.asked) + 1))
    for number, asked in enumerate(log.asked):
        of_it = order[bounds[number] : bounds[number + 1]]
        full = of_it[in_full[of_it]]
        median = float(np.median(log.body_bytes[full if len(full) else of_it]))
        sizes[asked.path] = min(max(sizes[asked.path], round(median)), LARGEST_FILE_BYTES)
    return sizes


def _file(path: str) -> str | None:
    """Name the file that answers for a path; None where that isn't plain."""
    if not _PLAIN.fullmatch(path) or "\N{REPLACEMENT CHARACTER}" in path:
        return None
    return f"{path[1:]}index.html" if path.endswith("/") else path[1:]


def _folders_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(2, len(parts))]
