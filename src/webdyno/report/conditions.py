"""How a run was measured and on which machine, as terms with what is to be said of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import prod
from statistics import median

from webdyno.comparison import question_of
from webdyno.core import format as text
from webdyno.core.base import TIME, memory_words
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Judgement
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.core.records import PreflightRecord, RoundRecord, SlotRecord
from webdyno.core.run import RunHead
from webdyno.core.testbed import CpuSplit, Machine
from webdyno.core.variant import Variant
from webdyno.evidence.long_look import warnings_words
from webdyno.evidence.point_data import RunData
from webdyno.media.document import Facts
from webdyno.validity import counting_share
from webdyno.validity.responses import counted_by_front

MOST_NAMED = 20
"""Paths that are named; a run's folder has them all."""


def factor_facts(experiment: Experiment) -> Facts:
    """Return what was varied; nothing in an experiment without factors."""
    if not experiment.factors:
        return []
    names = text.factor_names(experiment.factors)
    varied = "; ".join(
        f"{names[key]}: {', '.join(map(text.level, levels))}"
        for key, levels in experiment.factors.items()
    )
    points = prod(len(levels) for levels in experiment.factors.values())
    how = "every combination; they take turns, a round each, in random order"
    return [("Varied", varied), ("Points", f"{points}, {how}" if points > 1 else "1")]


def how_measured(run: RunData, judged: Sequence[Judgement]) -> Facts:
    """Return how the run was made, so that a reader can judge it."""
    head, experiment = run.head, run.head.experiment
    varied = any(key.startswith("load.") for key in experiment.factors)
    load = load_words(experiment.load_of_slots) + ("; but for what is varied" if varied else "")
    looks = (look for judgement in judged for look in judgement.looks)
    share = counting_share(run.points)
    rest = "the rest: starts, pilots, warm-up, ramp-up, pauses"
    facts: list[tuple[str, Sequence[str]]] = [
        ("Rounds", [_rounds(sum(judgement.rounds for judgement in judged), run)]),
        ("Objectives", question_of(experiment).loading.aims),
        ("Paths", _paths(experiment)),
        ("Load", [load]),
        ("Load with", list(_load_with(experiment))),
        ("Variants", variant_words(experiment)),
        ("CPUs", [host_cpus(head) if head.hosts else cpu_split(head.machine.split)]),
        ("Stop rule", [stop_rule(experiment)]),
        ("Stopped", _stops(judged)),
        ("Long look", [f"{look.variant}: {warnings_words(look)}" for look in looks]),
        ("Measured load", [] if share is None else [f"{text.percent(share)} of the time; {rest}"]),
        ("Variation", list(_noise(judged))),
        ("Seed", [str(experiment.measure.seed)]),
        ("Load generator", [head.load_generator]),
    ]
    slots = [
        slot for slot in run.records if isinstance(slot, SlotRecord) and slot.phase == "measure"
    ]
    responses = _responses(slots) if slots else ()
    return [*((term, "; ".join(said)) for term, said in facts if said), *responses]


