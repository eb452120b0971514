"""The card of a page's headline: what it means, how sure it is, how far it reaches; its tiles.

It is for people who read nothing else, so it says nothing that the figures below it don't show.
"""

from collections.abc import Iterator, Sequence

from webdyno.core import format as text
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import DECIDED, Comparison, Verdict
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Facts, Tile
from webdyno.report.point_facts import (
    alone,
    interference_words,
    scope,
    servers_busy,
    slots_excluded,
    worst_interference,
)
from webdyno.report.show import MetricTable, PointView, RunView, first
from webdyno.report.tables import IN_A_TABLE, ci_heading
from webdyno.report.words import (
    ANYTHING,
    LEAST_WORTH_TIMES,
    SIGNS,
    number_word,
    sure_bounds,
    sure_ratio,
)
from webdyno.validity.client import SEND_DELAY

LEAST_AGREEING, MOST_INTERFERENCE, MOST_EXCLUDED = 0.75, 0.05, 0.1
"""The rule of "Confidence", a word for people who don't read intervals; no verdict rests on it.

Doubts are: fewer than three quarters of the restarts agree with the verdict; interference can have
shifted the ratio by more than 5%; more than a tenth of the slots was excluded; servers and client
shared CPUs; a variant was not steady under load for longer. High is a decided verdict without
doubts, moderate one with one doubt, and low one with several, or none that is decided. Where all
restarts say who is ahead, doubts are about how much."""


ON_TILES, MOST_TILES = (CPU_TIME, "latency_p99_us", THROUGHPUT, "latency_p50_us", "memory_mib"), 3
"""Metrics with a tile next to the deciding one, the most important first, and tiles in all; not the
throughput of an open loop, which is the arrival rate."""


def card(view: RunView) -> Facts:
    """Return what a run's card says; of several points together only how far they reach."""
    facts: Facts = []
    only = _only_point(view)
    if only and only.deciding:
        facts += [("What it means", said) for said in in_practice(only)]
        facts += [("Confidence", said) for said in confidence(only)]
        facts += alone(only)
    facts.append(("What it holds for" if _holds(view) else "What was asked", scope_of(view)))
    if only and (open_ones := [*not_certain(only)]):
        facts.append(("Not certain", " ".join(open_ones)))
    return facts


def _holds(view: RunView) -> bool:
    """Whether any answer says something, if only that it is open."""
    nothing = {Verdict.INVALID, Verdict.INCOMPLETE}
    tones = [answer.tone for answer in view.headlines] or list(view.counts)
    return not tones or any(tone not in nothing for tone in tones)


def tiles(view: RunView) -> list[Tile]:
    """Return the ratios that matter most; of two variants at one point only."""
    only = _only_point(view)
    if not only or not only.deciding or view.has_ranks or len(only.deciding.rows) != 2:
        return []
    by_name = {table.metric.name: table for table in only.alongside}
    if only.data.experiment.load_of_slots.loop == "open":
        by_name.pop(THROUGHPUT, None)
    tables = [only.deciding, *(by_name[name] for name in ON_TILES if name in by_name)]
    certain = only.decisive[0].clear if only.decisive else None
    if certain:  # the headline has it first as well
        tables.sort(key=lambda table: table.metric.name != certain.metric)
    return [_tile(table, table.comparisons[0]) for table in tables if table.comparisons][
        :MOST_TILES
    ]


def _tile(table: MetricTable, comparison: Comparison) -> Tile:
    interval = f"{ci_heading(table)} {sure_bounds(comparison)}"
    word = (
        f"{SIGNS[comparison.verdict]} {IN_A_TABLE.get(comparison.verdict, str(comparison.verdict))}"
    )
    short = METRICS[table.metric.name].short
    is_open = comparison.verdict is Verdict.INCONCLUSIVE
    shown = SIGNS[comparison.verdict] if is_open else sure_ratio(comparison)
    return Tile(comparison.verdict, shown, short, interval, word)


def not_certain(point: PointView) -> Iterator[str]:
    """Yield the metrics next to the deciding one whose difference is open, of two variants only.

    And whether latency is the servers' alone.
    """
    open_ones = [
        f"{table.metric.label} ({_may_be(comparison)})"
        for table in point.alongside
        if METRICS[table.metric.name].in_brief and len(table.rows) == 2
        for comparison in table.comparisons
        if comparison.verdict is Verdict.INCONCLUSIVE
    ]
    if open_ones:
        yield f"Whether the variants differ in {text.listed(open_ones)}."
    if any(warning.rule == SEND_DELAY.name for warning in point.judgement.warnings):
        yield "How much of the latency is the load generator's own: it sent requests late."


