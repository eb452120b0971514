"""What clients reported of known delays, whether they can be judged by it, and the table of it."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.table import Table

from rig.delay_server import Punctuality
from rig.percentiles import Percentiles
from rig.process import BenchError, Finished
from rig.reporters import Reporter
from rig.truth import BOUNDS, PERCENTILES, all_within, within

NO_PERCENTILES = ["-"] * len(PERCENTILES)


@dataclass(frozen=True)
class Trial:
    """One run of a client against a server of its own."""

    percentiles: Percentiles
    """What it reported; empty if it failed."""
    others: float
    """Share of the time in which others had the client's core."""
    punctuality: Punctuality
    problem: str = ""
    """Why it reported nothing."""

    @property
    def sound(self) -> bool:
        """Whether the client can be judged by it, also for failing."""
        return self.punctuality.sound

    def right(self, truth: Mapping[float, float]) -> bool:
        """Say whether all percentiles are as they have to be."""
        return not self.problem and all_within(self.percentiles, truth)


def trial_of(reporter: Reporter, finished: Finished, punctuality: Punctuality) -> Trial:
    """Read what a client reported."""
    failed = partial(Trial, {}, finished.others, punctuality)
    if finished.exit_code not in reporter.good_exits:
        return failed(finished.reason)
    try:
        return Trial(reporter.read(finished.output), finished.others, punctuality)
    except BenchError as error:
        return failed(str(error))


def sound_ones(trials: Sequence[Trial]) -> list[Trial]:
    """Give those that are judged."""
    return [each for each in trials if each.sound]


def unsound_count(trials: Sequence[Trial]) -> int:
    """Count those that are not judged."""
    return len(trials) - len(sound_ones(trials))


def add_round(trials: list[Trial], take: Callable[[], Trial], most_repeats: int) -> None:
    """Take a trial, and again while it is unsound; `most_repeats` are for all rounds together."""
    while True:
        trials.append(take())
        if trials[-1].sound or unsound_count(trials) > most_repeats:
            return


def truth_table(
    title: str, truth: Percentiles, trials: Mapping[str, Sequence[Trial]], absent: Sequence[str]
) -> Table:
    """Show truth and reports; each with its error, those out of bounds with a mark."""
    table = Table(title=f"{title}: milliseconds", title_justify="left", title_style="bold")
    table.add_column("client")
    for percent in PERCENTILES:
        table.add_column(f"p{percent:g}", justify="right", no_wrap=True)
    table.add_column("right", overflow="fold")
    for heading in ("unsound", "others"):
        table.add_column(heading, justify="right")
    table.add_row("truth", *(f"{truth[percent]:.2f}" for percent in PERCENTILES))
    for name, of_client in trials.items():
        table.add_row(name, *_table_row(of_client, truth))
    for name in absent:
        table.add_row(name, *NO_PERCENTILES, "not found on the PATH")
    table.caption = _lateness([each for taken in trials.values() for each in sound_ones(taken)])
    return table


def _table_row(trials: Sequence[Trial], truth: Percentiles) -> list[str]:
    judged = sound_ones(trials)
    unsound = f"{unsound_count(trials)} of {len(trials)}"
    if not judged:
        return [*NO_PERCENTILES, "no sound sample", unsound, "-"]
    right = f"{sum(each.right(truth) for each in judged)} of {len(judged)}"
    problems = dict.fromkeys(each.problem for each in judged if each.problem)
    return [
        *_percentiles([each.percentiles for each in judged if not each.problem], truth),
        "; ".join([right, *problems]),
        unsound,
        f"{statistics.median(each.others for each in judged):.0%}",
    ]


def _percentiles(reported: Sequence[Percentiles], truth: Percentiles) -> list[str]:
    if not reported:
        return NO_PERCENTILES
    return [
        _against(statistics.median_low(each[percent] for each in reported), truth[percent])
        for percent in PERCENTILES
    ]


def _against(reported_ms: float, true_ms: float) -> str:
    mark = "" if within(reported_ms, true_ms) else " !"
    return f"{reported_ms:.2f} ({reported_ms - true_ms:+.2f}){mark}"


def _lateness(judged: Sequence[Trial]) -> str:
    if not judged:
        return "the server wrote too many responses too late in all samples"
    late_us = [each.punctuality.late_us for each in judged]
    p50_us, p99_us = (statistics.median(each[name] for each in late_us) for name in ("p50", "p99"))
    return (
        f"in sound samples the server wrote its responses late by p50 {p50_us:,.0f} µs, "
        f"p99 {p99_us:,.0f} µs (medians), at most {max(each['max'] for each in late_us):,} µs"
    )


def goal(name: str, trials: Sequence[Trial], truth: Percentiles) -> str:
    """Say whether loadgen reached its goal in these trials: in all sound ones, or not."""
    judged = sound_ones(trials)
    right = sum(each.right(truth) for each in judged)
    if not judged:
        verdict = "inconclusive: no sound round"
    elif right == len(judged):
        verdict = f"reached in {right} of {len(judged)} sound rounds"
    else:
        verdict = f"missed: right in {right} of {len(judged)} sound rounds"
    return f"goal: {name} within {BOUNDS} of the truth at every percentile: {verdict}"
