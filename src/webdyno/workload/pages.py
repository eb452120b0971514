"""Which paths of a log are pages that a program made, and what that took."""

import re

import numpy as np

from webdyno.model.workload import Pages
from webdyno.workload.log import Floats, Log
from webdyno.workload.traffic import Mix

DEAR_S, LONGEST_S = 0.002, 2.0
"""Median times of an answer beyond which it is no file, and up to which a twin imitates it."""
_FILE = re.compile(
    r"\.(?:avif|bmp|css|eot|gif|gz|ico|jpe?g|m?js|map|mp[34]|otf|pdf|png|svg|ttf|web[mp]|woff2?|zip)",
    re.IGNORECASE,
)


def page_costs(log: Log) -> dict[str, float]:
    """Give the seconds that a path's answers took, the median, where that is more than files take.

    Nothing of what is a file by its name: its time is that of a client that reads it.
    """
    costs: dict[str, float] = {}
    for asked, of_it in log.by_asked():
        known = log.took_s[of_it]
        known = known[~np.isnan(known)]
        if not len(known) or _FILE.fullmatch(asked.path, asked.path.rfind(".")):
            continue
        median_s = min(float(np.median(known)), LONGEST_S)
        if median_s >= DEAR_S:
            costs[asked.path] = max(costs.get(asked.path, 0.0), median_s)
    return costs


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
