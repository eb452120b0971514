"""A load in the terms of an experiment, made of a log: what is asked for, how often, how fast."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import tomli_w

from webdyno.definitions.entries import with_body
from webdyno.model.request import MOST_REQUESTS
from webdyno.model.workload import ConnectionUse, Popularity, Workload
from webdyno.workload.log import Floats, Log
from webdyno.workload.popularity import zipf_shares

THINNED = MOST_REQUESTS // 5
"""Requests that stand for the tail, where a log has more paths than an experiment."""
SLOWEST_RATE, FASTEST_RATE, LONGEST_PAUSE_S = 0.001, 1e8, 3600.0
PARTIAL, NOT_MODIFIED, SUCCESS = 206, 304, 200


@dataclass(frozen=True)
class Manner:
    """How a load follows a log."""

    loop: Literal["open", "closed"] = "open"
    speed: float = 1.0
    """How many times as fast as in the log."""


class Mix(NamedTuple):
    """What a load asks for: numbers of `Log.asked` in the order of their ranks, and shares."""

    ids: list[int]
    shares: Floats
    zipf: float | None
    """The exponent, where the shares are those of Zipf's law."""


def mix(log: Log, popularity: Popularity) -> Mix:
    """Choose what is asked for and how often.

    Of more paths than an experiment takes, the first ones keep their shares; evenly spaced ones
    of the others stand for these.
    """
    counts = np.bincount(log.asked_id, minlength=len(log.asked))
    ranked = np.argsort(-counts, kind="stable")
    one_method = popularity.paths == len(log.asked)  # an experiment's Zipf's law knows no methods
    by_law = popularity.kind == "zipf" and one_method
    shares = zipf_shares(len(ranked), popularity.zipf) if by_law else counts[ranked] / counts.sum()
    if len(ranked) <= MOST_REQUESTS:
        return Mix(ranked.tolist(), shares, popularity.zipf if by_law else None)
    first = MOST_REQUESTS - THINNED
    tail = np.linspace(first, len(ranked) - 1, THINNED).astype(int)
    of_tail = np.full(THINNED, shares[first:].sum() / THINNED)
    kept = np.concatenate((ranked[:first], ranked[tail]))
    return Mix(kept.tolist(), np.concatenate((shares[:first], of_tail)), None)


def load_keys(workload: Workload, chosen: Mix, manner: Manner) -> dict[str, Any]:
    """Give the keys of `[load]`."""
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
    """Say how connections were used; None where the log doesn't tell of each request."""
    first = int((log.connection == 1).sum())
    if (log.connection < 0).any() or not first:
        return None
    return ConnectionUse(kept_share=1 - first / len(log), requests_each=len(log) / first)


def request_entries(log: Log, chosen: Mix) -> list[dict[str, Any]]:
    """Give the entries of `[[requests]]`."""
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
    return entries


def _usual_statuses(log: Log) -> dict[int, int]:
    """Give what each was answered with most often, answers apart that a condition asked for."""
    told = (log.status != PARTIAL) & (log.status != NOT_MODIFIED)
    pairs, counts = np.unique(
        np.stack((log.asked_id[told], log.status[told])), axis=1, return_counts=True
    )
    rare_first = np.argsort(counts, kind="stable")
    return dict(pairs[:, rare_first].T.tolist())


def traffic_toml(
    workload: Workload, load: dict[str, Any], requests: list[dict[str, Any]], speed: float
) -> str:
    """Give `traffic.toml`: a part of an experiment, and what it was made from."""
    told = workload.model_dump(exclude_none=True)
    as_fast = "" if speed == 1 else f", {speed:g} times as fast"
    return (
        f"# Traffic as in a log of {workload.requests} requests{as_fast}, by `webdyno workload`.\n"
        "# webdyno duel A B --requests THIS-FILE, or as a part of an experiment's file.\n\n"
        + tomli_w.dumps({"load": load, "workload": told})
        + "".join(f"\n\n[[requests]]\n{tomli_w.dumps(entry).rstrip()}" for entry in requests)
        + "\n"
    )
