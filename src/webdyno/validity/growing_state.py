"""Whether requests become dearer as what they leave behind grows: `state-grows`.

Slots are compared with others of the same variant and round, since machines drift from round to
round: by CPU per request, and by the databases' part of it next to the rest of the same slot's, in
which a machine that is slower for a while cancels. docs/validation/method.md, "State that grows",
has the formulas and how often they are wrong.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import expm1, inf
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from webdyno.core.base import memory_words
from webdyno.core.format import confidence_level, listed, number, percent
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import server_cpu_us, throughput_rps
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.interval import LARGEST_LOG, TINY, Estimate, Logs, fitted_line, t_quantile
from webdyno.validity.over_time import OVER_THE_ROUND, Written, has_database, left_behind, pace
from webdyno.validity.rule import RunRule, note

ALPHA = 0.01
"""Of "slots become dearer" by chance, in any variant, by all looks together."""
LEAST = 0.02
"""Share by which the last slot of a round, or round of a run, must be dearer to be worth a word.
Balanced order cancels what all variants have in common of it."""
LEAST_OF_RUN = 0.05
"""The same from round to round: there a machine's own drift looks alike."""
FIRST_EXCLUDED_FROM = 6
"""Slots of a variant in a round from which on its first one is excluded: it may still warm up."""

Value = Callable[[SlotRecord], float | None]


@dataclass(frozen=True)
class StateDrift:
    """Slots that become dearer with what was written before them."""

    seen_in: Literal["cost", "database", "throughput", "run"]
    """CPU per request; the database's part of it; throughput alone; or CPU per request from round
    to round, where nothing is put back."""
    step: Estimate
    """Change of ln(cost) from a slot of a round to the next, or from a round to the next."""
    steps: int
    """From the first to the last."""

    @property
    def change(self) -> float:
        """Share by which the last one costs more than the first."""
        return expm1(min(self.step.centre * self.steps, LARGEST_LOG))


class _Slopes(NamedTuple):
    """Changes of ln(value) from a variant's slot to its next, by round."""

    of: Mapping[int, float]
    weights: Mapping[int, float]
    """How well each round can say: the spread of its slots' places."""

    def pool(self, confidence: float) -> Estimate | None:
        """Return the rounds' weighted mean, with an interval by their scatter.

        Liang & Zeger, "Longitudinal data analysis using generalized linear models", Biometrika
        1986: with equal weights that is the t interval of their mean.
        """
        slopes = np.array([*self.of.values()])
        weights = np.array([self.weights[number] for number in self.of])
        if len(slopes) < 2:
            return None
        centre = float(weights @ slopes / weights.sum())
        effective = float(weights.sum() ** 2 / (weights @ weights))
        if effective <= 1 + TINY:
            return None
        scatter = float(((weights * (slopes - centre)) ** 2).sum()) * effective / (effective - 1)
        half = t_quantile(effective, confidence) * scatter**0.5 / float(weights.sum())
        return Estimate(centre - half, centre, centre + half, "t")


@compute_once
def state_drift(data: PointData, variant: str) -> StateDrift | None:
    """Return the drift of a variant whose requests write, where it is sure and matters."""
    if left_behind(data, variant) is None:
        return None
    if data.experiment.state.reset == "slot" and has_database(data, variant):
        return None
    confidence = 1 - ALPHA / len(data.experiment.variants)  # one side of each of two looks
    looks = (_in_cost, _in_database, _in_throughput, _over_the_run)
    return next((drift for look in looks if (drift := look(data, variant, confidence))), None)


def grows_apart(data: PointData, variant: str, other: str) -> float:
    """Return by how much ln(cost) rises more over a round than another's at most; 0 if not sure."""
    if state_drift(data, variant) is None:
        return 0.0
    mine, theirs = (_slopes(data, name, cost_us) for name in (variant, other))
    both = mine.of.keys() & theirs.of.keys()
    apart = {number: mine.of[number] - theirs.of[number] for number in sorted(both)}
    more = _Slopes(apart, mine.weights).pool(1 - ALPHA)
    return more.high * _steps(data, variant) if more and more.low > 0 else 0.0


