"""Queues of one server with Poisson arrivals, whose capacity under an objective can be computed."""

from decimal import Decimal, localcontext
from math import log

from scipy.optimize import brentq

DIGITS = 120


def capacity_of_mm1(service_s: float, within_s: float, allowed: float) -> float:
    """Give the rate at which this share stays longer: exp(-(μ - λ) t), Kleinrock 1975, 5.6."""
    return 1 / service_s + log(allowed) / within_s


def capacity_of_md1(service_s: float, within_s: float, allowed: float) -> float:
    """The same with fixed times of service (Crommelin 1932; Erlang 1909)."""

    def beyond(rate_rps: float) -> float:
        return log(max(stays_longer_in_md1(rate_rps, service_s, within_s), 1e-30) / allowed)

    return float(brentq(beyond, 0.2 / service_s, 0.9999 / service_s, xtol=1e-6 / service_s))


def stays_longer_in_md1(rate_rps: float, service_s: float, within_s: float) -> float:
    """Give the share that waits and is served for longer. The series cancels: many digits."""
    with localcontext() as context:
        context.prec = DIGITS
        rate, service = Decimal(rate_rps), Decimal(service_s)
        wait = Decimal(within_s) - service
        total, factorial = Decimal(0), Decimal(1)
        for k in range(int(wait / service) + 1):
            factorial *= k or 1
            x = rate * (k * service - wait)
            total += x**k / factorial * (-x).exp() if k else (-x).exp()
        return float(1 - (1 - rate * service) * total)
