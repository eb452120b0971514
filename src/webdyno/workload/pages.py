"""Which paths of a log are pages that a program made, and what that took."""

import re
from collections import defaultdict

import numpy as np

from webdyno.model.workload import Pages
from webdyno.workload.log import Floats, Log
from webdyno.workload.traffic import Mix

DEAR_S, LONGEST_S = 0.002, 2.0
"""Median times of an answer beyond which it is no file, and up to which a twin imitates it."""
NONE = np.zeros(0)
FEWEST = 5
"""Answers of which a median is taken: one of a file that took long says nothing."""
_FILE = re.compile(
    r"\.(?:avif|bmp|css|eot|gif|gz|ico|jpe?g|m?js|map|mp[34]|otf|pdf|png|svg|ttf|txt|web[mp]|woff2?"
    r"|zip)",
    re.IGNORECASE,
)


def page_costs(log: Log) -> dict[str, float]:
    """Give the seconds that a path's answers took, the median, where that is more than files take.

    Paths with few answers have the median of all such whose names end alike. Nothing of what is a
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
    """Give the seconds by number of what was asked; files cost none."""
    return np.array([costs.get(asked.path, 0.0) for asked in log.asked])


def pages_of(log: Log, chosen: Mix, costs: dict[str, float], rate_per_s: float) -> Pages | None:
    """Say what of a load at this rate is pages; None where nothing is."""
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