def _in_cost(data: PointData, variant: str, confidence: float) -> StateDrift | None:
    return _dearer("cost", _slopes(data, variant, cost_us).pool(confidence), data, variant)


def _in_database(data: PointData, variant: str, confidence: float) -> StateDrift | None:
    """Look at databases' CPU time next to the rest's, where a request doesn't become cheaper."""
    whole = _slopes(data, variant, cost_us).pool(confidence)
    others = _slopes(data, variant, _next_to_the_rest).pool(confidence)
    if whole is None or others is None or whole.centre <= 0:
        return None
    ratios = [ratio for slot in data.of_variant(variant) if (ratio := _next_to_the_rest(slot))]
    share = fmean(ratio / (1 + ratio) for ratio in ratios)
    step = Estimate(share * others.low, share * others.centre, share * others.high, "t")
    return _dearer("database", step, data, variant)


def _in_throughput(data: PointData, variant: str, confidence: float) -> StateDrift | None:
    """Look at throughput: what waits for disks or locks costs no CPU time."""
    change, steps = OVER_THE_ROUND.sure_change(data, variant, 1 - confidence), _steps(data, variant)
    if change is None or change.centre > 0 or not steps:
        return None
    step = Estimate(-change.high / steps, -change.centre / steps, -change.low / steps, "t")
    return StateDrift("throughput", step, steps)


def _over_the_run(data: PointData, variant: str, confidence: float) -> StateDrift | None:
    """Look from round to round, where no database is put back between them.

    Neighboring rounds are alike, so they count for fewer: Santer et al., "Statistical significance
    of trends and trend differences", JGR 2000, with Kendall's correction of the autocorrelation
    (Biometrika 1954) for a fitted line.
    """
    if has_database(data, variant):
        return None
    by_round = [list(filter(None, map(cost_us, each.of(variant)))) for each in data.rounds]
    logs = np.log([fmean(costs_us) for costs_us in by_round if costs_us])
    if len(logs) < data.measure.min_rounds:
        return None
    line = fitted_line(np.arange(len(logs), dtype=float), logs)
    half = _half_width(logs, line.slope, confidence)
    step = Estimate(line.slope - half, line.slope, line.slope + half, "t")
    drift = StateDrift("run", step, len(logs) - 1)
    return drift if step.low > 0 and drift.change > LEAST_OF_RUN else None


def _half_width(logs: Logs, slope: float, confidence: float) -> float:
    """Return half of the interval of a line's slope through values of which neighbors are alike."""
    n, place = len(logs), np.arange(len(logs)) - (len(logs) - 1) / 2
    rest = logs - logs.mean() - slope * place
    squares = float(rest @ rest)
    if squares <= TINY:
        return 0.0
    alike = (float(rest[1:] @ rest[:-1]) / squares + 2 / n) / (1 - 4 / n)
    alike = min(max(alike, 0.0), 1.0)
    effective = n * (1 - alike) / (1 + alike)
    if effective <= 3:
        return inf
    error: float = (squares / (effective - 2) / float(place @ place)) ** 0.5
    return t_quantile(effective - 1, confidence) * error


def _dearer(
    seen_in: Literal["cost", "database"], step: Estimate | None, data: PointData, variant: str
) -> StateDrift | None:
    if step is None or step.low <= 0:
        return None
    drift = StateDrift(seen_in, step, _steps(data, variant))
    return drift if drift.change > LEAST else None


