"""Traffic from a log, as a load in the terms of an experiment: what is requested, how often.

And what people read of it: what the log has, and how well the load agrees with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import tomli_w

from webdyno.config.requests import refuse_variables, with_body
from webdyno.core import format as text
from webdyno.core.errors import UserError
from webdyno.core.replay import MOST_REPLAYED, Replay
from webdyno.core.tables import is_table
from webdyno.traffic.fits import Mix, arrivals, fidelity, mix, popularity, sessions, spread_of_known
from webdyno.traffic.log import Floats, Log, Whole
from webdyno.traffic.twin import Twin, cost_of_each, page_costs, pages_of, twin_of
from webdyno.traffic.workload import Agreement, ConnectionUse, Workload

SLOWEST_RATE, FASTEST_RATE, LONGEST_PAUSE_S = 0.001, 1e8, 3600.0
PARTIAL, NOT_MODIFIED, SUCCESS = 206, 304, 200


@dataclass(frozen=True)
class Manner:
    """How a load follows a log."""

    loop: Literal["open", "closed"] = "open"
    speed: float = 1.0
    """How many times as fast as in the log."""


def load_keys(workload: Workload, chosen: Mix, manner: Manner) -> dict[str, Any]:
    """Return the keys of `[load]`."""
    arrivals, pause_s = workload.arrivals, workload.sessions.pause_s
    keys: dict[str, Any] = {} if chosen.zipf is None else {"zipf": round(chosen.zipf, 4)}
    if manner.loop == "open":
        rate = min(max(arrivals.rate_per_s * manner.speed, SLOWEST_RATE), FASTEST_RATE)
        keys |= {"loop": "open", "rate_per_s": float(f"{rate:.6g}"), "arrivals": "poisson"}
    else:
        mean_s = pause_s.mean if pause_s else 0.0
        thinking = round(arrivals.rate_per_s * mean_s)  # Little's law: who thinks at any time
        keys |= {
            "loop": "closed",
            "connections": max(thinking, 1),
            "think_s": float(f"{min(mean_s / manner.speed, LONGEST_PAUSE_S):.6g}"),
        }
    if workload.connections:
        keys["keepalive"] = max(round(workload.connections.requests_each), 1)
    return keys


def connections(log: Log) -> ConnectionUse | None:
    """Describe how connections were used; None where the log doesn't say of each request."""
    first = int((log.connection == 1).sum())
    if (log.connection < 0).any() or not first:
        return None
    return ConnectionUse(kept_share=1 - first / len(log), requests_each=len(log) / first)


def request_entries(log: Log, chosen: Mix) -> list[dict[str, Any]]:
    """Return the entries of `[[requests]]`."""
    statuses = _usual_statuses(log)
    scale = 100 / chosen.shares.sum()
    entries = []
    for number, share in zip(chosen.ids, chosen.shares.tolist(), strict=True):
        asked = log.asked[number]
        entry: dict[str, Any] = {"path": asked.path}
        if asked.method != "GET":
            entry["method"] = asked.method
        if chosen.zipf is None:
            entry["weight"] = float(f"{share * scale:.6g}")
        if statuses.get(number, SUCCESS) != SUCCESS:
            entry["status"] = statuses[number]
        if asked.content_type:
            entry["headers"] = {"Content-Type": asked.content_type}
        entries.append(with_body(entry, asked.body))
    refuse_variables(entries, log.name, log.variables)
    return entries


def _usual_statuses(log: Log) -> dict[int, int]:
    """Return what each was answered with most often, responses apart that a condition requested."""
    is_whole = (log.status != PARTIAL) & (log.status != NOT_MODIFIED)
    pairs, counts = np.unique(
        np.stack((log.asked_id[is_whole], log.status[is_whole])), axis=1, return_counts=True
    )
    rare_first = np.argsort(counts, kind="stable")
    return dict(pairs[:, rare_first].T.tolist())


def traffic_toml(
    workload: Workload, load: dict[str, Any], requests: list[dict[str, Any]], speed: float
) -> str:
    """Return `traffic.toml`: a part of an experiment, and what it was made from."""
    fitted = workload.model_dump(exclude_none=True)
    as_fast = "" if speed == 1 else f", {speed:g} times as fast"
    return (
        f"# Traffic as in a log of {workload.requests} requests{as_fast}, by `webdyno traffic`.\n"
        "# webdyno compare A B --traffic THIS-FILE, or as a part of an experiment's file.\n\n"
        + tomli_w.dumps({"load": load, "workload": fitted})
        + "".join(map(_entry_text, requests))
        + "\n"
    )


def _entry_text(entry: Mapping[str, Any]) -> str:
    tables = {key: value for key, value in entry.items() if is_table(value)}
    keys = {key: value for key, value in entry.items() if key not in tables}
    inner = tomli_w.dumps({"requests": tables}) if tables else ""
    return f"\n\n[[requests]]\n{tomli_w.dumps(keys)}{inner}".rstrip()


