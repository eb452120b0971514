"""Runs of simulated searches, as they are judged: queues whose capacity is known, in rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, geometric_mean

import numpy as np

from builders import START, run_head
from comparison.searches import Variant, slot
from rig.queues import capacity_of_md1, capacity_of_mm1
from simulations.queues import RAMP_UP, Queue, search
from webdyno.comparison.comparison import compare_as_asked, variant_value
from webdyno.core.base import Interval
from webdyno.core.capacity import Trial, capacity_of
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.measure import CapacitySettings
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.core.records import Record, RoundRecord
from webdyno.evidence.point_data import PointData
from webdyno.measure.capacity_search import near

WITHIN, ALLOWED = "p99<{:g}ms", 0.01
LONG_WAIT = 100
"""In times of service; the exact series takes too many digits from there on."""


@dataclass(frozen=True)
class Case:
    """A queue, and the objective under which its capacity is computed."""

    per_s: float
    """What it serves without a pause."""
    within_s: float
    exponential: bool = True
    noise: float = 0.0
    """Standard deviation of ln(time of service) from trial to trial."""

    @property
    def name(self) -> str:
        """Who it is, for a table."""
        kind = "M/M/1" if self.exponential else "M/D/1"
        noise = f", {self.noise:.0%} noise" if self.noise else ""
        return f"{kind}, {self.per_s:,.0f}/s, p99 < {self.within_s * 1e3:g} ms{noise}"

    @property
    def settings(self) -> CapacitySettings:
        """The search's."""
        return CapacitySettings(slo=[WITHIN.format(self.within_s * 1e3)])

    @property
    def truth_rps(self) -> float:
        """Its capacity; that of a knee as heavy traffic has it, which is close enough there."""
        if not self.exponential and self.within_s * self.per_s > LONG_WAIT:
            return self.per_s * (1 + log(ALLOWED) / (2 * self.per_s * self.within_s))
        of = capacity_of_mm1 if self.exponential else capacity_of_md1
        return of(1 / self.per_s, self.within_s, ALLOWED)

    def queue(self, rng: np.random.Generator) -> Queue:
        """Make one."""
        return Queue(1 / self.per_s, self.exponential, rng, slower=self._slower(rng))

    def _slower(self, rng: np.random.Generator) -> Callable[[], float]:
        return lambda: exp(self.noise * rng.standard_normal())


@dataclass(frozen=True)
class Judged:
    """What a run says of two queues."""

    values: tuple[Interval, Interval]
    ratio: Interval
    verdict: Verdict
    search_s: float
    """How long a search took on average, ramp-ups included."""


def searched_in_rounds(
    case: Case, rng: np.random.Generator, rounds: int, deciding: int
) -> list[list[Trial]]:
    """Search in rounds, each near what those before found."""
    found_rps, searches = list[float](), list[list[Trial]]()
    for _ in range(rounds):
        near_rps = near(geometric_mean(found_rps), rng.uniform()) if found_rps else None
        trials = search(
            case.queue(rng), case.settings, case.per_s, near_rps=near_rps, deciding=deciding
        )
        searches.append(trials)
        if rate_rps := capacity_of(trials):
            found_rps.append(rate_rps)
    return searches


def judged(cases: tuple[Case, Case], seed: int, rounds: int, deciding: int) -> Judged:
    """Search for two capacities in rounds, and judge that as a run would be."""
    rng = np.random.default_rng(seed)
    searches = [searched_in_rounds(case, rng, rounds, deciding) for case in cases]
    data = run_of(cases[0].settings, searches)
    (found,) = compare_as_asked(data)
    first, second = (
        variant_value(data, variant, METRICS[CAPACITY]).interval
        for variant in data.experiment.variants
    )
    assert first
    assert second
    assert found.decisive
    took_s = [
        sum(trial.length_s * (1 + RAMP_UP) for trial in trials)
        for of_variant in searches
        for trials in of_variant
    ]
    # A comparison is of the second variant with the first one, the baseline.
    return Judged((first, second), found.decisive.inverse(), found.verdict, fmean(took_s))


def run_of(settings: CapacitySettings, searches: Sequence[Sequence[list[Trial]]]) -> PointData:
    """Give the run of which these are the trials: by variant, then by round."""
    names = ["a", "b"][: len(searches)]
    head = run_head(dict.fromkeys(names, "nginx"))
    given = head.experiment.model_dump(exclude_unset=True)
    asked = {"capacity": {"slo": settings.slo}, "measure": {"seed": 1}}
    head = head.model_copy(update={"experiment": Experiment.model_validate(given | asked)})
    template = slot(1, 0, "a", searches[0][0][0], Variant(1.0))
    records = list[Record]()
    for number, in_round in enumerate(zip(*searches, strict=True), start=1):
        tried = [
            (name, trial) for name, trials in zip(names, in_round, strict=True) for trial in trials
        ]
        records += [
            template.replace(round=number, slot=position, variant=name, trial=trial)
            for position, (name, trial) in enumerate(tried)
        ]
        order = [name for name, _ in tried]
        records.append(
            RoundRecord(round=number, order=order, started_at=START, took_s=60.0, ready_s={})
        )
    return PointData.of(head, records)