def _may_be(comparison: Comparison) -> str:
    said = sure_bounds(comparison)
    return "no bound is known" if said in {"", ANYTHING} else f"{said}{text.TIMES}"


def _only_point(view: RunView) -> PointView | None:
    return None if view.several or view.whole else view.points[0]


def in_practice(point: PointView) -> Iterator[str]:
    """Yield what a decided difference in CPU per request means for CPUs; of two variants only."""
    judged, data = point.judgement, point.data
    own = first(show.in_practice(point) for show in point.shows)
    if own is not None:
        yield from own
        return
    comparisons = [each for each in judged.comparisons if each.metric == CPU_TIME and each.ratio]
    decided = [comparison.verdict in DECIDED for comparison in (*point.decisive, *comparisons)]
    if len(data.experiment.variants) == 2 and len(comparisons) == 1 and all(decided):
        yield f"{_in_cpus(comparisons[0])} for {_requests(data.experiment)}."


def _in_cpus(comparison: Comparison) -> str:
    a, b, ratio = comparison.a, comparison.b, comparison.ratio
    if comparison.verdict is Verdict.EQUIVALENT or ratio is None:
        return f"{a} and {b} need the same server CPU"
    cheap, costly = (a, b) if ratio.estimate < 1 else (b, a)
    times = max(ratio.estimate, 1 / ratio.estimate)
    if times < LEAST_WORTH_TIMES:
        return f"{costly} needs about {text.percent(times - 1)} more server CPU than {cheap}"
    work = f"{number_word(times)} CPUs of {costly}"
    return f"By CPU time, one CPU of {cheap} does the work of about {work}"


def _requests(experiment: Experiment) -> str:
    asked = experiment.selected_requests or experiment.load.paths
    alike = all("paths" not in variant.load_changes for variant in experiment.variants.values())
    return "this request" if len(asked) == 1 and alike else "these requests"


def confidence(point: PointView) -> Iterator[str]:
    """Yield how sure the answer is in a word, and why."""
    asked = [each for each in point.decisive if each.ratio and each.verdict is not Verdict.INVALID]
    if not asked:
        return
    said = [*_agreement(asked, point), interference_words(asked, point.data)]
    said.append(slots_excluded(point) if point.judgement.excluded else "nothing excluded")
    if point.data.head.machine.split.shared:
        said.append("servers and client shared CPUs")
    yield f"{_levels(asked, point)}: {'; '.join(said)}."


def sureness(point: PointView) -> Iterator[str]:
    """Yield how sure a decided difference of two variants is, in a word, and why."""
    asked = [each for each in point.decisive if each.ratio and each.verdict in DECIDED]
    if len(asked) != 1 or len(point.data.experiment.variants) != len(point.decisive) + 1:
        return
    (only,) = asked
    doubts = f" ({', '.join(known)})" if (known := _doubts(only, point)) else ""
    level, agreeing = _level(only, point), _how_many_agree(only, _starts(point))
    yield f"Confidence{_of_size(only, level)}: {level}{doubts}; {agreeing}."


def _levels(asked: Sequence[Comparison], point: PointView) -> str:
    own = first(show.confidence(point.judgement) for show in point.shows)
    if own is not None:
        return own
    variants: dict[str, list[str]] = {}
    for comparison in asked:
        variants.setdefault(_level(comparison, point), []).append(comparison.a)
    if len(variants) == 1:
        (level,) = variants
        about = _of_size(asked[0], level) if len(asked) == 1 else ""
        return f"{level}{about}".capitalize()
    said = (f"{level} for {text.listed(variants[level])}" for level in LEVELS if level in variants)
    return ", ".join(said).capitalize()


LEVELS = ("high", "moderate", "low")
AHEAD = {Verdict.FASTER: "ahead", Verdict.SLOWER: "behind"}


def _level(comparison: Comparison, point: PointView) -> str:
    doubts = len(_doubts(comparison, point))
    return LEVELS[min(doubts, 2)] if comparison.verdict in DECIDED else "low"


