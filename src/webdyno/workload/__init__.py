"""Traffic from a log: what it was like, and a load that is like it."""

from typing import Any, Literal, NamedTuple

import numpy as np

from webdyno.model.load import Replay
from webdyno.model.workload import Workload
from webdyno.workload.fidelity import fidelity
from webdyno.workload.formats.times import moment_of
from webdyno.workload.log import Log, LogSelection
from webdyno.workload.pages import cost_of_each, page_costs, pages_of
from webdyno.workload.popularity import popularity
from webdyno.workload.privacy import Privacy, Treatment
from webdyno.workload.read import read_logs
from webdyno.workload.rhythm import arrivals, replay_of, sessions, spread_of
from webdyno.workload.source import check_is_file
from webdyno.workload.traffic import (
    Manner,
    connections,
    load_keys,
    mix,
    request_entries,
    traffic_toml,
)
from webdyno.workload.twin import NAME, Twin, twin_of, write_twin

__all__ = [
    "NAME",
    "Log",
    "LogSelection",
    "Manner",
    "Privacy",
    "Traffic",
    "Treatment",
    "check_is_file",
    "moment_of",
    "read_logs",
    "traffic_of",
    "write_twin",
]


class Traffic(NamedTuple):
    """What was found in a log, and the load that is made of it."""

    workload: Workload
    load: dict[str, Any]
    """Keys of `[load]`."""
    requests: list[dict[str, Any]]
    """Entries of `[[requests]]`."""
    text: str
    """All of it as `traffic.toml`."""
    replay: Replay | None
    """When each request came, where that was asked for."""
    twin: Twin | None
    """Its twin site, where that was asked for."""


def traffic_of(
    log: Log,
    manner: Manner,
    *,
    twin: Literal["pages", "files"] | None = None,
    replay_file: str | None = None,
) -> Traffic:
    """Fit a workload to a log, and make a load of it, for a twin site or for the user's own.

    A twin of pages has such where the log knows that answers took time, one of files never.
    With the name of a file that its own timetable will be written to, as the load's text names it.
    Raise Mistake where a twin would be too large, or the log can't be replayed.
    """
    paths = {path: number for number, path in enumerate(dict.fromkeys(it.path for it in log.asked))}
    path_id = np.array([paths[asked.path] for asked in log.asked])[log.asked_id]
    spread_over = popularity(path_id, len(paths))
    chosen = mix(log, spread_over)
    when = arrivals(log.time_s)
    visits, _ = sessions(log.time_s, log.client_id)
    methods = np.array([asked.method for asked in log.asked])[log.asked_id]
    costs = page_costs(log) if twin == "pages" else {}
    names, counts = np.unique(methods, return_counts=True)
    workload = Workload(
        log="".join(it if it.isprintable() else "?" for it in log.name),
        requests=len(log),
        left_out=log.left_out,
        hidden=log.hidden,
        methods=dict(zip(names.tolist(), (counts / len(log)).tolist(), strict=True)),
        popularity=spread_over,
        answer_bytes=spread_of(log.body_bytes),
        sessions=visits,
        arrivals=when,
        connections=connections(log),
        pages=pages_of(log, chosen, costs, when.rate_per_s * manner.speed),
        fidelity=fidelity(log, chosen, when, visits, cost_of_each(log, costs) if twin else None),
    )
    load, requests = load_keys(workload, chosen, manner), request_entries(log, chosen)
    replay = None
    if replay_file is not None:
        replay, load = replay_of(log, chosen), load | {"replay_file": replay_file}
    site = twin_of(log, requests, costs) if twin else None
    requests = site.requests if site else requests
    text = traffic_toml(workload, load, requests, manner.speed)
    return Traffic(workload, load, requests, text, replay, site)
