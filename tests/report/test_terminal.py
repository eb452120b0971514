from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from builders import SimulatedRun
from report import runs
from webdyno.judge import judge
from webdyno.report import print_report

FOLDER = Path("/runs/2026-03-14-static-hello")


def printed(run: SimulatedRun, *, width: int = 100, terminal: bool = False) -> str:
    output = StringIO()
    console = Console(file=output, width=width, color_system="standard" if terminal else None)
    print_report(console, FOLDER, run.head, run.records, judge(run.head, run.records))
    return output.getvalue()


@pytest.mark.parametrize("make", runs.ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_lines_are_never_longer_than_the_terminal_or_100_columns(
    make: runs.Make, width: int
) -> None:
    lines = printed(make(), width=width).splitlines()
    assert max(cell_len(line) for line in lines) <= min(width, 100)


def test_a_verdict_comes_with_its_evidence() -> None:
    report = printed(runs.decided())
    assert "FASTER" in report
    assert "nginx answers" in report
    rate = next(line for line in report.splitlines() if line.startswith("  nginx "))
    assert "×" in rate
    assert rate.rstrip().endswith("faster")
    assert "Seed" in report
    assert str(FOLDER / "report.html") in report


def test_less_cpu_time_is_better_not_faster() -> None:
    report = printed(runs.decided())
    cpu = report[report.index("Server CPU") : report.index("Response time")]
    assert "better" in cpu
    assert "faster" not in cpu


def test_invalid_names_cause_and_remedy() -> None:
    report = printed(runs.invalid())
    assert "INVALID" in report
    assert "arm apache" in report
    assert "404" in report
    assert "→" in report


def test_undecided_says_what_is_still_needed() -> None:
    assert "more block" in printed(runs.undecided())


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b[" in printed(runs.decided(), terminal=True)
    assert "\x1b[" not in printed(runs.decided())


def test_markup_in_names_is_text() -> None:
    head = runs.decided().head
    experiment = head.experiment.model_copy(update={"title": "[red]hot[/red] [link=x]y"})
    run = SimulatedRun(head.model_copy(update={"experiment": experiment}), [])
    assert "[red]hot[/red] [link=x]y" in printed(run)
