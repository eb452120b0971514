"""What is said of a point in a line each: what was asked, why it came out so, what limits it.

Terminal and page say it in the same words.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import median

from webdyno.judge.databases import cpu_apart, other_statements
from webdyno.judge.judgement import decisive
from webdyno.judge.long_look import warnings_words
from webdyno.judge.point_data import PointData
from webdyno.judge.time_spent import explanation_in_short, what_waits
from webdyno.judge.validity import excluded_words
from webdyno.model import format as text
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Comparison, Judgement, Verdict
from webdyno.model.load import Load
from webdyno.model.metrics import CAPACITY
from webdyno.model.records import SlotRecord
from webdyno.report.view import PointView
from webdyno.report.words import SIGNS

BUSY = 0.9
"""Share of its CPUs' time from which a server or a client counts as saturated."""
MOST_ENDPOINTS = 4
"""Endpoints on which variants differ that are named."""


def scope(experiment: Experiment) -> str:
    """Say in one line what was asked of the variants: `GET /a · 64 keep-alive connections`."""
    load = experiment.load_of_slots
    asked = [request.label for request in experiment.asked] or [f"GET {it}" for it in load.paths]
    varied = set(experiment.factors)
    if not varied:
        return " · ".join([text.listed_to(1, asked), *_load(load)])
    named = text.factor_names(experiment.factors)
    levels = experiment.factors.items()
    said = (f"{named[key]} {', '.join(map(text.level, of))}" for key, of in levels)
    return " · ".join(said if "load.paths" in varied else (text.listed_to(1, asked), *said))


def _load(load: Load) -> Iterator[str]:
    keep = "keep-alive " if load.keepalive == "always" else ""
    yield text.count(load.connections, f"{keep}connection")
    searched = "full speed" if load.loop == "closed" else "arrival rate searched for"
    yield f"{load.rate_per_s:,g} {load.due}s/s" if load.rate_per_s else searched


def point_facts(point: PointView, trust: str = "") -> Iterator[tuple[str, str]]:
    """Say what was found of causes and limits; `trust`, where it is said, comes after them."""
    judged = point.judgement
    if point.endpoints:
        yield "Endpoints", _endpoints(judged)
    whys = [*filter(None, map(explanation_in_short, judged.explanations)), *what_waits(judged)]
    if whys:
        yield "Why", " ".join(whys)
    if databases := [*other_statements(point.data), *cpu_apart(point.data)]:
        yield "Database", ". ".join(databases)
    if judged.rounds:
        if point.data.measure.decide_on != CAPACITY:  # a search goes up to the limit
            yield "Limit", _limit(point.data)
        if trust:
            yield "Trust", trust
    if judged.looks:
        yield "Longer load", "; ".join(_longer_load(judged))


def _longer_load(judged: Judgement) -> Iterator[str]:
    """Say what long looks found, once of variants that were alike."""
    alike: dict[str, list[str]] = {}
    for look in judged.looks:
        alike.setdefault(warnings_words(look), []).append(look.variant)
    yield from (f"{text.listed(variants)}: {said}" for said, variants in alike.items())


def _endpoints(judged: Judgement) -> str:
    """Say on how many endpoints the median latency differs, and on which."""
    different = [
        f"{it.endpoint} {SIGNS[found.verdict]} {text.times(found.ratio)}"
        for it in judged.endpoints
        for found in it.comparisons
        if found.ratio and found.verdict in {Verdict.FASTER, Verdict.SLOWER}
    ]
    said = f"{len(judged.endpoints)} measured"
    if not different:
        return f"{said}; no difference in median latency found"
    return f"{said}; median latency differs: {text.listed_to(MOST_ENDPOINTS, different)}"


def _limit(data: PointData) -> str:
    """Say how busy the CPUs of servers and client were: which of them was saturated."""
    slots = [slot for slot in data.slots if slot.phase == "measure"]
    client = max((slot.load.client.busy for slot in slots), default=0.0)
    of_client = "client saturated" if client >= BUSY else "client has headroom"
    closed = all(slot.load.loop == "closed" for slot in slots)
    busy = _busy_by_variant(data)
    saturated = any(share >= BUSY for share in busy.values())
    queueing = ". Latency includes queueing" if closed and saturated else ""
    return f"{_busy_words(busy)}; {of_client} ({text.percent(client)} busy){queueing}"


def servers_busy(data: PointData) -> str:
    """Say on which variants the servers' CPUs were saturated, or how busy they were."""
    return _busy_words(_busy_by_variant(data))


def _busy_words(busy: Mapping[str, float]) -> str:
    saturated = [variant for variant, share in busy.items() if share >= BUSY]
    if len(saturated) == len(busy):
        return "server CPU saturated" + (" on all" if len(busy) > 1 else "")
    if saturated:
        return f"server CPU saturated on {text.listed(saturated)}"
    each = (f"{variant} {text.percent(share)}" for variant, share in busy.items())
    return f"no server CPU saturated ({', '.join(each)})"


def _busy_by_variant(data: PointData) -> dict[str, float]:
    slots = {variant: data.of_variant(variant) for variant in data.experiment.variants}
    return {variant: _busy(data, mine) for variant, mine in slots.items() if mine}


def _busy(data: PointData, slots: Sequence[SlotRecord]) -> float:
    """Give the share of its CPUs that a variant's servers used: the median of its slots."""
    cpus = data.head.cpus_of(slots[0].variant) or 1
    lengths = [(slot.servers.cpu_s, slot.load.all_of_it.length_s) for slot in slots]
    return median([min(cpu_s / (took_s * cpus), 1.0) for cpu_s, took_s in lengths if took_s] or [0])


def trust_words(point: PointView) -> str:
    """Say how often variants were restarted, what interfered, and what was excluded."""
    judged = point.judgement
    if not judged.rounds:
        return ""
    each = " each, interleaved" if len(point.data.experiment.variants) > 1 else ""
    asked = decisive(judged.comparisons, point.data.measure.decide_on)
    said = [
        f"{text.count(judged.rounds, 'restart')}{each}",
        interference_words(asked) if asked else "",
        slots_excluded(point) if judged.excluded else "",
    ]
    return "; ".join(filter(None, said))


def slots_excluded(point: PointView) -> str:
    """Say how many slots were excluded, and by which rules; `0 of 64 slots` where none were."""
    excluded = point.judgement.excluded_count
    rules = f" ({excluded_words(point.data)})" if excluded else ""
    return f"{excluded} of {len(point.data.slots)} slots excluded{rules}"


def worst_interference(asked: Sequence[Comparison]) -> float:
    """Give how far interference can have shifted a ratio at most, as a share of it."""
    bounded = ((it.ratio, it.worst_case) for it in asked if it.ratio and it.worst_case)
    shifts = (
        max(worst.high / ratio.high, ratio.low / worst.low if worst.low > 0 else inf) - 1
        for ratio, worst in bounded
    )
    return max(shifts, default=0.0)


def interference_words(asked: Sequence[Comparison]) -> str:
    """Say the same in words."""
    if not any(it.worst_case for it in asked):
        return "no interference seen"
    most = worst_interference(asked)
    limited = {who: limit for it in asked for who, limit in it.limited_by.items()}
    if most > 1 and limited:
        who, limit = next(iter(limited.items()))
        return f"{who} was {limit}-limited, so the ratio is only a bound"
    if most > 1:
        return "interference can't be bounded tightly"
    shifted = f"interference shifted the ratio by at most {text.percent(most)}"
    return f"{shifted}, included in the CI"
