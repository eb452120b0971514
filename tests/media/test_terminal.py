"""The report in the terminal: the same text for plain runs and sweeps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from builders import SimulatedRun
from report import comparisons, questions, runs, sweeps
from report.approved import assert_as_approved
from report.in_terminal import in_terminal
from webdyno.media import document as doc
from webdyno.report.brief import in_full

PAGE = Path("/runs/2026-03-14-static-hello/report.html")


def printed(run: SimulatedRun, *, width: int = 100, terminal: bool = False) -> str:
    below = [("Report", str(PAGE))]
    return in_terminal(in_full(runs.seen(run)), width, below, coloured=terminal)


@pytest.mark.parametrize("make", [*runs.ALL, *sweeps.SWEEPS], ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_are_never_longer_than_the_terminal_or_100_columns(
    make: runs.Make, width: int
) -> None:
    lines = printed(make(), width=width).splitlines()
    assert max(cell_len(line) for line in lines) <= min(width, 100)


@pytest.mark.parametrize(
    "make",
    [
        comparisons.decided,
        comparisons.interference,
        comparisons.piloted,
        questions.ranking,
        questions.tuned,
        questions.capacities,
        sweeps.two_factors,
        comparisons.invalid,
        sweeps.broken_point,
        comparisons.no_round,
    ],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("width", [80, 100])
def test_what_is_printed_reads_as_it_was_last_approved(make: runs.Make, width: int) -> None:
    assert_as_approved(f"{make.__name__}-{width}", printed(make(), width=width))


def test_a_verdict_comes_with_its_evidence() -> None:
    report = printed(comparisons.decided())
    assert "▲ nginx is FASTER: 1.91× the throughput" in report
    rate = next(line for line in report.splitlines() if line.startswith("  nginx "))
    assert "×" in rate
    assert rate.rstrip().endswith("faster")
    assert "Seed" in report
    assert str(PAGE) in report


def test_what_decides_comes_first_and_the_rest_is_not_shouted() -> None:
    report = printed(comparisons.decided())
    answer, alongside = report.split("Other metrics")
    assert "Throughput" in answer
    assert "Size of a response" not in answer
    assert "Size of a response" in alongside
    assert not set("▲▼") & set(alongside)
    assert "faster" not in alongside


def test_the_same_figures_in_sentence_and_table() -> None:
    report = " ".join(printed(comparisons.decided()).split())
    said = re.search(r"FASTER: ([\d.]+×) .*?95% CI ([\d.–]+)×", report)
    assert said
    assert f"{said[1]} {said[2]} ▲ faster" in report


def test_the_interval_of_the_worst_case_stands_next_to_that_of_sampling() -> None:
    interfered = printed(comparisons.interference())
    assert re.search(r"ratio +95% CI +worst case +verdict", interfered)
    assert re.search(r"× +1\.\d+–1\.\d+ +1\.\d+–1\.\d+ +▲ faster", interfered)
    assert "worst case" not in printed(comparisons.decided())


def test_what_variants_answered_differently_is_reported() -> None:
    report = printed(comparisons.decided())
    assert "Differences found in the pre-flight check" in report
    assert re.search(r'ETag +apache-event: "d-64d0"; nginx: —', report)


def test_invalid_names_cause_and_fix() -> None:
    report = printed(comparisons.invalid())
    assert "INVALID" in report
    assert "variant apache" in report.lower()
    assert "404" in report
    assert "\nDo " in report


def test_inconclusive_says_what_is_still_needed() -> None:
    assert "more rounds" in printed(comparisons.inconclusive())


def test_every_point_is_in_one_table() -> None:
    reported = printed(sweeps.two_factors())
    assert re.search(r"connections +keepalive +value", reported)
    rows = re.findall(r"^  (\d+) +(always|never) +nginx .*×.* faster", reported, re.MULTILINE)
    assert {("8", "always"), ("64", "never")} <= set(rows)
    assert "Varied" in reported


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b[" in printed(comparisons.decided(), terminal=True)
    assert "\x1b[" not in printed(comparisons.decided())


def test_long_names_above_figures_give_way_before_those_of_rows() -> None:
    urls = [f"url:http://127.0.0.1:{port}" for port in (33775, 42437)]
    columns: dict[str, doc.Kind] = {"metric": "name", **dict.fromkeys(urls, "value")}
    columns |= {"ratio": "ratio", "95% CI": "range", "verdict": "verdict"}
    row: list[doc.Cell | str] = ["Throughput, req/s", "5,200", "4,500", "0.94×", "0.57–1.55"]
    table = doc.simple_table(columns, [[*row, "? inconclusive"]])
    reported = in_terminal(doc.Document("", "", [table]), 80)
    assert re.search(r"^Throughput, req/s .*\? inconclusive *$", reported, re.MULTILINE)


def test_markup_in_names_is_text() -> None:
    reported = printed(sweeps.hostile_markup())
    for text in sweeps.MARKUP:
        assert text in reported.replace("\n", "")


def test_what_draws_charts_is_not_imported_for_the_terminal() -> None:
    program = (
        "import sys, webdyno.report.brief, webdyno.media.terminal; print('altair' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "False\n"
