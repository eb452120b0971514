"""What a league's pages and data say, made of the runs alone."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import combinations
from typing import Literal

from pydantic import AwareDatetime

from webdyno.comparison.runs import rank_changes
from webdyno.config import Catalogue
from webdyno.core.base import Interval, Model
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import LimitedBy, Rank, Verdict
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.core.registry import NAME
from webdyno.core.run import RunHead
from webdyno.core.sheet import csv_sheet
from webdyno.core.testbed import Machine
from webdyno.core.variant import Variant, quoted_part
from webdyno.league.joined import Joined, join
from webdyno.league.judged import JudgedRun
from webdyno.league.records import LeagueFolder, LeagueRun, MeasuredMachine
from webdyno.league.task import FULL, SITES, task_of

MEMORY, P99, P50 = "memory_mib", "latency_p99_us", "latency_p50_us"
SHOWN = (THROUGHPUT, CPU_TIME, MEMORY)
LATENCIES = (P50, P99)
"""Shown at a common rate: at full speed they are mostly queueing."""
BUSY = 0.85
"""Share of the servers' CPUs from which on these are what limits a stack."""

Limit = LimitedBy | Literal["rate", "cpu", "waiting"]
"""What kept a stack from being faster. CPUs, and what servers wait for, are its own doing."""


class PastRank(Model):
    """A stack's rank in the league as it was after one of its runs."""

    at: AwareDatetime
    rank: Rank | None
    of: int
    """How many had a rank then."""
    figure: Interval | None
    """What was measured then, as it was measured."""


class Entry(Model):
    """A stack's result at a task."""

    stack: str
    rank: Rank | None
    out: str = ""
    """Why it has no rank."""
    on_scale: dict[str, Interval] = {}
    """By metric, on the scale of all runs: what ranks are by, and what a request costs."""
    figures: dict[str, Interval] = {}
    """By metric, as its own run measured them."""
    cpus_busy: float | None = None
    """Share of the servers' CPUs that it used."""
    cpus_by_service: dict[str, float] = {}
    """How many CPUs each of its services kept busy."""
    client_busy: float | None = None
    """Share of the time for which the client's busiest thread worked."""
    limited_by: Limit | None = None
    measured_at: AwareDatetime
    run: str
    """The folder of its run within the league's."""
    webdyno_version: str
    load_generator: str
    versions: dict[str, str] = {}
    facts: dict[str, str] = {}
    """How it was set up, in words."""
    command: str
    """What ranks it again, with those that were in its run, after the same warm-ups."""
    over_time: list[PastRank] = []
    """The earliest first."""

    def in_table(self, metric: str) -> Interval | None:
        """Return a metric as it stands next to that of other stacks."""
        return self.on_scale.get(metric) or self.figures.get(metric)


class PairVerdict(Model):
    """Two stacks at a task: the first one against the second."""

    a: str
    b: str
    verdict: Verdict
    ratio: Interval | None
    """Of their values of what decides."""
    limited_by: dict[str, LimitedBy] = {}
    """By stack: what kept it from being faster, other than itself."""


class Standing(Model):
    """A task on a machine."""

    task: str
    words: str
    site: str
    rate_rps: float | None
    decide_on: str
    connections: int
    machine: str
    confidence: float
    """With which all ranks hold together."""
    runs: int
    entries: list[Entry]
    """By rank; those without one come last."""
    pairs: list[PairVerdict]

    def entry_of(self, stack: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.stack == stack), None)


class Agreement(Model):
    """A task that two machines measured: whether they put stacks in the same order."""

    words: str
    machines: tuple[str, str]
    same: int
    open: int
    swapped: list[tuple[str, str]]
    """Pairs of which both machines are sure and don't agree."""


class StackAbout(Model):
    """What a stack is."""

    name: str
    title: str
    language: str
    kind: str
    home: str


class Results(Model):
    """All of a league."""

    made_at: AwareDatetime
    webdyno_version: str
    machines: dict[str, Machine]
    stacks: list[StackAbout]
    standings: list[Standing]
    agreements: list[Agreement] = []


def results_of(folder: LeagueFolder, catalogue: Catalogue) -> Results:
    """Return all that a league's folder says."""
    machines = folder.machines()
    known = {machine.name: list(standings_of(machine)) for machine in machines}
    finished = [run for machine in machines for run in machine.runs if run.is_over]
    return Results(
        made_at=datetime.now(UTC),
        webdyno_version=version("webdyno"),
        machines={machine.name: machine.machine for machine in machines if known[machine.name]},
        stacks=about_stacks(finished, catalogue),
        standings=[standing for of_it in known.values() for standing, _ in of_it],
        agreements=list(agreements_of(known)),
    )


