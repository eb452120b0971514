"""What is said of a point in a line each: why it came out so, under which load, in what noise.

Terminal and page say it in the same words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from statistics import fmean

from webdyno.comparison import question_of
from webdyno.comparison.time_spent import (
    explanation_in_short,
    only_a_part,
    speed_by_cpu_alone,
)
from webdyno.comparison.waiting import waits_in_short
from webdyno.core import format as text
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import DECIDED, DIFFERENT, Comparison
from webdyno.core.load import Load
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT
from webdyno.evidence.busy import (
    FULL,
    MUCH_TAKEN,
    are_mostly_idle,
    busy_by_variant,
    busy_range,
    mostly_idle_words,
)
from webdyno.evidence.cost import cpu_apart, other_statements
from webdyno.evidence.long_look import has_found, look_in_short
from webdyno.evidence.noise import at_equal_cpu, taken_share
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Facts
from webdyno.report.show import PointView
from webdyno.report.words import SIGNS, SMALLEST_REPORTED, kind_words
from webdyno.validity import excluded_words, valid_for
from webdyno.validity.others import foreign_share, stolen_share

LOAD, ALONE = "Load", "Alone"
NO_INTERFERENCE = "no interference seen"
TWO = 2
LEAST_TAKEN = 0.005
"""Share of the servers' CPUs, on average, from which on it is worth a word."""
MOST_NAMED = 2
"""Variants whose CPUs are reported one by one."""
MOST_ENDPOINTS = 4
MUCH_WIDER = 1.5
"""Times as much as what was asked that another metric's CI is widened to be named."""
MOSTLY_OTHERS = "mostly by others"


def scope(experiment: Experiment) -> str:
    """Return in one line what was asked of the variants: `GET /a · 64 keep-alive connections`."""
    load = experiment.load_of_slots
    asked = [request.label for request in experiment.selected_requests] or [
        f"GET {path}" for path in load.paths
    ]
    varied = set(experiment.factors)
    if not varied:
        aims = text.listed(question_of(experiment).loading.aims)
        parts = [text.listed_to(1, asked), *([aims] if aims else []), *_load(load)]
        return " · ".join(parts)
    named = text.factor_names(experiment.factors)
    levels = experiment.factors.items()
    said = (f"{named[key]} {', '.join(map(text.level, of))}" for key, of in levels)
    return " · ".join(said if "load.paths" in varied else (text.listed_to(1, asked), *said))


def _load(load: Load) -> Iterator[str]:
    keep = "keep-alive " if load.keepalive == "always" else ""
    of_all = load.loop == "open" and load.rate_per_connection is None and not load.broadcast
    at_most = "at most " if of_all else ""
    yield at_most + text.count(load.connections, f"{keep}connection")
    if load.broadcast:
        yield "one more sends to all"
    if load.connection_ramp_s:
        yield f"begun within {text.duration(load.connection_ramp_s)}"
    at_once = f", {text.number(load.burst)} at once" if load.burst > 1 else ""
    if load.rate_per_s:
        yield f"{load.rate_per_s:,g} {load.arrival_unit}s/s{at_once}"
    elif load.rate_per_connection:
        yield f"{load.rate_per_connection:,g} requests/s on each{at_once}"
    elif load.loop == "closed":
        yield "full speed"


def point_facts(point: PointView) -> Facts:
    """Return why it came out so, under which load and in what noise: a line each."""
    return list(chain.from_iterable(fact(point) for fact in FACTS))


def _endpoints(point: PointView) -> Iterator[tuple[str, str]]:
    if not point.endpoints:
        return
    endpoints = point.judgement.endpoints
    different = [
        f"{endpoint.endpoint} {SIGNS[comparison.verdict]} {text.times(comparison.ratio)}"
        for endpoint in endpoints
        for comparison in endpoint.comparisons
        if comparison.ratio and comparison.verdict in DIFFERENT
    ]
    difference = "no difference in median latency found"
    if different:
        difference = f"median latency differs: {text.listed_to(MOST_ENDPOINTS, different)}"
    yield "Endpoints", f"{len(endpoints)} measured; {difference}"