def _rounds(counted: int, run: RunData) -> str:
    records, experiment = run.records, run.head.experiment
    rounds = f"{text.count(counted, 'round')} counted"
    slots = [record for record in records if isinstance(record, SlotRecord)]
    if not slots:
        return rounds
    preflights = (record for record in records if isinstance(record, PreflightRecord))
    before = dict.fromkeys(variant for preflight in preflights for variant in preflight.ran_before)
    rounds += ", each a fresh start of every variant"
    rounds += f" but {', '.join(before)}, which ran before" if before else ""
    if not question_of(experiment).loading.has_windows:
        lengths = _lengths(slot.load.measured_s for slot in slots if slot.phase == "trial")
        return (
            f"{rounds} and a search of its own, in trials of {lengths} in which the variants "
            "take turns"
        )
    orders = (record.order for record in records if isinstance(record, RoundRecord))
    numbers = {len(order) // len(set(order)) for order in orders}
    each = " or ".join(map(str, sorted(numbers or {experiment.measure.first_slots_per_variant})))
    chosen = " (chosen from the noise seen)" if len(numbers) > 1 else ""
    lengths = _lengths(slot.load.measured_s for slot in slots if slot.phase == "measure")
    return (
        f"{rounds}; in each, {each} slots{chosen} of {lengths} per variant in balanced random "
        f"order{_warmups(slots)}"
    )


def _warmups(slots: Sequence[SlotRecord]) -> str:
    warmups = [slot for slot in slots if slot.phase == "warmup"]
    if not warmups:
        return ""
    loads = {(warmup.round, warmup.slot): warmup for warmup in warmups}
    by_start: dict[tuple[int, str], list[SlotRecord]] = {}
    for slot in loads.values():
        by_start.setdefault((slot.round, slot.variant), []).append(slot)
    starts = by_start.values()
    lengths = _lengths(sum(slot.load.measured_s for slot in each) for each in starts)
    in_bursts = dict.fromkeys(variant for (_, variant), each in by_start.items() if len(each) > 1)
    bursts = f" (in bursts, with pauses: {', '.join(in_bursts)})" if in_bursts else ""
    return f", after {lengths} of warm-up{bursts}"


def _lengths(times_s: Iterable[float]) -> str:
    """Return the shortest and the longest, as far as people care."""
    lengths_s = [float(f"{time_s:.2g}") for time_s in times_s]
    ends_s = sorted({min(lengths_s, default=0.0), max(lengths_s, default=0.0)})
    return " to ".join(map(text.duration, ends_s))


def _load_with(experiment: Experiment) -> Iterator[str]:
    used = experiment.factors.get("generator", [experiment.generator])
    for name, changes in experiment.load_with.items():
        if name in used:
            yield f"{name}: {', '.join(f'{key} = {value}' for key, value in changes.items())}"


def _paths(experiment: Experiment) -> list[str]:
    if experiment.selected_requests:
        return [_first_of([request.label for request in experiment.selected_requests])]
    own = [
        f"{name}: {_first_of(experiment.load_of(name).paths)}"
        for name, variant in experiment.variants.items()
        if "paths" in variant.load_changes
    ]
    if len(own) == len(experiment.variants) or "load.paths" in experiment.factors:
        return own
    return [_first_of(experiment.load.paths), *own]


def _first_of(paths: Sequence[str]) -> str:
    named, more = ", ".join(paths[:MOST_NAMED]), len(paths) - MOST_NAMED
    return f"{named} and {text.number(more)} more" if more > 0 else named


def stop_rule(experiment: Experiment) -> str:
    """Return when a run stops."""
    measure, patience = experiment.measure, experiment.measure.patience
    enough, fewest = question_of(experiment).stops_at
    words = (
        f"{enough}, or {text.count(measure.max_rounds, 'round')}, or "
        f"{text.duration(measure.budget_s)}; never before {text.count(fewest, 'round')}"
    )
    longer = f"; up to {patience:g} times as much while results are too noisy"
    return words + longer if patience > 1 else words


def _stops(judged: Sequence[Judgement]) -> list[str]:
    """Return why no more was measured; of several points those that stopped alike together."""
    whys = Counter(judgement.stopped_because for judgement in judged if judgement.stopped_because)
    if len(judged) == 1:
        return list(whys)
    return [f"{why} ({text.count(points, 'point')})" for why, points in whys.most_common()]


def _noise(judged: Sequence[Judgement]) -> Iterator[str]:
    splits = [split for judgement in judged for split in judgement.variance]
    for variant in dict.fromkeys(split.variant for split in splits):
        own = [split for split in splits if split.variant == variant]
        restart = median(split.restart_sd for split in own)
        slot = median(split.slot_sd for split in own)
        between = f"{text.percent(restart)} run-to-run" if restart else "none seen run-to-run"
        yield f"{variant} {between}, {text.percent(slot)} within-run"


def _responses(slots: Sequence[SlotRecord]) -> Iterator[tuple[str, str]]:
    yield "Valid responses", text.number(sum(slot.load.requests.completed for slot in slots))
    busiest = max(slot.load.client.busy for slot in slots)
    yield "Busiest client thread", f"{text.percent(busiest)} of its time"
    yield from _send_delay([slot.load for slot in slots if slot.load.loop == "open"])
    if own_counts := "; ".join(_own_counts(slots)):
        yield "Servers' own counts", f"{own_counts}; ramp-ups included"
    if means := sorted({slot.servers.means for slot in slots if slot.servers.cpu_s}):
        yield "Server CPU read from", ", ".join(means)


def _send_delay(loads: Sequence[LoadResult]) -> Iterator[tuple[str, str]]:
    delays = [load.send_delay_us.p99 for load in loads if load.send_delay_us.p99 is not None]
    if not delays:
        return
    sentence = f"99% of them within {text.latency(median(delays))} of when they were due"
    sent = sum(load.requests.sent or 0 for load in loads)
    if wake_ups := sum(load.client.wake_ups or 0 for load in loads):
        sentence += f", {text.number(sent / wake_ups)} at each wake-up"
    yield "Requests were sent", sentence


def _own_counts(slots: Sequence[SlotRecord]) -> Iterator[str]:
    """Set what servers counted next to what was sent to them, in slots of which both are known."""
    counts: dict[str, tuple[int, int]] = {}
    for slot in slots:
        counted, sent = counted_by_front(slot), slot.load.all_of_it.sent
        if counted is not None and sent:
            before = counts.get(slot.variant, (0, 0))
            counts[slot.variant] = (before[0] + counted, before[1] + sent)
    for variant, (counted, sent) in counts.items():
        yield f"{variant} counted {text.number(counted)} of {text.count(sent, 'request')} sent"


ARRIVALS = {
    "poisson": "at random (Poisson)",
    "constant": "evenly spaced",
    "replay": "as in stretches of the log",
}


def load_words(load: Load) -> str:
    return ", ".join(_load_parts(load))


def _load_parts(load: Load) -> Iterator[str]:
    yield f"{load.loop} loop"
    arrivals = ARRIVALS[load.arrivals]
    if load.rate_per_s is not None:
        yield f"{load.rate_per_s:,g} {load.arrival_unit}s due per second, {arrivals}"
    if load.rate_per_connection is not None:
        yield f"{load.rate_per_connection:,g} requests due per second and connection, {arrivals}"
    if load.burst > 1:
        yield f"{text.number(load.burst)} at once"
    if load.send_delay_budget_s:
        yield f"sent up to {TIME.words(load.send_delay_budget_s)} later"
    if load.kernel_times:
        yield "responses timed by the kernel"
    of_all = load.loop == "open" and load.rate_per_connection is None and not load.broadcast
    at_most = "at most " if of_all else ""
    yield at_most + text.count(load.connections, "connection")
    if load.broadcast:
        yield "one more sends to all"
    if load.connection_ramp_s:
        yield f"one after the other within {text.duration(load.connection_ramp_s)}"
    if load.think_s:
        yield f"mean pause of {text.duration(load.think_s)} before the next request"
    if load.count is not None:
        yield f"{text.count(load.count, 'request')} in a slot"
    if isinstance(load.keepalive, str):
        yield f"keep-alive {load.keepalive}"
    else:
        yield f"keep-alive for {text.count(load.keepalive, 'request')}"
    if load.zipf is not None:
        yield f"paths by Zipf's law with exponent {load.zipf:g}"
    if load.idle_connections:
        yield text.count(load.idle_connections, "idle connection")
    if load.slow_readers is not None:
        slow = text.count(load.slow_readers.connections, "slow reader")
        yield f"{slow} at {text.size(load.slow_readers.bytes_per_s)}/s"
    yield f"timeout {text.duration(load.timeout_s)}"
    if load.goodput:
        yield f"goodput of responses with {text.listed(load.goodput)}"
    yield from (f"{name}: {value}" for name, value in load.headers.items())


def variant_words(experiment: Experiment) -> list[str]:
    """Return what was set for variants next to their stack; variants without any are excluded."""
    settings_of = {
        name: ", ".join(_variant_parts(variant)) for name, variant in experiment.variants.items()
    }
    return [f"{name}: {settings}" for name, settings in settings_of.items() if settings]


def _variant_parts(variant: Variant) -> Iterator[str]:
    yield from (f"{name} = {text.level(value)}" for name, value in variant.settings.items())
    if variant.memory is not None:
        yield f"at most {memory_words(variant.memory)} of memory"
    if variant.cpus is not None:
        yield "on 1 CPU" if variant.cpus == 1 else f"on {variant.cpus:g} CPUs"
    if variant.site is not None:
        yield f"site {variant.site}"
    for table, changes in (("load", variant.load), ("testbed", variant.testbed)):
        yield from (f"{table}.{key} = {value}" for key, value in changes.items() if key != "paths")


def cpu_split(split: CpuSplit) -> str:
    """Return which CPUs do what."""
    words = f"servers on {text.cpu_list(split.servers)}, client on {text.cpu_list(split.client)}"
    if not set(split.rest) <= {*split.servers, *split.client}:
        words += f", {text.cpu_list(split.rest)} left to the rest of the machine"
    return words + (" (shared: results are only indicative)" if split.shared else "")


def host_cpus(head: RunHead) -> str:
    """Return which CPUs of which host do what."""
    testbed = head.experiment.testbed

    def on(names: Iterable[str]) -> str:
        there = (name for name in names if name in head.hosts)
        return ", ".join(
            f"{name} ({text.cpu_list(head.hosts[name].split.servers)})" for name in there
        )

    return f"servers on {on(testbed.serving)}, load from {on(testbed.hosts.clients)}"


def machine_facts(machine: Machine) -> Facts:
    """Describe the machine; what isn't known is excluded."""
    backlog = machine.listen_backlog_limit
    known = [
        ("CPU", machine.cpu_model),
        ("CPUs usable", f"{len(machine.cpus)} ({text.cpu_list(machine.cpus)})"),
        ("Physical cores", machine.physical_cores),
        ("Memory", text.size(machine.memory_bytes)),
        ("Kernel", machine.kernel),
        ("Distribution", machine.distribution),
        ("Virtualization", machine.virtualisation),
        ("CPU governor", machine.governor),
        ("Open files, at most", text.number(machine.open_files_limit)),
        ("Listen backlog, at most", None if backlog is None else text.number(backlog)),
        ("Network between client and servers", machine.network),
        ("CPUs kept out of deep idle", machine.awake),
    ]
    return [(term, str(value)) for term, value in known if value is not None]


def when(moment: datetime) -> str:
    """Return a date and time with its zone."""
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()
