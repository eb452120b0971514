"""One client on one case once: measured, and checked against what nginx counted."""

import dataclasses
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rig.cases import Case
from rig.clients import Client
from rig.counts import Counts
from rig.nginx import Counters, Server
from rig.process import BenchError, Finished, run_pinned

PATIENCE_S = 20.0
"""How long a client may overstay its duration."""
SETTLE_S = 0.05
"""How long nginx gets to count what clients left behind."""
EXTRA_REQUESTS = 2
"""What a client may ask before its load starts."""
RATE_TOLERANCE = 0.02
"""How far an open loop may be off its rate without a remark."""
LEAST_OF_RATE = 0.9
"""Below this share of its requests it did other work than asked (wrk2 is slow to start)."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Sample:
    """What a client did and what it cost."""

    case: str
    client: str
    round: int
    completed: int
    cpu_s: float
    wall_s: float
    served: int
    """Requests that nginx counted meanwhile."""
    accepted: int
    """Connections that nginx counted meanwhile."""
    others: float
    """Share of the time in which others had the client's core."""
    problem: str | None
    """Why this sample is not comparable, if it isn't."""

    @property
    def cpu_us(self) -> float:
        """CPU time per valid response in microseconds."""
        return self.cpu_s * 1e6 / self.completed if self.completed else float("inf")

    @property
    def rate_rps(self) -> float:
        """Valid responses per second from the client's start to its end."""
        return self.completed / self.wall_s

    @property
    def busy(self) -> float:
        """Share of the wall time that the client was on its core."""
        return self.cpu_s / self.wall_s

    def as_json(self) -> dict[str, object]:
        """Give all fields, and the figure that counts."""
        return dataclasses.asdict(self) | {"cpu_us_per_request": round(self.cpu_us, 4)}


def problem_of(
    case: Case,
    client: Client,
    finished: Finished,
    counted: Counts,
    served: int,
    accepted: int,
    duration_s: float,
) -> str | None:
    """Say why a sample can't be compared with others: it failed, or did other work than asked."""
    if finished.exit_code not in client.good_exits:
        return finished.reason
    if counted.failed:
        return f"{counted.failed} requests failed"
    if not counted.completed:
        return "not one request was answered"
    if case.rate_rps and counted.completed < LEAST_OF_RATE * case.rate_rps * duration_s:
        return f"it made less than {LEAST_OF_RATE:.0%} of its rate"
    if not 0 <= served - counted.completed <= case.in_flight + EXTRA_REQUESTS:
        return f"it counted {counted.completed} requests, the server {served}"
    if case.keepalive and accepted > 2 * case.connections + EXTRA_REQUESTS:
        return f"it opened {accepted} connections; keep-alive was asked"
    if not case.keepalive and accepted < counted.completed:
        return f"it opened {accepted} connections for {counted.completed} requests"
    return None


def take_sample(
    case: Case,
    client: Client,
    command: Sequence[str],
    server: Server,
    cpu: int,
    duration_s: float,
    round_number: int,
) -> Sample:
    """Run a client once on its core."""
    before = server.counters()
    finished = run_pinned(command, [cpu], duration_s + PATIENCE_S)
    time.sleep(SETTLE_S)
    after = server.counters()
    served, accepted = _difference(before, after)
    try:
        counted = client.counts(finished.output)
        problem = problem_of(case, client, finished, counted, served, accepted, duration_s)
    except BenchError as error:
        counted = Counts(0, 0)
        problem = finished.reason if finished.exit_code else str(error)
    return Sample(
        case=case.name,
        client=client.name,
        round=round_number,
        completed=counted.completed,
        cpu_s=finished.cpu_s,
        wall_s=finished.wall_s,
        served=served,
        accepted=accepted,
        others=finished.others,
        problem=problem,
    )


def _difference(before: Counters, after: Counters) -> tuple[int, int]:
    return after.requests - before.requests, after.accepts - before.accepts


@dataclass(frozen=True)
class Ratio:
    """CPU per request relative to another client, from the rounds that both have."""

    median: float
    low: float
    high: float
    """Ends of an interval for the median."""
    confidence: float
    """How often such an interval holds the true median."""
    rounds: int

    def verdict(self, highest: float) -> str:
        """Say whether the ratio is at most `highest`: the whole interval decides, or nothing."""
        if self.confidence < CONFIDENCE:
            return "inconclusive: too few rounds"
        if self.high <= highest:
            return "reached"
        return "missed" if self.low > highest else "inconclusive"


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Give low end, high end and confidence of the sign test's interval for the median.

    It takes away from both ends as many values as CONFIDENCE allows, and assumes nothing about
    their distribution (Conover, Practical Nonparametric Statistics, section 3.2).
    """
    ordered = sorted(values)
    rounds = len(ordered)
    outside = 2 * 0.5**rounds
    dropped = 0
    while outside + 2 * math.comb(rounds, dropped + 1) * 0.5**rounds <= 1 - CONFIDENCE:
        dropped += 1
        outside += 2 * math.comb(rounds, dropped) * 0.5**rounds
    return ordered[dropped], ordered[-1 - dropped], max(0.0, 1 - outside)


def ratio(samples: Sequence[Sample], client: str, reference: str) -> Ratio | None:
    """Compare within each round, because the machine changes from round to round."""
    cost = {(each.client, each.round): each.cpu_us for each in samples if each.problem is None}
    ratios = [
        cost_us / cost[reference, number]
        for (name, number), cost_us in cost.items()
        if name == client and (reference, number) in cost
    ]
    if not ratios:
        return None
    return Ratio(statistics.median(ratios), *median_interval(ratios), len(ratios))


def missed_rate(case: Case, samples: Sequence[Sample], duration_s: float) -> float | None:
    """Give the median rate of an open loop if it is not the one that was asked."""
    if not case.rate_rps or not samples:
        return None
    achieved_rps = statistics.median(each.completed / duration_s for each in samples)
    if abs(achieved_rps / case.rate_rps - 1) <= RATE_TOLERANCE:
        return None
    return achieved_rps
