"""What a reader of the results has to know of a log: who its clients are, and what they aren't."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from webdyno.model.format import count, number
from webdyno.workload.formats.access import AT_EDGE, CASE_BLIND, FORWARDED

PROBE, BODY = "health check", "has a body"
FEWEST = 20
"""Requests of which something is said."""
_PROBES = re.compile(
    rb"kube-probe|GoogleHC|ELB-HealthChecker|Consul Health Check|UptimeRobot|Pingdom"
    rb"|Blackbox Exporter|Envoy/HC",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_probe(agent: bytes) -> bool:
    """Whether an agent is a program that asks whether the server lives."""
    return _PROBES.search(agent) is not None


def notes(
    requests: int, clients: int, addresses: int, paths: Sequence[str], remarks: Counter[str]
) -> Iterator[str]:
    """Say whether clients can be told apart, and what of the requests no visitor made.

    `addresses`: 2 stands for several.
    """
    if by_proxy := remarks[FORWARDED]:
        yield (
            f"{count(by_proxy, 'request')} came through a proxy: X-Forwarded-For names the client"
        )
    if requests >= FEWEST and addresses == 1:
        yield (
            f"all {number(requests)} requests come from one address, so sessions and pauses can't "
            "be told: is there a proxy in front? Let the log have X-Forwarded-For "
            '("$http_x_forwarded_for" in nginx, "%{X-Forwarded-For}i" in Apache)'
        )
    elif requests >= FEWEST and clients == requests:
        yield (
            f"each of the {number(requests)} requests has a client of its own, so sessions and "
            "pauses can't be told: does the log name clients?"
        )
    if probes := remarks[PROBE]:
        are = "is a health check" if probes == 1 else "are health checks"
        yield f"{count(probes, 'request')} {are}, which no visitor makes"
    if bodies := remarks[BODY]:
        yield f"{count(bodies, 'request')} with a body, which the load's file holds as it was sent"
    if at_edge := remarks[AT_EDGE]:
        yield (
            f"CloudFront answered {number(at_edge)} of {number(requests)} requests itself; your "
            f"server saw {number(requests - at_edge)}. For these alone: "
            r"zgrep -vP '\tHit\t' LOG | webdyno workload -"
        )
    if remarks[CASE_BLIND] and (alike := _alike(paths)):
        yield f"for IIS {' and '.join(alike)} are one page; other servers tell them apart"


def _alike(paths: Sequence[str]) -> list[str]:
    """Give the first paths that differ in capitals alone."""
    seen: dict[str, str] = {}
    for path in paths:
        if (other := seen.setdefault(path.lower(), path)) != path:
            return [other, path]
    return []