@compute_once
def _slopes(data: PointData, variant: str, value: Value) -> _Slopes:
    of, weights = dict[int, float](), dict[int, float]()
    for a_round in data.rounds:
        values = [value(slot) for slot in a_round.of(variant)]
        first = 1 if len(values) >= FIRST_EXCLUDED_FROM else 0
        known = [(place, cost) for place, cost in enumerate(values) if cost and place >= first]
        if len(known) < 2:
            continue
        places, logs = np.array([place for place, _ in known], float), np.log([c for _, c in known])
        of[a_round.record.round] = fitted_line(places, logs).slope
        weights[a_round.record.round] = float(places.var() * len(places))
    return _Slopes(of, weights)


def _steps(data: PointData, variant: str) -> int:
    """Count the steps from a variant's first slot of a round to its last, as rounds are now."""
    return max((len(data.rounds[-1].of(variant)) if data.rounds else 0) - 1, 0)


def cost_us(slot: SlotRecord) -> float | None:
    """Return CPU per request, or in a closed loop the time per response where CPU isn't known."""
    if of_cpu_us := server_cpu_us([slot]):
        return of_cpu_us
    rate = throughput_rps([slot]) if slot.load.loop == "closed" else None
    return 1e6 / rate if rate else None


def _next_to_the_rest(slot: SlotRecord) -> float | None:
    if slot.readings is None or not slot.readings.databases:
        return None
    of_databases = rest = 0.0
    for role, use in slot.readings.services.items():
        if role in slot.readings.databases:
            of_databases += use.cpu_s
        else:
            rest += use.cpu_s
    return of_databases / rest if of_databases and rest else None


NAME = "state-grows"
PUT_BACK = "Begin each slot alike: --set state.reset=slot puts the database back before each."
PUT_BACK_YOURSELF = (
    "Put back what they leave: state.before_round in an experiment file runs a command of yours "
    'before each round; a database in services (services.db = "postgresql") is put back by itself.'
)
COUNTS = {
    **dict.fromkeys(
        ("cost", "database"),
        "; balanced order cancels what variants have in common of that; what they haven't "
        "counts against the verdict",
    ),
    "throughput": "; how far that can have moved its figures counts against the verdict",
    "run": ", unless the machine became slower",
}
"""By what it was seen in: what that does to the verdict."""


def _grows(data: PointData) -> Iterator[ValidityWarning]:
    for variant in data.experiment.variants:
        drift, left = state_drift(data, variant), left_behind(data, variant)
        if drift is None or left is None:
            continue
        yield note(
            NAME,
            variant,
            f"{_how_much_dearer(drift, data, variant)}: {_left(left)}{COUNTS[drift.seen_in]}",
            PUT_BACK if left.held_bytes else PUT_BACK_YOURSELF,
        )


def _how_much_dearer(drift: StateDrift, data: PointData, variant: str) -> str:
    if drift.seen_in == "run":
        share = percent(drift.change)
        return f"a request costs {share} more CPU in the last round than in the first"
    if drift.seen_in == "throughput":
        falls = percent(drift.change / (1 + drift.change))
        return f"{pace(data, variant)} falls by {falls} from the first to the last slot of a round"
    step = drift.step
    low, centre, high = (percent(expm1(end)) for end in (step.low, step.centre, step.high))
    where = ", in its database" if drift.seen_in == "database" else ""
    level = confidence_level(1 - ALPHA / len(data.experiment.variants))
    return (
        f"each slot of a round costs {centre} more CPU per request than the one before{where} "
        f"({level} CI {low}–{high})"
    )


def _left(left: Written) -> str:
    if not left.held_bytes:
        names = listed(left.requests)
        return f"its requests may write ({names}), and nothing puts back what they leave"
    before, after = (memory_words(round(held)) for held in left.held_bytes)
    parts = [f"{number(left.rows)} rows in a slot"] if left.rows else []
    parts += [f"most of it in {left.table}"] if left.table else []
    if before != after:
        parts.append(f"its database grows from {before} to {after} over a round")
    return f"its requests write ({', '.join(parts)}), and the state is put back once a round"


STATE_GROWS = RunRule(NAME, _grows)
