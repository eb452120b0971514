"""bench/noise.py: what it asks, and the table of what was kept."""

from pathlib import Path

from rich.console import Console

import noise
from evidence.noisy_runs import noisy_runs
from webdyno.comparison import judge


def found(name: str, kind: str, pair: str) -> noise.Found:
    kept = {
        "noise": kind,
        "pair": pair,
        "at": "2026-11-28T14:00:00Z",
        "machine": "m",
        "commit": "c",
        "took_s": 45.0,
    }
    data, _ = noisy_runs()[name]
    return noise.Found(noise.Kept.model_validate(kept), judge(data))


def test_runs_are_counted_by_kind_of_noise_and_metric() -> None:
    runs = [found("r-315-1", "crowd", "closed-1.05"), found("r-300-3", "crowd", "closed-1")]
    console = Console(width=110, record=True)
    console.print(noise.table(runs, held_out=False))
    rows = [line for line in console.export_text().splitlines() if "crowd" in line]
    cells = [cell.strip() for cell in rows[0].split("│")[1:-1]]
    assert cells[:3] == ["crowd", noise.THROUGHPUT, "2"]
    assert cells[3] == "2"
    assert cells[5:] == ["0 of 1", "1 of 1", "45"]
    assert len(rows) == 2


def test_of_different_programs_quiet_runs_report_the_truth() -> None:
    quiet = found("n-1", "none", "different")
    loud = found("n-2", "crowd", "different")
    every = [quiet, loud]
    interval = quiet.interval(noise.THROUGHPUT)
    assert interval
    assert noise._truth(loud.kept, every, noise.THROUGHPUT) == interval.estimate
    assert noise._truth(loud.kept, [loud], noise.THROUGHPUT) is None


def test_only_held_out_kinds_are_shown_when_asked_for() -> None:
    console = Console(width=110, record=True)
    console.print(noise.table([found("r-300-3", "crowd", "closed-1")], held_out=True))
    assert "crowd" not in console.export_text()


def test_nothing_kept_is_an_empty_table(tmp_path: Path) -> None:
    assert not list(noise._judged(tmp_path))
