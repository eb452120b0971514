"""How requests are spread over paths: by Zipf's law, or by the shares of the first paths."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from webdyno.model.workload import Popularity
from webdyno.workload.log import Floats, Whole

MOST_EXPONENT = 10.0
GOOD_ENOUGH_NATS = 0.01
"""Zipf's law is taken where it tells the other half of the log at most this much worse per request
than the paths' own shares: by Pinsker's inequality their shares then differ by 7 % in all."""
SMOOTHING = 0.5
"""Added to each path's count, after Jeffreys: what wasn't seen in one half isn't impossible."""


class Exponent(NamedTuple):
    """Zipf's exponent and its standard error."""

    value: float
    error: float


def zipf_exponent(counts: Whole) -> Exponent:
    """Estimate Zipf's exponent from how often each path was asked for.

    Maximum likelihood over the ranks 1 to N with probability k^-s / H(N, s); the standard error
    comes from the Fisher information n Var(ln K) (Clauset, Shalizi and Newman 2009, appendix B, for
    a bounded range). With few requests per path the ranks themselves are uncertain, which the
    error doesn't tell: it is meant for 20 requests a path and more.
    """
    ranked = np.sort(counts)[::-1].astype(np.float64)
    logs = np.log(np.arange(1, len(ranked) + 1, dtype=np.float64))
    total, weighted = ranked.sum(), float(ranked @ logs)

    def loss(exponent: float) -> float:
        return float(exponent * weighted + total * np.log(np.exp(-exponent * logs).sum()))

    if len(ranked) < 2:
        return Exponent(0.0, 0.0)
    found = float(minimize_scalar(loss, bounds=(0.0, MOST_EXPONENT), method="bounded").x)
    shares = zipf_shares(len(ranked), found)
    mean = float(shares @ logs)
    variance = float(shares @ (logs - mean) ** 2)
    return Exponent(found, (total * variance) ** -0.5 if variance > 0 else 0.0)


def zipf_shares(paths: int, exponent: float) -> Floats:
    """Give the shares of the ranks 1 to `paths`."""
    weights = np.arange(1, paths + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def popularity(asked_id: Whole, paths: int) -> Popularity:
    """Say how requests, in order of time, are spread over paths, and which law tells it better."""
    counts = np.bincount(asked_id, minlength=paths)
    exponent = zipf_exponent(counts)
    loss = zipf_loss(asked_id, paths)
    kind: Literal["zipf", "top"] = "zipf" if loss <= GOOD_ENOUGH_NATS else "top"
    return Popularity(
        paths=paths,
        kind=kind,
        zipf=exponent.value,
        zipf_error=exponent.error,
        zipf_loss_nats=loss,
    )


def zipf_loss(asked_id: Whole, paths: int) -> float:
    """Fit both laws to every other request; give what Zipf's tells worse of the rest, in nats."""
    fitted = np.bincount(asked_id[::2], minlength=paths)
    others = np.bincount(asked_id[1::2], minlength=paths)
    if not others.sum():
        return 0.0
    own = (fitted + SMOOTHING) / (fitted.sum() + SMOOTHING * paths)
    by_law = _zipf_by_path(fitted, zipf_exponent(fitted[fitted > 0]).value)
    return float(others @ (np.log(own) - np.log(by_law)) / others.sum())


def _zipf_by_path(counts: Whole, exponent: float) -> Floats:
    """Give each path the share of its rank; paths of one count share those of their ranks."""
    _, group, sizes = np.unique(-counts, return_inverse=True, return_counts=True)
    begins = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    together = np.add.reduceat(zipf_shares(len(counts), exponent), begins)
    return np.asarray((together / sizes)[group], dtype=np.float64)
