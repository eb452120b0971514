"""Servers that have little to do at full speed: throughput then says nothing of their CPU time."""

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from questions.gate.test_decide import gate_run, judged_whole
from report import comparisons, runs
from validity.broken import readings_with
from webdyno.core.load import Load
from webdyno.core.records import SlotRecord
from webdyno.evidence.busy import are_mostly_idle, busy_by_variant
from webdyno.report.card import card
from webdyno.report.point_facts import point_facts

IDLE = SimulatedVariant(throughput_rps=4_000)
"""On two CPUs, of which that keeps 0.08 busy."""
ONE_THREAD = SimulatedVariant(throughput_rps=40_000)
"""That keeps 0.8 CPUs busy, as a thread does that can't do more."""


def is_idle(run: SimulatedRun) -> bool:
    return are_mostly_idle(run.data, busy_by_variant(run.data))


@pytest.mark.parametrize(
    ("other", "idle"), [(SimulatedVariant(throughput_rps=2_000), True), (ONE_THREAD, False)]
)
def test_servers_are_idle_where_none_keeps_half_a_cpu_busy(
    other: SimulatedVariant, *, idle: bool
) -> None:
    assert is_idle(simulated_run({"node": other, "nginx": IDLE})) is idle


@pytest.mark.parametrize("load", [Load(loop="open", rate_per_s=4_000), Load(think_s=0.1)])
def test_what_the_load_asks_for_is_no_wait_of_theirs(load: Load) -> None:
    run = simulated_run({"node": IDLE, "nginx": IDLE})
    head = run.head.replace(experiment=run.head.experiment.replace(load=load))
    assert not is_idle(SimulatedRun(head, run.records))


def test_comparison_and_card_say_so() -> None:
    view = runs.seen(simulated_run({"node": SimulatedVariant(throughput_rps=2_000), "nginx": IDLE}))
    words = "servers mostly idle (2% to 4% busy): what they or the client wait for sets throughput"
    assert words in dict(point_facts(view.points[0]))["Load"]
    assert words in dict(card(view))["What it holds for"]
    assert "idle" not in dict(point_facts(runs.seen(comparisons.decided()).points[0]))["Load"]


def test_a_gate_that_does_not_pass_has_a_note() -> None:
    slower = SimulatedVariant(throughput_rps=2_000)
    (note,) = judged_whole(gate_run(slower, baseline=IDLE, again=IDLE).whole).notes
    assert note.startswith("/hello.txt: servers mostly idle (2% to 4% busy): ")
    assert not judged_whole(gate_run(IDLE, baseline=IDLE, again=IDLE).whole).notes
    assert not judged_whole(gate_run(ONE_THREAD).whole).notes


def test_a_gate_says_what_others_took() -> None:
    run = gate_run(SimulatedVariant(server_cpu_us=26))
    taken = readings_with(host={"servers": {"steal_s": 0.5}})
    records = [taken(it) if isinstance(it, SlotRecord) else it for it in run.records]
    notes = judged_whole(SimulatedRun(run.head, records).whole).notes
    assert any("% of the servers' CPUs, so only ratios count" in note for note in notes), notes
