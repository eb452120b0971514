"""Adjustments with real servers: the cause planted, the adjustment carried out, the verdict given.

Slots are shorter than users' are, so that six rounds after the adjustment take seconds.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from webdyno.comparison import judge
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.judgement import Verdict
from webdyno.core.records import AdjustmentRecord
from webdyno.launch.caller import LineProgress
from webdyno.measure import pilot
from webdyno.measure.folder import RunFolder
from webdyno.measure.session import begin_run, measure_run
from webdyno.planning import settings as slots
from webdyno.validity import SLOT_RULES, warnings_of

pytestmark = pytest.mark.measures

FAULTY = Path(__file__).parent / "faulty"
Measuring = Callable[..., RunFolder]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measuring:
    """Measure variant odd, which has a fault, against a right one, in times that don't suit it."""
    monkeypatch.setattr(pilot, "needs_pilot", lambda _: False)
    monkeypatch.setattr(slots, "WARMUP_S", 0.0)

    def run(
        fault: str,
        window_s: float,
        load: Mapping[str, object] = {"connections": 4},
        **asked: object,
    ) -> RunFolder:
        monkeypatch.setattr(slots, "WINDOW_S", window_s)
        reported = {
            "title": "t",
            "question": "q?",
            "site": "static",
            "variants": {
                "right": {"stack": "faulty"},
                "odd": {"stack": "faulty", "settings": {"fault": fault}},
            },
            "load": load,
            "measure": {"precision": 0.5, "budget_s": 60, "max_rounds": 12, "seed": 1, **asked},
        }
        catalogue = Catalogue.load([FAULTY])
        experiment = read_experiment(CommandLine(reported, {}), [], catalogue)
        with begin_run("adjustments", experiment, catalogue, tmp_path / "run") as folder:
            measure_run(folder, LineProgress(folder.head, print))
            return folder

    return run


def adjustments(folder: RunFolder) -> list[tuple[str, str | None]]:
    return [(it.rule, it.variant) for it in folder.records() if isinstance(it, AdjustmentRecord)]


def verdict(folder: RunFolder) -> Verdict:
    return judge(folder.data().points[0]).verdict


def broken(folder: RunFolder) -> set[tuple[str, str | None]]:
    """What is still wrong in the rounds that count."""
    return {(it.rule, it.variant) for it in warnings_of(folder.data().points[0])}


def skip_at_interference(folder: RunFolder, rule: str) -> None:
    """Trends are bounded, not adjusted, where other programs leave few slots to see them in."""
    slots = folder.data().points[0].slots
    rules = [rule for rule in SLOT_RULES.values() if rule.has_bias_bound]
    affected = [slot for slot in slots if any(rule.broken(slot) for rule in rules)]
    if (rule, "odd") not in adjustments(folder) and len(affected) > len(slots) / 3:
        pytest.skip("other programs had the servers' CPUs")


def test_a_slow_page_gets_longer_slots(measured: Measuring) -> None:
    folder = measured("slow-page", window_s=0.03, slots_per_variant=2)
    assert adjustments(folder) == [("no-responses", "odd")]
    assert verdict(folder) is Verdict.SLOWER


def test_a_slow_start_gets_a_longer_warm_up(measured: Measuring) -> None:
    folder = measured("slow-start", window_s=0.05, slots_per_variant=4)
    skip_at_interference(folder, "trend")
    assert ("trend", "odd") in adjustments(folder)
    assert verdict(folder) is not Verdict.INVALID


def test_a_slow_beginning_of_slots_gets_a_ramp_up(measured: Measuring) -> None:
    folder = measured("slow-after-rest", window_s=0.3, slots_per_variant=2)
    skip_at_interference(folder, "slot-trend")
    assert ("slot-trend", "odd") in adjustments(folder)
    assert ("slot-trend", "odd") not in broken(folder)
    assert verdict(folder) is not Verdict.INVALID


def test_servers_that_work_on_are_waited_for(measured: Measuring) -> None:
    folder = measured("works-on", window_s=0.1, slots_per_variant=2)
    assert adjustments(folder) == [("left-over-work", "right")]
    assert ("left-over-work", "right") not in broken(folder)
    assert verdict(folder) is not Verdict.INVALID


def test_a_percentile_gets_more_slots(measured: Measuring) -> None:
    # Who rests between requests doesn't keep the client busy with the variant that is right.
    load = {"connections": 45, "think_s": 0.02}
    folder = measured("slow-page", window_s=0.08, load=load, decide_on="latency_p99_us")
    # The variant that is right may have a trend on a busy machine.
    assert [it for it in adjustments(folder) if it[1] == "odd"] == [("few-samples", "odd")]
    assert verdict(folder) is Verdict.SLOWER