def _why(point: PointView) -> Iterator[tuple[str, str]]:
    """Yield what a difference is made of; of many variants the table shows CPU per request."""
    judged = point.judgement
    if len(point.data.experiment.variants) > TWO:
        return
    by_cpu = {each.verdict for each in judged.comparisons if each.metric == CPU_TIME}
    asked = {each.verdict for each in point.decisive}
    whys: list[str] = []
    if by_cpu & DIFFERENT:
        whys += filter(None, map(explanation_in_short, judged.explanations))
    parts = [*_only_parts(point)] if whys else []
    waits = [*waits_in_short(judged, known_alone=bool(whys) and not parts)]
    whys += waits or parts
    if whys:
        is_against = asked <= DECIDED and by_cpu - asked
        yield "But" if is_against else "Cause", "; ".join(whys)


def _only_parts(point: PointView) -> Iterator[str]:
    """Yield how much of a decided ratio of throughputs CPU per request makes, where not all."""
    counted = [each for each in point.judgement.explanations if not each.by_samples]
    for comparison in point.decisive:
        ratio = comparison.decisive
        is_known = comparison.verdict in DIFFERENT and not comparison.limited_by
        if comparison.metric != THROUGHPUT or ratio is None or not is_known:
            continue
        for explanation in counted:
            if (alone := speed_by_cpu_alone(explanation, ratio)) is not None:
                shown = f"{text.significant(alone, 3)}{text.TIMES}"
                yield only_a_part(METRICS[THROUGHPUT].short, shown, text.times(ratio))


def _database(point: PointView) -> Iterator[tuple[str, str]]:
    if databases := [*other_statements(point.data), *cpu_apart(point.data)]:
        yield "Database", ". ".join(databases)


def _load_and_limits(point: PointView) -> Iterator[tuple[str, str]]:
    """Yield what was asked of the servers, what that filled, and how often they were started."""
    said = scope(point.data.experiment).replace(" · ", ", ").replace("keep-alive ", "")
    if point.judgement.rounds:
        said = f"{said}{_limits(point)}; {_starts_words(point.data, point.judgement.rounds)}"
    yield LOAD, said


def _limits(point: PointView) -> str:
    slots = [slot for slot in point.data.slots if slot.phase == "measure"]
    if not slots or not point.has_one_load:  # a search goes up to the limit
        return ""
    if max(slot.load.client.busy for slot in slots) >= FULL:
        return ": the client was saturated"
    busy = busy_by_variant(point.data)
    saturated = [variant for variant, each in busy.items() if each and each.is_full]
    is_closed = all(slot.load.loop == "closed" for slot in slots)
    if saturated and is_closed and point.data.experiment.load_of_slots.connections > 1:
        whose = (
            "" if len(saturated) == len(busy) else f" of {text.listed_to(MOST_NAMED, saturated)}"
        )
        return f": latency{whose} is mostly queueing"
    known = list(filter(None, busy.values()))
    if not known:
        return "; server CPU unknown"
    if any(each.is_full and each.is_by_others for each in known):
        return f"; servers' CPUs full, {MOSTLY_OTHERS}"
    if are_mostly_idle(point.data, busy):
        return f"; {mostly_idle_words(known)}"
    return f"; servers {busy_range(known)} busy"


def _noise(point: PointView) -> Iterator[tuple[str, str]]:
    """Yield what else ran, what was excluded for it, and by how much it widens the interval."""
    if not point.judgement.rounds:
        return
    data, taken = point.data, taken_by_others(point.data)
    by_throughput = any(comparison.metric == THROUGHPUT for comparison in point.decisive)
    if taken and by_throughput and at_equal_cpu(valid_for(data, THROUGHPUT)):
        taken += "; ratios per CPU second"
    elif taken and taken_share(data.slots) >= MUCH_TAKEN:
        taken += ", so only ratios count"
    excluded = point.judgement.excluded_count
    said = [
        taken,
        f"{excluded} of {text.number(len(data.slots))} measured slots excluded" if excluded else "",
        "other work on other machines is unknown" if data.round_trips_s else "",
    ]
    if any(comparison.worst_case for comparison in point.decisive):
        said.append(_allowed_for(point))
    yield "Noise", "; ".join(filter(None, said)) or NO_INTERFERENCE


def _allowed_for(point: PointView) -> str:
    """Return by how much interference widens what was asked, and what it widens by more."""
    asked = point.decisive
    most, decides = worst_interference(asked), METRICS[asked[0].metric]
    if 1 + most < SMALLEST_REPORTED:
        return ""
    if most <= 1:
        wider = [
            METRICS[each.metric]
            for each in point.judgement.comparisons
            if METRICS[each.metric].in_brief and worst_interference([each]) > MUCH_WIDER * most
        ]
        others = kind_words(wider, apart={decides.kind})
        more = f", of {text.listed(others)} by more" if wider else ""
        return f"CI of {decides.short} widened by up to {text.percent(most)}{more}"
    if any(comparison.limited_by for comparison in asked):
        return ""  # the headline says who was limited
    return f"its effect on {decides.short} has no tight bound"


