"""A result in some twenty lines: what a terminal shows."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from builders import SimulatedRun
from report import comparisons, questions, runs, sweeps
from report.approved import assert_as_approved
from report.in_terminal import in_terminal
from validity.broken import readings_with
from webdyno.core.records import SlotRecord
from webdyno.report.advice import next_steps
from webdyno.report.brief import brief

RUN = Path("runs/2026-03-14-static-hello")


def printed(run: SimulatedRun, *, width: int = 100) -> str:
    seen = runs.seen(run)
    below = [("Report", str(RUN / "report.html")), *next_steps(seen, RUN)]
    return in_terminal(brief(seen), width, below)


@pytest.mark.parametrize("make", [*runs.ALL, *sweeps.SWEEPS], ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_the_terminal(make: runs.Make, width: int) -> None:
    assert max(map(cell_len, printed(make(), width=width).splitlines())) <= width


@pytest.mark.parametrize(
    "make",
    [
        comparisons.decided,
        comparisons.interference,
        comparisons.inconclusive,
        questions.ranking,
        questions.tuned,
        questions.capacities,
        questions.costs,
        sweeps.rates,
        sweeps.two_factors,
        comparisons.invalid,
        sweeps.broken_point,
        comparisons.no_round,
        comparisons.censored,
        comparisons.several_variants,
        questions.gated,
    ],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("width", [80, 120])
def test_what_is_printed_reads_as_it_was_last_approved(make: runs.Make, width: int) -> None:
    assert_as_approved(f"brief-{make.__name__}-{width}", printed(make(), width=width))


def test_a_comparison_begins_with_the_verdict() -> None:
    lines = printed(comparisons.decided()).splitlines()
    assert lines[0].startswith("▲ nginx is FASTER: 1.91× the throughput of apache-event (95% CI ")


def test_the_same_figures_in_sentence_and_table() -> None:
    reported = printed(comparisons.decided())
    said = re.search(r"FASTER: ([\d.]+×) .*95% CI ([\d.–]+)×", reported)
    assert said
    assert re.search(rf"{re.escape(said[1])} +{re.escape(said[2])} +▲ better", reported)


def test_the_one_interval_is_that_on_which_the_verdict_rests() -> None:
    reported = printed(comparisons.interference())
    said = re.search(r"95% CI ([\d.–]+)×\)", reported)
    assert said
    assert re.search(rf"× +{re.escape(said[1])} +▲ better", reported)


def test_failed_requests_are_always_there() -> None:
    assert re.search(r"Failed requests +0 +0", printed(comparisons.decided()))


def test_latencies_are_in_the_unit_that_suits_them() -> None:
    assert re.search(r"797 µs +1\.52 ms", printed(comparisons.decided()))


def test_what_has_no_meaning_has_no_figures() -> None:
    reported = printed(comparisons.invalid())
    assert "INVALID" in reported
    assert "404" in reported
    assert "\nDo " in reported
    assert "×" not in reported


def test_inconclusive_says_what_would_decide() -> None:
    reported = printed(comparisons.inconclusive())
    assert "Known  The difference is between" in reported
    assert "should decide" in reported


def test_one_cause_is_said_once() -> None:
    assert printed(comparisons.no_round()).count("needs at least 6") == 1
    assert printed(comparisons.invalid()).count("expected") == 1


def test_what_holds_of_several_variants_is_said_once() -> None:
    run = comparisons.decided()
    pressed = readings_with(host={"pressure": {"cpu_s": 0.3, "memory_s": 0.1, "io_s": 0.0}})
    records = [pressed(it) if isinstance(it, SlotRecord) else it for it in run.records]
    reported = " ".join(printed(SimulatedRun(run.head, records)).split())
    assert reported.count("programs waited for memory") == 1
    assert "apache-event and nginx: programs waited for memory" in reported


def test_a_run_that_is_too_short_names_the_command_that_continues_it() -> None:
    reported = printed(comparisons.one_round())
    assert "few-rounds" not in reported
    assert f"Next    webdyno resume {RUN}" in reported


@pytest.mark.parametrize(
    "make", [comparisons.decided, comparisons.interference, comparisons.censored, questions.costs]
)
def test_the_table_follows_the_verdict_without_warnings_between(make: runs.Make) -> None:
    before_failures, _, _ = printed(make()).partition("Failed requests")
    assert "⚠" not in before_failures
