"""The search for a capacity on real servers, whose capacity is known; and the bench's table."""

from pathlib import Path

import pytest
from rich.console import Console

import capacity
from bench.outcomes import outcome
from bench.searches import WITHIN_US, searched
from rig import lab
from rig.queues import capacity_of_mm1
from webdyno.core.base import Interval
from webdyno.core.capacity import Trial, capacity_of
from webdyno.core.judgement import Verdict
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder

SERVICE_US, COLLAPSE_RPS = 500, 1_000


@pytest.mark.measures
def test_a_round_finds_the_capacity_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials are short, so that only gross mistakes are seen: a tenth, or a server left down."""
    folder = one_round(
        tmp_path, monkeypatch, 20.0, lasting={}, collapsing={"collapse_rps": COLLAPSE_RPS}
    )
    lasting, collapsing = (trials(folder, variant) for variant in ("lasting", "collapsing"))
    assert capacity_of(lasting) == pytest.approx(1e6 / SERVICE_US, rel=0.1)
    assert capacity_of(collapsing) == pytest.approx(COLLAPSE_RPS, rel=0.1)
    assert {it.start for it in lasting} == {0}
    assert max(it.start for it in collapsing) > 0


def one_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget_s: float, **variants: dict[str, float]
) -> RunFolder:
    """Search in one round, with trials so short that it takes seconds."""
    fixed = {"service_us": SERVICE_US, "cost_us": 0, "workers": 1}
    reported = {
        "title": "t",
        "question": "q?",
        "site": "dialed",
        "variants": {
            name: {"stack": "dialed", "settings": fixed | settings}
            for name, settings in variants.items()
        },
        "capacity": {
            "slo": [f"p99<{WITHIN_US / 1000:g}ms"],
            "arrivals": "constant",
            "longest_trial_s": 0.5,
        },
        "load": {"timeout_s": 1.0},
        "measure": {"seed": 1, "budget_s": budget_s},
    }
    return searched(reported, 1, tmp_path / "run", monkeypatch)


def trials(folder: RunFolder, variant: str) -> list[Trial]:
    """What was tried with a variant."""
    slots = [it for it in folder.records() if isinstance(it, SlotRecord) and it.variant == variant]
    return [slot.trial for slot in slots if slot.trial]


def found(case: str, **values: Interval) -> lab.Outcome:
    return outcome(case, Verdict.FASTER, values=values)


def test_the_table_counts_what_holds() -> None:
    true_rps = capacity_of_mm1(1e-4, capacity.WITHIN_S, capacity.ALLOWED)
    right = Interval(low=true_rps * 0.98, estimate=true_rps * 1.01, high=true_rps * 1.03)
    wrong = right.model_copy(update={"high": true_rps * 0.99, "estimate": true_rps * 0.95})
    runs = [found("M/M/1", baseline=right), found("M/M/1", baseline=wrong)]
    assert [capacity.held(run) for run in runs] == [[True], [False]]
    assert capacity.errors(runs[0]) == pytest.approx([0.01])
    console = Console(record=True, width=100)
    console.print(capacity.table(runs))
    assert "1 of 2" in console.export_text()