def replay_of(log: Log, chosen: Mix) -> Replay:
    """Return when each request of a log came, and which of the load's requests it is.

    What the load has no request for is replaced by the one that stands for it, of the nearest rank.
    Raise UserError for a log that can't be replayed.
    """
    if len(log) > MOST_REPLAYED:
        raise UserError(
            f"--replay: {len(log):,} requests are more than {MOST_REPLAYED:,}; choose some hours "
            "with --from and --to"
        )
    if not log.time_s[-1] > log.time_s[0]:
        raise UserError("--replay: all requests came at the same time")
    times_s = np.fromiter(_spread_over_seconds(log.time_s), float, len(log))
    return Replay(
        (times_s - times_s[0]).tolist(), _standing_for(log, chosen)[log.asked_id].tolist()
    )


def _standing_for(log: Log, chosen: Mix) -> Whole:
    """Return, by number of what was asked, the number of the load's request."""
    counts = np.bincount(log.asked_id, minlength=len(log.asked))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    kept = rank[chosen.ids]  # ascending: requests are in the order of their ranks
    after = np.searchsorted(kept, rank).clip(0, len(kept) - 1)
    before = (after - 1).clip(0)
    return np.where(abs(kept[before] - rank) < abs(kept[after] - rank), before, after)


def _spread_over_seconds(times_s: Floats) -> Iterator[float]:
    """Spread requests of one whole second evenly over it, where a log knows no parts of seconds."""
    if (times_s % 1).any():
        yield from times_s
        return
    for second, many in zip(*np.unique(times_s, return_counts=True), strict=True):
        yield from second + np.arange(many) / many


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
    """When each request came, where that was requested."""
    twin: Twin | None
    """Its twin site, where that was requested."""


def traffic_of(
    log: Log,
    manner: Manner,
    *,
    twin: Literal["pages", "files"] | None = None,
    replay_file: str | None = None,
) -> Traffic:
    """Fit a workload to a log, and make a load of it, for a twin site or for the user's own.

    A twin of pages has such where the log knows that responses took time. `replay_file`: what the
    load's text calls the timetable. Raise UserError where a twin would be too large, or the log
    can't be replayed.
    """
    paths = {
        path: number
        for number, path in enumerate(dict.fromkeys(request.path for request in log.asked))
    }
    path_id = np.array([paths[asked.path] for asked in log.asked])[log.asked_id]
    spread_over = popularity(path_id, len(paths))
    chosen = mix(log, spread_over)
    when = arrivals(log.time_s)
    visits, _ = sessions(log.time_s, log.client_id)
    methods = np.array([asked.method for asked in log.asked])[log.asked_id]
    costs = page_costs(log) if twin == "pages" else {}
    names, counts = np.unique(methods, return_counts=True)
    workload = Workload(
        log="".join(character if character.isprintable() else "?" for character in log.name),
        requests=len(log),
        excluded=log.excluded,
        hidden=log.hidden,
        methods=dict(zip(names.tolist(), (counts / len(log)).tolist(), strict=True)),
        popularity=spread_over,
        response_bytes=spread_of_known(log.body_bytes),
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


def facts_of(log: Workload) -> Iterator[tuple[str, str]]:
    """Yield what a log has, name by name."""
    popularity, sessions, arrivals = log.popularity, log.sessions, log.arrivals
    yield "requests", f"{text.number(log.requests)} in {text.duration(arrivals.span_s)}"
    yield "rate", f"{text.significant(arrivals.rate_per_s)} per second"
    yield (
        "methods",
        ", ".join(f"{name} {text.percent(share)}" for name, share in log.methods.items()),
    )
    law = (
        f"Zipf's law, exponent {popularity.zipf:.3f} ± {popularity.zipf_error:.3f}"
        if popularity.kind == "zipf"
        else "shares of their own; Zipf's law fits them worse by "
        f"{popularity.zipf_loss_nats:.2f} nats per request"
    )
    yield "paths", f"{text.number(popularity.paths)}, by {law}"
    size = log.response_bytes
    yield (
        "responses",
        f"{text.size(size.mean)} on average, 9 of 10 within {text.size(size.p90)}"
        if size
        else "the log doesn't say how large they are",
    )
    yield (
        "sessions",
        f"{text.number(sessions.sessions)} of {text.number(sessions.clients)} clients, "
        f"{text.significant(sessions.requests.mean)} requests each"
        + (f", {text.duration(sessions.pause_s.mean)} between" if sessions.pause_s else ""),
    )
    if made := log.pages:
        use = f"{text.count(made.paths, 'path')}, {text.percent(made.share)} of requests, "
        use += f"{text.duration(made.cpu_s)} of CPU time each, "
        yield "pages", f"{use}{text.significant(made.busy_cpus)} CPUs at the load's rate"
    kept = log.connections
    yield (
        "connections",
        f"{text.percent(kept.kept_share)} of requests on one that was kept"
        if kept
        else "the log doesn't say whether they were kept",
    )
    yield from (("excluded", f"{text.number(value)} {why}") for why, value in log.excluded.items())
    yield "hidden", "addresses and agents hashed; users, referers, other headers dropped"
    yield from (("hidden", f"{text.number(value)} {what}") for what, value in log.hidden.items())


def agreement_words(agreement: Agreement) -> tuple[str, str, str, str]:
    """Return a figure's name, its values in the log and in the load, and whether these agree."""
    agrees = {True: "agree", False: "differ", None: "inconclusive"}[agreement.agrees]
    log, load = (
        text.MISSING if value is None else text.significant(value)
        for value in (agreement.log, agreement.load)
    )
    return agreement.what, log, load, agrees
