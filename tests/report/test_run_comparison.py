"""What `compare` prints of two runs."""

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons
from report.approved import assert_as_approved
from report.in_terminal import in_terminal
from webdyno.comparison.runs import compare_sweeps
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.core.sweep import Change
from webdyno.questions.ranking.settings import RankingSettings
from webdyno.report.run_comparison import comparison_document
from webdyno.report.words import side_word


def printed(before: SimulatedRun, after: SimulatedRun, width: int) -> str:
    compared = compare_sweeps(before.whole, after.whole)
    return in_terminal(comparison_document(after.head, compared), width)


def slower_nginx() -> SimulatedRun:
    slower = SimulatedVariant(throughput_rps=62_000, server_cpu_us=13.9, latency_p50_us=960)
    return simulated_run({"apache-event": comparisons.APACHE, "nginx": slower}, rounds=8, seed=7)


@pytest.mark.parametrize("width", [80, 100])
def test_what_changed_reads_as_it_was_last_approved(width: int) -> None:
    assert_as_approved(f"compare-{width}", printed(comparisons.decided(), slower_nginx(), width))


@pytest.mark.parametrize("width", [80, 100])
def test_other_experiments_are_refused_as_last_approved(width: int) -> None:
    assert_as_approved(
        f"compare-unlike-{width}", printed(comparisons.decided(), comparisons.invalid(), width)
    )


@pytest.mark.parametrize(
    ("ratio", "word"), [(7.42, "below the practical threshold"), (1.01, "equivalent")]
)
def test_what_is_below_a_floor_is_not_called_equivalent_next_to_its_ratio(
    ratio: float, word: str
) -> None:
    change = Change(
        metric="context_switches",
        subject="nginx",
        of="variant",
        change=Interval(low=ratio, estimate=ratio, high=ratio),
        delta=0.02,
        verdict=Verdict.EQUIVALENT,
        because="interval",
        why="",
    )
    assert side_word(change) == word


def ranking(seed: int, **rates: float) -> SimulatedRun:
    variants = {
        name: SimulatedVariant(stack=name, throughput_rps=rate) for name, rate in rates.items()
    }
    run = simulated_run(variants, rounds=12, seed=seed)
    return run.asking(RankingSettings())


@pytest.mark.parametrize(("name", "bun"), [("alike", 40_000.0), ("swapped", 90_000.0)])
def test_two_rankings_read_as_last_approved(name: str, bun: float) -> None:
    before = ranking(1, axum=60_000.0, bun=40_000.0, express=10_000.0)
    after = ranking(2, axum=60_000.0, bun=bun, express=10_000.0)
    assert_as_approved(f"compare-rankings-{name}", printed(before, after, 80))
