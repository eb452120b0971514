"""What the benchmarks of stalls and of the first answer make of their results."""

import pytest
from rich.console import Console

import first_answer
import stalls
from bench.outcomes import KEPT, outcome
from builders import SimulatedVariant, simulated_run
from first_answer import FirstAnswer
from rig.lab import Outcome
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.core.looks import Growth
from webdyno.launch.caller import LineProgress


def stalled(case: str, verdict: Verdict, warnings: tuple[str, ...] = ()) -> Outcome:
    ratios = {"throughput_rps": Interval(low=0.8, estimate=0.83, high=0.85)}
    return outcome(case, verdict, metric="throughput_rps", ratios=ratios, warnings=warnings)


def rows(table: object) -> list[list[str]]:
    console = Console(width=200, record=True)
    console.print(table)
    lines = console.export_text().splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


@pytest.mark.parametrize(
    ("case", "held"), [("closed 1 s per 6 s", True), ("closed 50 ms per 2 s", False)]
)
def test_an_interval_is_held_against_the_truth(case: str, held: bool) -> None:
    assert stalls.holds(stalled(case, Verdict.SLOWER)) is held


def test_what_was_seen_rightly_and_wrongly_is_counted() -> None:
    case = "capacity 1 s per 6 s"
    seen = "no-capacity (invalid): variant other: p99<50ms can't hold"
    reported = stalled(case, Verdict.INVALID, (seen,))
    wrong = stalled(case, Verdict.EQUIVALENT, ("drift (note): variant baseline: slower",))
    assert [case, "2", "0 of 0", "1", "1", "1", "–", "60"] in rows(stalls.table([reported, wrong]))


def test_slopes_are_held_against_the_true_one() -> None:
    case, true = "leak 1 MB a minute", stalls.LEAK_BYTES_PER_S
    runs = []
    for share in (0.99, 1.05):
        grew = Interval(low=(share - 0.02) * true, estimate=share * true, high=1.07 * true)
        growths = {"other": Growth(bytes_per_s=grew, bytes_per_request=grew)}
        run = stalled(case, Verdict.EQUIVALENT, ("memory-growth (note): variant other: grew",))
        runs.append(run.model_copy(update={"growths": growths}))
    assert stalls.slope(runs[0]) is not None
    assert any("1.020 (1 of 2)" in row for row in rows(stalls.table(runs)))


def test_answers_are_counted_commit_by_commit() -> None:
    kept = {**KEPT, "case": "first comparison", "took_s": 40.0}
    runs = [FirstAnswer(**kept, answer_s=answer) for answer in (21.0, 24.0, 26.5, None)]
    counted = ["abc", "4", "24.0", "21.0", "26.5", "2 of 4", "40.0"]
    assert counted in rows(first_answer.table(runs))


def test_the_line_with_the_answer_is_known() -> None:
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()})
    reported: list[str] = []
    LineProgress(run.head, reported.append).answers(run.data, [10.0])
    (line,) = reported
    assert first_answer.ANSWER in line
