"""A twin site: files and pages with a log's paths, sizes and costs, for stacks to serve."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import tomli_w

from webdyno.core.errors import UserError
from webdyno.core.files import write_whole
from webdyno.core.format import size
from webdyno.traffic.fits import Mix
from webdyno.traffic.log import Floats, Log
from webdyno.traffic.workload import Pages

NAME = "twin"
SUCCESS = 200
LARGEST_FILE_BYTES = 2**30
MOST_BYTES = 4 * 2**30
LARGEST_PAGE_BYTES = 16 * 2**20
"""PHP has it in memory as a whole."""
LONGEST_PATH = 200
APP = Path(__file__).parent / "app"
"""What makes pages, in PHP and JavaScript."""
MADE = "<?php require getenv('TWIN_APP') . '/page.php'; page({:g}, {});\n"
_PLAIN = re.compile(r"(?:/[^/.{}\\\x00-\x1f\x7f][^/{}\\\x00-\x1f\x7f]*)+/?|/")
"""A path that every server answers with a file: nothing hidden, nothing empty."""
DEAR_S, LONGEST_S = 0.002, 2.0
"""Median response times from which it is no file, and up to which a twin imitates them."""
NONE = np.zeros(0)
FEWEST = 5
"""Responses of which a median is taken: one of a file that took long says nothing."""
_FILE = re.compile(
    r"\.(?:avif|bmp|css|eot|gif|gz|ico|jpe?g|m?js|map|mp[34]|otf|pdf|png|svg|ttf|txt|web[mp]|woff2?"
    r"|zip)",
    re.IGNORECASE,
)


class TwinPage(NamedTuple):
    """What a program has to make."""

    cpu_ms: float
    bytes: int


class Twin(NamedTuple):
    """A site like that of a log."""

    site: dict[str, Any]
    """Its `site.toml`."""
    pages: dict[str, TwinPage]
    """By path: what of it isn't files."""
    requests: list[dict[str, Any]]
    """`[[requests]]` for it."""


def twin_of(log: Log, entries: list[dict[str, Any]], costs: Mapping[str, float]) -> Twin:
    """Make a twin for these requests; `costs` has the CPU seconds of pages, by path.

    A file has the median size that its path was answered with, and so has a page. What isn't a
    plain file (queries, redirects, missing pages, a path that is a folder of others as well)
    becomes a file of another name; so do pages whose names don't lead a server to PHP. Raise
    UserError where the files would be too large.
    """
    sizes = _sizes(log)
    folders = set[str]()
    for entry in entries:
        parts = unquote(entry["path"]).split("/")
        folders.update("/".join(parts[:depth]) for depth in range(2, len(parts)))
    names: dict[str, str] = {}
    files, right, pages = dict[str, Any](), dict[str, Any](), dict[str, TwinPage]()
    for entry in entries:
        path = entry["path"]
        if path in names:
            continue
        is_page = path in costs and sizes[path] <= LARGEST_PAGE_BYTES
        plain = entry.get("status", SUCCESS) == SUCCESS and len(path) <= LONGEST_PATH
        file = _file(unquote(path), is_page) if plain and "?" not in path else None
        names[path] = path
        if file is None or f"/{file}" in folders or file in files:
            file = f"{NAME}-{len(names) - 1}.{'php' if is_page else 'html'}"
            names[path] = f"/{file}"
        files[file] = {"size_bytes": sizes[path]}
        right[names[path]] = {"body_bytes": sizes[path]}
        if is_page:
            made = TwinPage(float(f"{costs[path] * 1e3:.4g}"), sizes[path])
            pages[unquote(names[path])] = made
            files[file] = {"text": MADE.format(made.cpu_ms, made.bytes)}
    if (total := sum(sizes[path] for path in names)) > MOST_BYTES:
        raise UserError(
            f"--twin: its files would have {size(total)}, and {size(MOST_BYTES)} are the most; "
            "choose some hours with --from and --to"
        )
    site = {
        "title": f"Made up as in a log: {len(files) - len(pages)} files, {len(pages)} pages",
        "needs": ["static", *["php|node"] * bool(pages)],
        "environment": {"TWIN_APP": "{{ site.app }}"},
        "files": files,
        "paths": right,
    }
    requests = [
        {**{key: entry[key] for key in entry if key != "status"}, "path": names[entry["path"]]}
        for entry in entries
    ]
    return Twin(site, pages, requests)


