"""A result in some twenty lines: what a terminal shows."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons, questions, runs, sweeps
from report.approved import assert_as_approved
from report.in_terminal import in_terminal
from validity.broken import readings_with
from webdyno.core.judgement import Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.records import SlotRecord
from webdyno.media import document as doc
from webdyno.report.brief import brief, said_once
from webdyno.report.headlines import next_steps
from webdyno.report.words import kind_words

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


def test_one_variant_of_a_long_name_is_named_by_its_beginning() -> None:
    name = "rev:feature/a-branch-whose-name-says-all-that-it-is-about"
    run = simulated_run({"nginx": SimulatedVariant(), name: SimulatedVariant()}, rounds=8)
    pressed = readings_with(host={"pressure": {"cpu_s": 0.3, "memory_s": 0.1, "io_s": 0.0}})
    records = [
        pressed(it) if isinstance(it, SlotRecord) and it.variant == name else it
        for it in run.records
    ]
    reported = " ".join(printed(SimulatedRun(run.head, records)).split())
    assert f"{name[:39]}…: programs waited for memory" in reported


def test_two_of_several_variants_are_not_called_both() -> None:
    names = [f"a variant of a rather long name {n}" for n in range(3)]
    run = simulated_run({name: SimulatedVariant() for name in names}, rounds=8)
    pressed = readings_with(host={"pressure": {"cpu_s": 0.3, "memory_s": 0.1, "io_s": 0.0}})
    for about, said in ((names[:2], "2 of 3 variants"), (names, "all 3 variants")):
        records = [
            pressed(it) if isinstance(it, SlotRecord) and it.variant in about else it
            for it in run.records
        ]
        reported = " ".join(printed(SimulatedRun(run.head, records)).split())
        assert f"{said}: programs waited for memory" in reported


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


def test_what_is_still_valid_has_a_headline_and_a_table() -> None:
    full = readings_with(network={"dropped": 50, "listen_drops": 70})
    reported = printed(two_of_which_one_needs_more(full))
    first, second = (line for line in reported.splitlines() if line.startswith(("✕", "▼")))
    assert first.startswith("✕ INVALID for throughput and latency: old and new: 1,600 connections")
    assert second.startswith("▼ Still valid: new needs MORE CPU per request: 3.01× (95% CI ")
    assert "\nDo  Raise the server's listen backlog" in reported
    assert re.search(r"CPU per request +60\.9 µs +20\.2 µs +3\.01× .*▼ worse", reported)
    assert re.search(r"Throughput, latency +✕ not valid", reported)


def test_metrics_are_named_by_their_kind_or_apart() -> None:
    rules = [METRICS[name] for name in ("server_cpu_us", "latency_p50_us", "latency_p99_us")]
    assert kind_words(rules) == ["CPU per request", "latency"]
    assert kind_words(rules[::2], {"latency"}) == ["CPU per request", "latency p99"]


def test_a_machine_that_is_too_noisy_is_said_with_what_is_certain_first() -> None:
    noisy = readings_with(host={"servers": {"busy_s": 1.9, "idle_s": 0.0, "steal_s": 0.95}})
    reported = printed(two_of_which_one_needs_more(noisy))
    assert reported.startswith("▼ new needs MORE CPU per request: 3.01× (95% CI from 2.92×), ")
    assert "? INCONCLUSIVE for throughput: it can't be judged on this machine: other " in reported
    assert "\nDo  Stop what else runs here" in reported
    assert "\nOr  If CPU per request is all that you need," in reported
    assert "Next" not in reported


def two_of_which_one_needs_more(change: Callable[[SlotRecord], SlotRecord]) -> SimulatedRun:
    variants = {"old": SimulatedVariant(), "new": SimulatedVariant(server_cpu_us=60)}
    run = simulated_run(variants, rounds=8)
    records = [change(it) if isinstance(it, SlotRecord) else it for it in run.records]
    return SimulatedRun(run.head, records)


def test_figures_that_do_not_count_stand_in_no_table() -> None:
    """The CPU time of a server that died was the least of all, and was quoted."""
    (row,) = (
        line for line in printed(questions.ranking(), width=120).splitlines() if "node  " in line
    )
    assert row.split() == ["—", "node", "—", "✕", "not", "valid", "—"]


def test_the_noise_line_says_whose_interval_it_widens() -> None:
    said = " ".join(printed(comparisons.interference()).split())
    assert "CI of throughput widened by up to 25%, of latency by more" in said


def test_a_ratio_that_is_no_quotient_of_its_columns_is_called_a_mean() -> None:
    """0.538× stood next to 40,900 and 76,300, whose quotient is 0.536."""
    assert "  mean  " in printed(questions.ranking(), width=120)
    assert "mean" not in printed(comparisons.decided())


def test_what_is_so_of_several_variants_stands_once_on_the_page() -> None:
    lines = ["variant a: it ran before", "variant b: it ran before", "variant b: it is full"]
    warning = doc.Callout(Verdict.INCONCLUSIVE, "rule", "note", lines, "Do it.")
    assert said_once(warning, {"a", "b"}).lines == [
        "variants a and b: it ran before",
        "variant b: it is full",
    ]