def _of_size(comparison: Comparison, level: str) -> str:
    """Return of what a level is where every restart says who is ahead; else nothing."""
    is_sided = comparison.verdict in AHEAD and _agreeing(comparison) == len(comparison.by_round)
    return " in how much" if is_sided and level != LEVELS[0] else ""


def _doubts(comparison: Comparison, point: PointView) -> list[str]:
    interfered = "only a bound" if comparison.limited_by else "noise"
    unsteady = [
        look.variant
        for look in point.judgement.looks
        if look.variant in {comparison.a, comparison.b}
        and any(drift.metric == comparison.metric for drift in look.drifts)
    ]
    doubts = {
        "restarts disagree": _agreeing(comparison) < LEAST_AGREEING * len(comparison.by_round),
        interfered: worst_interference([comparison]) > MOST_INTERFERENCE,
        "slots excluded": point.judgement.excluded_count > MOST_EXCLUDED * len(point.data.slots),
        "client and servers share CPUs": point.data.head.machine.split.shared,
        f"{text.listed(unsteady)} not steady": bool(unsteady),
    }
    return [doubt for doubt, holds in doubts.items() if holds]


def _agreeing(comparison: Comparison) -> int:
    """Count the restarts whose ratio by itself would say what the verdict says."""
    if comparison.verdict is Verdict.EQUIVALENT and not comparison.negligible:
        limit = 1 + comparison.delta
        return sum(1 / limit <= ratio <= limit for ratio in comparison.by_round)
    if comparison.ratio is None or comparison.verdict is Verdict.EQUIVALENT:
        return len(comparison.by_round)
    return sum((ratio > 1) == (comparison.ratio.estimate > 1) for ratio in comparison.by_round)


def _starts(point: PointView) -> str:
    """Return what rounds are: restarts, unless systems ran before and aren't started again."""
    return "rounds" if point.data.ran_before else "restarts"


def _agreement(asked: Sequence[Comparison], point: PointView) -> Iterator[str]:
    if len(asked) != 1:
        return
    (only,) = asked
    low, high = (text.significant(end(only.by_round), 3) for end in (min, max))
    between = low if low == high else f"{low}{text.DASH}{high}"
    counted, rounds = _starts(point), point.judgement.rounds
    if len(only.by_round) != rounds:
        counted += f" that count (of {rounds})"
    if only.verdict in DECIDED:
        who = f"{only.a} " if only.verdict in AHEAD else ""
        yield f"{who}{_how_many_agree(only, counted)} (single ones {between}{text.TIMES})"
    else:
        about = f"{METRICS[only.metric].short} is not decided" if only.clear else "not decided"
        yield f"{about}, {len(only.by_round)} single {counted} gave {between}{text.TIMES}"


def _how_many_agree(comparison: Comparison, counted: str) -> str:
    """Return in how many restarts it is as the verdict says: `ahead in all 6 restarts`."""
    agreeing, rounds = _agreeing(comparison), len(comparison.by_round)
    whose = f"all {rounds}" if agreeing == rounds else f"{agreeing} of {rounds}"
    side = AHEAD.get(comparison.verdict)
    return f"{side} in {whose} {counted}" if side else f"{whose} {counted} agree"


def scope_of(view: RunView) -> str:
    """Return what was measured, and that it says nothing about the rest."""
    only = _only_point(view)
    experiment, data = view.head.experiment, view.points[0].data
    busy = bool(only and data.slots and only.has_one_load)
    parts = [
        f"{scope(experiment)} ({experiment.load_of_slots.loop} loop)",
        *([f"varied: {text.listed(view.factors)}"] if view.factors else []),
        *_network_and_cpus(data),
        *([servers_busy(data)] if busy else []),
    ]
    return f"{' · '.join(parts)}. Says nothing about other loads, applications or machines."


def _network_and_cpus(data: PointData) -> Iterator[str]:
    away = data.round_trips_s
    for variant, trip_s in away.items():
        yield f"{variant} on another machine (round trip {text.latency(trip_s * 1e6)})"
    if len(away) < len(data.experiment.variants):
        yield data.head.machine.network or "client and servers on one machine"
    cpus = {data.head.cpus_of(variant) for variant in data.experiment.variants}
    (count,) = cpus if len(cpus) == 1 else (0,)
    if count and not data.head.hosts and not data.ran_before:
        yield f"{count:g} server CPU{'' if count == 1 else 's'}"
