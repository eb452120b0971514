from builders import SimulatedRun, machine
from judge.validity.broken import readings_with, run_with
from report import runs
from webdyno.judge import judge
from webdyno.model.experiment import Arm
from webdyno.model.readings import ServerStatus
from webdyno.model.records import SlotRecord
from webdyno.report.facts import cpu_split, how_measured, machine_facts


def facts(run: SimulatedRun) -> dict[str, str]:
    return dict(how_measured(run.head, run.records, judge(run.head, run.records).blocks))


def test_what_a_reader_needs_to_judge_a_run() -> None:
    told = facts(runs.decided())
    assert {"Blocks", "Paths", "Load", "CPUs", "Stop rule", "Seed", "Load generator"} <= set(told)
    assert told["Seed"] == "1"
    assert told["Server CPU read from"] == "cgroup-v2"


def test_nothing_is_said_of_slots_that_there_are_not() -> None:
    assert "Valid answers" not in facts(runs.no_block())


def test_what_servers_counted_stands_beside_what_was_sent() -> None:
    status = {"apache": ServerStatus(requests=1_000)}
    run = run_with(readings_with(status=status, front="apache"))
    slots = [slot for slot in run.records if isinstance(slot, SlotRecord) and slot.readings]
    sent = sum(slot.load.requests.sent or 0 for slot in slots)
    told = facts(run)["Servers' own counts"]
    assert told.startswith(f"apache counted {1_000 * len(slots):,} of {sent:,}")
    assert "Servers' own counts" not in facts(runs.decided())


def test_arms_with_paths_of_their_own_are_named() -> None:
    run = runs.no_block()
    arms = run.head.experiment.arms | {"apache": Arm(stack="apache-event", paths=["/1MB.txt"])}
    experiment = run.head.experiment.model_copy(update={"arms": arms})
    head = run.head.model_copy(update={"experiment": experiment})
    told = dict(how_measured(head, run.records, judge(head, run.records).blocks))
    assert told["Paths"] == "/hello.txt; apache: /1MB.txt"


def test_the_rest_is_named_only_where_it_is_nobody_elses() -> None:
    split = machine().split
    assert cpu_split(split) == "servers on 0-1, client on 2-3"
    assert "4-7 left to the rest" in cpu_split(split.model_copy(update={"rest": [4, 5, 6, 7]}))
    assert "left to" not in cpu_split(split.model_copy(update={"rest": [2, 3]}))
    assert "only indicative" in cpu_split(split.model_copy(update={"shared": True}))


def test_what_is_not_known_of_the_machine_is_left_out() -> None:
    assert "CPU governor" not in dict(machine_facts(machine()))
    powersave = machine().model_copy(update={"governor": "powersave"})
    assert dict(machine_facts(powersave))["CPU governor"] == "powersave"
