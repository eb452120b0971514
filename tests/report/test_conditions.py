import pytest

from builders import SimulatedRun, machine
from report import comparisons, runs, sweeps
from validity.broken import load_with, readings_with, run_with
from webdyno.comparison import judge
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load, SlowReaders
from webdyno.core.readings import ServerStatus
from webdyno.core.records import SlotRecord
from webdyno.core.request import WrittenRequest
from webdyno.core.variant import Variant
from webdyno.evidence.point_data import RunData
from webdyno.report.conditions import (
    cpu_split,
    how_measured,
    load_words,
    machine_facts,
    variant_words,
)


def facts(run: SimulatedRun) -> dict[str, str]:
    return dict(how_measured(run.whole, [judge(run.data)]))


def test_what_a_reader_needs_to_judge_a_run() -> None:
    reported = facts(comparisons.decided())
    assert {"Rounds", "Paths", "Load", "CPUs", "Stop rule", "Seed", "Load generator"} <= set(
        reported
    )
    assert reported["Seed"] == "1"
    assert reported["Server CPU read from"] == "cgroup-v2"


def test_nothing_is_said_of_slots_that_there_are_not() -> None:
    assert "Valid responses" not in facts(comparisons.no_round())


def test_what_servers_counted_stands_next_to_what_was_sent() -> None:
    status = {"apache": ServerStatus(requests=1_000)}
    run = run_with(readings_with(status=status, front="apache"))
    slots = [slot for slot in run.records if isinstance(slot, SlotRecord) and slot.readings]
    sent = sum(slot.load.all_of_it.sent or 0 for slot in slots)
    reported = facts(run)["Servers' own counts"]
    assert reported.startswith(f"apache counted {1_000 * len(slots):,} of {sent:,}")
    assert "Servers' own counts" not in facts(comparisons.decided())


def test_how_late_requests_left_is_reported_of_open_loops() -> None:
    of = {"requests": {"sent": 500}, "send_delay_us": {"p99": 198.2}}
    lagging = run_with(load_with(loop="open", client={"wake_ups": 100}, **of))
    reported = facts(lagging)["Requests were sent"]
    assert reported == "99% of them within 198 µs of when they were due, 5 at each wake-up"
    others = run_with(load_with(loop="open", **of))
    assert "wake-up" not in facts(others)["Requests were sent"]
    assert "Requests were sent" not in facts(comparisons.decided())


def test_variants_with_paths_of_their_own_are_named() -> None:
    run = comparisons.no_round()
    variants = run.head.experiment.variants | {
        "apache": Variant(stack="apache-event", paths=["/1MB.txt"])
    }
    experiment = run.head.experiment.model_copy(update={"variants": variants})
    head = run.head.model_copy(update={"experiment": experiment})
    reported = dict(how_measured(RunData(head, run.records), [judge(run.data)]))
    assert reported["Paths"] == "/hello.txt; apache: /1MB.txt"


def test_of_very_many_paths_the_first_are_named() -> None:
    run = comparisons.no_round()
    requests = [WrittenRequest(path=f"/{number}") for number in range(1_020)]
    asked = {"requests": requests, "load": Load()}
    experiment = run.head.experiment.model_copy(update=asked)
    whole = RunData(run.head.model_copy(update={"experiment": experiment}), run.records)
    reported = dict(how_measured(whole, [judge(run.data)]))["Paths"]
    assert reported.startswith("/0, /1, ")
    assert reported.endswith(", /19 and 1,000 more")


def test_the_rest_is_named_only_where_it_is_nobody_elses() -> None:
    split = machine().split
    assert cpu_split(split) == "servers on 0-1, client on 2-3"
    assert "4-7 left to the rest" in cpu_split(split.model_copy(update={"rest": [4, 5, 6, 7]}))
    assert "left to" not in cpu_split(split.model_copy(update={"rest": [2, 3]}))
    assert "only indicative" in cpu_split(split.model_copy(update={"shared": True}))


def test_what_is_not_known_of_the_machine_is_excluded() -> None:
    assert "CPU governor" not in dict(machine_facts(machine()))
    powersave = machine().model_copy(update={"governor": "powersave"})
    assert dict(machine_facts(powersave))["CPU governor"] == "powersave"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (
            Load(),
            "closed loop, 64 connections, keep-alive always, timeout 5 s",
        ),
        (
            Load(loop="open", rate_per_s=2_000, keepalive=1, send_delay_budget_s=2e-4),
            (
                "open loop, 2,000 requests due per second, at random (Poisson), sent up to 200 µs "
                "later, at most 64 connections, keep-alive for 1 request, timeout 5 s"
            ),
        ),
        (
            Load(loop="open", rate_per_s=500, burst=50, arrivals="constant"),
            (
                "open loop, 500 requests due per second, evenly spaced, 50 at once, at most 64 "
                "connections, keep-alive always, timeout 5 s"
            ),
        ),
        (
            Load(loop="open", rate_per_connection=2),
            (
                "open loop, 2 requests due per second and connection, at random (Poisson), "
                "64 connections, keep-alive always, timeout 5 s"
            ),
        ),
        (
            Load(connection_ramp_s=20, kernel_times=True),
            (
                "closed loop, responses timed by the kernel, 64 connections, one after the other "
                "within 20 s, keep-alive always, timeout 5 s"
            ),
        ),
        (
            Load(think_s=0.5, idle_connections=9, zipf=0.8),
            (
                "closed loop, 64 connections, mean pause of 0.5 s before the next "
                "request, keep-alive always, paths by Zipf's law with exponent 0.8, "
                "9 idle connections, timeout 5 s"
            ),
        ),
        (
            Load(loop="open", rate_per_s=500, connections=9, broadcast=True),
            (
                "open loop, 500 requests due per second, at random (Poisson), 9 connections, one "
                "more sends to all, keep-alive always, timeout 5 s"
            ),
        ),
        (
            Load(headers={"Accept-Encoding": "gzip"}),
            "closed loop, 64 connections, keep-alive always, timeout 5 s, Accept-Encoding: gzip",
        ),
        (
            Load(slow_readers=SlowReaders(connections=2, bytes_per_s=2048)),
            (
                "closed loop, 64 connections, keep-alive always, "
                "2 slow readers at 2.0 KiB/s, timeout 5 s"
            ),
        ),
    ],
)
def test_loads_in_words(load: Load, said: str) -> None:
    assert load_words(load) == said


def test_settings_of_variants_in_words() -> None:
    variants = {
        "small": Variant(stack="nginx", settings={"sendfile": False}, memory=64 * 2**20, cpus=1),
        "plain": Variant(stack="nginx"),
    }
    experiment = Experiment(title="", question="", site="static", variants=variants)
    assert variant_words(experiment) == [
        "small: sendfile = false, at most 64 MiB of memory, on 1 CPU"
    ]


def test_what_is_varied_is_not_reported_as_if_it_were_one() -> None:
    reported = dict(runs.seen(sweeps.connections()).how)
    assert reported["Load"].endswith("; but for what is varied")
    assert reported["Paths"] == "/hello.txt"
    assert "Paths" not in dict(runs.seen(sweeps.hostile_markup()).how)
    assert "varied" not in dict(runs.seen(comparisons.decided()).how)["Load"]