def standings_of(machine: MeasuredMachine) -> Iterator[tuple[Standing, Joined]]:
    """Yield the tasks of a machine, in the order of their names."""
    finished = [run for run in machine.runs if run.is_over]
    for key in sorted({run.key for run in finished}, key=_in_order):
        runs = [run for run in finished if run.key == key]
        as_it_was = [join([run.judged for run in runs[number:]]) for number in range(len(runs))]
        yield _standing(machine.name, runs, as_it_was), as_it_was[0]


def _in_order(key: str) -> tuple[int, str]:
    """Put usual sites first, and each at full speed before its rates."""
    site, _, load = key.partition("-")
    place = SITES.index(site) if site in SITES else len(SITES)
    return place, f"{site} {not load.startswith(FULL)} {load}"


def _standing(machine: str, runs: Sequence[LeagueRun], as_it_was: Sequence[Joined]) -> Standing:
    """Return a task's standing by its runs, and the rankings after each of them, newest first."""
    joined, experiment = as_it_was[0], runs[0].experiment
    task = task_of(experiment)
    by_judged = {run.judged: run for run in runs}
    past = _over_time(runs, as_it_was)
    ranks = {rank.variant: rank for rank in joined.ranking.ranks}
    entries = [
        _entry(stack, ranks.get(stack), joined, by_judged[joined.of_stack[stack]], past[stack])
        for stack in [*ranks, *(stack for stack in joined.of_stack if stack not in ranks)]
    ]
    places = {stack: number for number, stack in enumerate(ranks)}
    pairs = [
        PairVerdict(
            a=pair.a,
            b=pair.b,
            verdict=pair.verdict,
            ratio=pair.decisive,
            limited_by=pair.limited_by,
        )
        for pair in joined.ranking.pairs
        if places[pair.a] < places[pair.b]
    ]
    return Standing(
        task=runs[0].key,
        words=task.words,
        site=task.site,
        rate_rps=task.rate_rps,
        decide_on=joined.decide_on,
        connections=experiment.load.connections,
        machine=machine,
        confidence=joined.confidence,
        runs=len(joined.runs),
        entries=entries,
        pairs=pairs,
    )


def _entry(
    stack: str, rank: Rank | None, joined: Joined, run: LeagueRun, past: list[PastRank]
) -> Entry:
    judged, head, task = run.judged, run.head, task_of(run.experiment)
    figures = {
        metric: value.interval
        for metric in (SHOWN if task.rate_rps is None else (*SHOWN, *LATENCIES))
        if (value := judged.value(stack, metric)) and value.interval
    }
    busy = _cpus_busy(figures, head, stack)
    return Entry(
        stack=stack,
        rank=rank,
        out=joined.ranking.out.get(stack, ""),
        on_scale={metric: of[stack] for metric, of in joined.figures.items() if stack in of},
        figures=figures,
        cpus_busy=busy,
        cpus_by_service=judged.cpus_by_service(stack),
        client_busy=judged.client_busy(stack),
        limited_by=_limit("rate" if task.rate_rps else judged.limit_of(stack), busy),
        measured_at=head.started_at,
        run="/".join(run.path.parts[-3:]),
        webdyno_version=head.webdyno_version,
        load_generator=head.load_generator,
        versions=head.versions.get(stack, {}),
        facts=_facts(judged, stack),
        command=_command(run),
        over_time=past,
    )


def _cpus_busy(figures: Mapping[str, Interval], head: RunHead, stack: str) -> float | None:
    rate, cpu = figures.get(THROUGHPUT), figures.get(CPU_TIME)
    if rate is None or cpu is None:
        return None
    return min(1.0, rate.estimate * cpu.estimate / 1e6 / head.cpus_of(stack))


def _limit(elsewhere: Limit | None, cpus_busy: float | None) -> Limit | None:
    """Return what limited a stack: if nothing else did, its CPUs or what it waits for."""
    if elsewhere or cpus_busy is None:
        return elsewhere
    return "cpu" if cpus_busy >= BUSY else "waiting"


def _facts(judged: JudgedRun, stack: str) -> dict[str, str]:
    known = (preflight.facts.get(stack, {}) for preflight in reversed(judged.data.preflights))
    return next(filter(None, known), {})


def _command(run: LeagueRun) -> str:
    task = task_of(run.experiment)
    words = [NAME, "compare", *run.stacks, "--site", task.site]
    words += [] if task.rate_rps is None else ["--rate", f"{task.rate_rps:g}"]
    return shlex.join([*words, *_warmups(run.experiment)])