def alone(point: PointView) -> Iterator[tuple[str, str]]:
    """Yield what decided ratios may be without other work, where that was estimated."""
    known = [
        f"{each.a} {text.between(each.alone)}"
        for each in point.decisive
        if each.alone and text.is_useful(each.alone) and each.verdict in DECIDED
    ]
    if known:
        yield ALONE, f"without other work, by estimate: {', '.join(known)}"


def taken_by_others(data: PointData) -> str:
    """Return how much of the servers' CPUs others took; empty where that isn't worth a word."""
    slots = [slot for slot in data.slots if slot.readings]
    kinds = {"other programs": foreign_share, "other VMs": stolen_share}
    took = []
    for who, share in kinds.items():
        shares = [share(slot) for slot in slots]
        if shares and fmean(shares) >= LEAST_TAKEN:
            took.append(f"{who} {text.percent(fmean(shares))} (up to {text.percent(max(shares))})")
    return f"{', '.join(took)} of the CPU" if took else ""


def _over_time(point: PointView) -> Iterator[tuple[str, str]]:
    alike: dict[str, list[str]] = {}
    for look in filter(has_found, point.judgement.looks):
        alike.setdefault(look_in_short(look), []).append(look.variant)
    if alike:
        said = (f"{text.listed(variants)}: {change}" for change, variants in alike.items())
        yield "Soak", "; ".join(said)


FACTS: list[Callable[[PointView], Iterable[tuple[str, str]]]] = [
    _why,
    _database,
    _endpoints,
    _over_time,
    _load_and_limits,
    _noise,
    alone,
]


def servers_busy(data: PointData) -> str:
    """Return on which variants the servers' CPUs were saturated, or how busy they were."""
    busy = busy_by_variant(data)
    known = {variant: each for variant, each in busy.items() if each}
    if busy and not known:
        return "server CPU unknown"
    saturated = [variant for variant, each in known.items() if each.is_full]
    if any(known[variant].is_by_others for variant in saturated):
        return f"server CPU full, {MOSTLY_OTHERS}"
    if len(saturated) == len(busy):
        return "server CPU saturated"
    if saturated:
        return f"server CPU saturated on {text.listed_to(MOST_NAMED, saturated)}"
    if are_mostly_idle(data, busy):
        return mostly_idle_words(known.values())
    if len(known) > MOST_NAMED:
        return f"servers not saturated ({busy_range(known.values())} busy)"
    shares = (f"{variant} {text.percent(each.share)}" for variant, each in known.items())
    return f"servers not saturated ({', '.join(shares)})"


def _starts_words(data: PointData, rounds: int) -> str:
    ran_before, variants = data.ran_before, data.experiment.variants
    each = " each" if len(variants) > 1 else ""
    if ran_before and len(ran_before) == len(variants):
        return f"{text.count(rounds, 'round')}{each}, no restarts"
    but = f", but {text.listed(ran_before)} not restarted" if ran_before else ""
    return f"{text.count(rounds, 'restart')}{each}{but}"


def slots_excluded(point: PointView) -> str:
    """Return how many slots were excluded, and by which rules; `0 of 64 slots` where none were."""
    excluded = point.judgement.excluded_count
    rules = f" ({excluded_words(point.data)})" if excluded else ""
    return f"{excluded} of {len(point.data.slots)} slots excluded{rules}"


def worst_interference(asked: Sequence[Comparison]) -> float:
    """Return how far interference can have shifted a ratio at most, as a share of it."""
    most = 0.0
    for comparison in asked:
        ratio, worst = comparison.ratio, comparison.worst_case
        if ratio and worst:
            down = ratio.low / worst.low if worst.low > 0 else inf
            most = max(most, worst.high / ratio.high - 1, down - 1)
    return most


def interference_words(asked: Sequence[Comparison], data: PointData) -> str:
    """Return the same in words."""
    most = worst_interference(asked)
    if 1 + most < SMALLEST_REPORTED:
        alike = "what others took hit the variants alike"
        return alike if taken_by_others(data) else NO_INTERFERENCE
    if most > 1 and any(comparison.limited_by for comparison in asked):
        return "the ratio is only a bound"
    if most > 1:
        return "interference can't be bounded tightly"
    return f"interference at most {text.percent(most)}, included in the CI"
