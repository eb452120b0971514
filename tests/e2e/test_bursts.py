"""Warm-ups in bursts, of servers whose compiler gets no CPU time while they are busy."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from e2e.commands import run_rounds, slots
from webdyno.core.looks import BURST_PAUSE_S, BURST_S
from webdyno.core.records import PilotRecord
from webdyno.measure.folder import RunFolder

pytestmark = [pytest.mark.measures, pytest.mark.long]

SERVER = Path(__file__).parent / "starved/server.py"
COMPILER_S = 0.1
"""Of CPU time: a fifth of a pause."""


def pilots_of(tmp_path: Path, *arguments: str) -> tuple[str, PilotRecord, PilotRecord]:
    """Compare a server that its compiler makes twice as fast with one that it doesn't."""
    faster, alike = (
        f"cmd:{sys.executable} {SERVER} $PORT {COMPILER_S} {times}" for times in (2, 1)
    )
    load = ("--set=load.connections=8", "--time=3min")
    reported = run_rounds(1, "compare", faster, alike, *load, *arguments, folder=tmp_path)
    run = RunFolder.open(tmp_path / "run")
    found = {it.variant: it for it in run.records() if isinstance(it, PilotRecord)}
    baseline, other = run.head.experiment.variants
    return reported, found[other], found[baseline]


def skip_at_interference(pilot: PilotRecord) -> None:
    """A server that others leave little of its CPU compiles as little in pauses as under load."""
    rate_rps = sum(pilot.responses) / (len(pilot.responses) * pilot.window_s)
    if rate_rps < 300:
        pytest.skip(f"it had {rate_rps / 1000:.0%} of its CPU")


def test_pauses_are_taken_where_they_make_faster_and_only_there(tmp_path: Path) -> None:
    reported, faster, alike = pilots_of(tmp_path)
    if not faster.found.in_bursts:
        skip_at_interference(faster)
    assert faster.found.in_bursts
    assert faster.bursts
    assert faster.bursts.summary in " ".join(reported.split())
    assert "than under continuous load" in faster.bursts.summary
    bursts = [
        it
        for it in slots(RunFolder.open(tmp_path / "run"))
        if it.variant == faster.variant and it.phase == "warmup" and it.round == 1
    ]
    assert [it.load.measured_s for it in bursts] == pytest.approx(
        [BURST_S] * len(faster.bursts.bursts), abs=0.05
    )
    starts = [it.started_at for it in bursts]
    assert all(
        (later - earlier).total_seconds() >= BURST_S + BURST_PAUSE_S
        for earlier, later in pairwise(starts)
    )
    assert not alike.found.in_bursts
    assert alike.bursts is None or not alike.bursts.summary
    assert reported.count("in bursts") == 1


def test_bursts_can_be_excluded(tmp_path: Path) -> None:
    reported, *found = pilots_of(tmp_path, "--set=measure.warmup_bursts=off")
    assert [it.bursts for it in found] == [None, None]
    assert "in bursts" not in reported