def _warmups(experiment: Experiment) -> Iterator[str]:
    """Yield the flags that give stacks the warm-ups that they had, where a pilot chose none."""
    given: dict[str, Measure | Variant] = {"measure": experiment.measure}
    given |= {
        f"variants.{quoted_part(name)}": variant for name, variant in experiment.variants.items()
    }
    for key, its in given.items():
        if its.warmup_s is not None:
            yield from ("--set", f"{key}.warmup_s={its.warmup_s:g}")
        if its.warmup_bursts not in (None, "auto"):
            yield from ("--set", f"{key}.warmup_bursts={its.warmup_bursts}")


def _over_time(
    newest_first: Sequence[LeagueRun], as_it_was: Sequence[Joined]
) -> dict[str, list[PastRank]]:
    """Return by stack its ranks in the league as it was after each of its runs."""
    past: dict[str, list[PastRank]] = {}
    for run, then in zip(reversed(newest_first), reversed(as_it_was), strict=True):
        ranks = {rank.variant: rank for rank in then.ranking.ranks}
        for stack in run.stacks:
            value = run.judged.value(stack, then.decide_on)
            past.setdefault(stack, []).append(
                PastRank(
                    at=run.head.started_at,
                    rank=ranks.get(stack),
                    of=len(ranks),
                    figure=value.interval if value else None,
                )
            )
    return past


def agreements_of(
    known: Mapping[str, Sequence[tuple[Standing, Joined]]],
) -> Iterator[Agreement]:
    """Yield what each two machines say of the order of the same stacks at the same task."""
    for one, other in combinations(known, 2):
        theirs = {standing.task: joined for standing, joined in known[other]}
        for standing, joined in known[one]:
            if standing.task not in theirs:
                continue
            changes = rank_changes(joined.ranking, theirs[standing.task].ranking)
            if changes.same + changes.open + len(changes.swaps):
                yield Agreement(
                    words=standing.words,
                    machines=(one, other),
                    same=changes.same,
                    open=changes.open,
                    swapped=[(swap.ahead, swap.behind) for swap in changes.swaps],
                )


def about_stacks(runs: Sequence[LeagueRun], catalogue: Catalogue) -> list[StackAbout]:
    """Return what the stacks of some runs are; of one that the catalog lost its name alone."""
    return [
        StackAbout(
            name=name,
            title=stack.title if stack else name,
            language=stack.language if stack else "",
            kind=(stack.kind or "") if stack else "",
            home=stack.home if stack else "",
        )
        for name in sorted({name for run in runs for name in run.stacks})
        for stack in [catalogue.stacks.get(name)]
    ]


ENDS = ("estimate", "low", "high")
SCALED = ("on_a_common_scale", f"{CPU_TIME}_on_a_common_scale")
"""Headings of what ranks are by, and of what a request costs."""


def sheet_of(results: Results) -> str:
    """Return the figures of a league as CSV."""
    about = {each.name: each for each in results.stacks}
    metrics = (*SHOWN, *LATENCIES)
    rows: list[list[object]] = [
        [
            *("machine", "test", "site", "rate_rps", "connections", "stack", "language", "kind"),
            *("best_rank", "worst_rank", "no_rank_because", "measured_at", "run"),
            *("webdyno_version", "load_generator", "versions", "command"),
            *("limited_by", "servers_cpus_busy", "cpus_by_service", "client_busy", "ranked_by"),
            *(f"{name}_{end}" for name in (*SCALED, *metrics) for end in ENDS),
        ]
    ]
    for standing in results.standings:
        scaled = (standing.decide_on, CPU_TIME)
        for entry in standing.entries:
            rank, stack = entry.rank, about[entry.stack]
            rows.append(
                [
                    *(standing.machine, standing.words, standing.site, standing.rate_rps),
                    *(standing.connections, entry.stack, stack.language, stack.kind),
                    *((rank.best, rank.worst) if rank else ("", "")),
                    *(entry.out, entry.measured_at.isoformat(), entry.run),
                    *(entry.webdyno_version, entry.load_generator),
                    "; ".join(f"{name} {version}" for name, version in entry.versions.items()),
                    *(entry.command, entry.limited_by, entry.cpus_busy),
                    "; ".join(f"{role} {cpus:.3f}" for role, cpus in entry.cpus_by_service.items()),
                    *(entry.client_busy, standing.decide_on),
                    *(end for metric in scaled for end in _ends(entry.on_scale.get(metric))),
                    *(end for metric in metrics for end in _ends(entry.figures.get(metric))),
                ]
            )
    return csv_sheet(rows)


def _ends(interval: Interval | None) -> tuple[object, ...]:
    return (interval.estimate, interval.low, interval.high) if interval else ("", "", "")