def write_twin(folder: Path, twin: Twin) -> None:
    """Write a catalogue that has the twin; raise OperationError if it fails."""
    place = folder / "sites" / NAME
    pages = {path: page._asdict() for path, page in twin.pages.items()}
    write_whole(place / "site.toml", tomli_w.dumps(twin.site), below=folder)
    write_whole(place / "app/pages.json", json.dumps(pages), below=folder)
    for code in APP.iterdir():
        write_whole(place / "app" / code.name, code.read_bytes(), below=folder)


def _sizes(log: Log) -> dict[str, int]:
    """Return each path's median size, of full responses to a GET if there are any, else of all.

    Raise UserError where no size is known.
    """
    is_known = ~np.isnan(log.body_bytes)
    if not is_known.any():
        raise UserError(
            f"--twin: {log.name} doesn't say how large responses are, and a twin's files are as "
            "large: let the log have it ($body_bytes_sent in nginx, sc-bytes in IIS)"
        )
    usual = float(np.median(log.body_bytes[is_known]))
    in_full = log.status == SUCCESS
    sizes: defaultdict[str, int] = defaultdict(int)
    for asked, of_it in log.by_asked():
        known = of_it[is_known[of_it]]
        full = known[in_full[known]]
        of_path = log.body_bytes[full if len(full) else known]
        median = float(np.median(of_path)) if len(of_path) else usual
        sizes[asked.path] = min(max(sizes[asked.path], round(median)), LARGEST_FILE_BYTES)
    return sizes


def _file(path: str, is_page: bool) -> str | None:
    """Return the file that answers for a path; None where that isn't plain, or a page isn't PHP.

    None for index.php as well, which some servers take for all folders without one.
    """
    if not _PLAIN.fullmatch(path) or "\N{REPLACEMENT CHARACTER}" in path:
        return None
    file = f"{path[1:]}index.html" if path.endswith("/") else path[1:]
    is_index = file.rpartition("/")[2] == "index.php"
    return None if is_index or (is_page and not file.endswith(".php")) else file


def page_costs(log: Log) -> dict[str, float]:
    """Return the seconds that a path's responses took, the median, where files take less.

    Paths with few responses have the median of all such whose names end alike. Nothing of what is a
    file by its name: its time is that of a client that reads it.
    """
    times: dict[str, Floats] = {}
    for asked, of_it in log.by_asked():
        known = log.took_s[of_it]
        if not _FILE.fullmatch(_ending(asked.path)):
            before = times.get(asked.path, NONE)
            times[asked.path] = np.concatenate((before, known[~np.isnan(known)]))
    alike: defaultdict[str, list[Floats]] = defaultdict(list)
    for path, of_path in times.items():
        if len(of_path) < FEWEST:
            alike[_ending(path)].append(of_path)
    together = {ending: _median_s(np.concatenate(of_them)) for ending, of_them in alike.items()}
    costs: dict[str, float] = {}
    for path, of_path in times.items():
        few = len(of_path) < FEWEST
        median_s = together[_ending(path)] if few else _median_s(of_path)
        if median_s >= DEAR_S:
            costs[path] = min(median_s, LONGEST_S)
    return costs


def _median_s(times_s: Floats) -> float:
    return float(np.median(times_s)) if len(times_s) >= FEWEST else 0.0


def _ending(path: str) -> str:
    name = path.partition("?")[0].rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


def cost_of_each(log: Log, costs: dict[str, float]) -> Floats:
    """Return the seconds by number of what was asked; files cost none."""
    return np.array([costs.get(asked.path, 0.0) for asked in log.asked])


def pages_of(log: Log, chosen: Mix, costs: dict[str, float], rate_per_s: float) -> Pages | None:
    """Return what of a load at this rate is pages; None where nothing is."""
    cost_s = cost_of_each(log, costs)[chosen.ids]
    shares = chosen.shares / chosen.shares.sum()
    is_page = cost_s > 0
    if not is_page.any():
        return None
    share, each_s = float(shares[is_page].sum()), float(cost_s @ shares)
    return Pages(
        paths=len({log.asked[number].path for number in np.array(chosen.ids)[is_page]}),
        share=min(share, 1.0),
        cpu_s=each_s / share,
        busy_cpus=each_s * rate_per_s,
    )
