"""What real servers cost at a given rate and at rest, as `webdyno compare --rate --idle` says."""

import sys
from functools import partial
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, run_rounds, webdyno, webdyno_here
from webdyno.comparison import judge
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.records import InstructionsRecord, RestRecord
from webdyno.launch.caller import LineProgress
from webdyno.measure.folder import RunFolder
from webdyno.measure.session import begin_run, measure_run
from webdyno.probes.instructions import Event, InstructionCounter

SLOW = """
import asyncio, sys

ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 5\\r\\n\\r\\nhello"
worker = asyncio.Lock()

async def answer(reader, writer):
    while await reader.readuntil(b"\\r\\n\\r\\n"):
        async with worker:
            await asyncio.sleep(float(sys.argv[2]))
        writer.write(ANSWER)

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""
"""One request after the other, each of which sleeps."""
CPU_CLOCK = Event(1, 1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU time."""


def test_a_rate_gives_costs(tmp_path: Path) -> None:
    pair = ("nginx", "apache-event", "--rate=300")
    done = webdyno("compare", *pair, *QUICK, "--output=run", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr  # a machine that is busy answers too few of them
    folder = RunFolder.open(tmp_path / "run")
    judged = judge(folder.data().points[0])
    assert folder.head.experiment.load.rate_per_s == 300
    if done.returncode == 0:
        assert judged.costs
        assert all(0.005 < cost.cores_per_1000_rps.estimate < 5 for cost in judged.costs)
        assert "cores per 1,000 req/s" in done.stdout
        reported = (
            "Instructions per request: this machine has no counters",
            "instructions per req",
        )
        assert any(words in done.stdout for words in reported)
    assert left_behind(tmp_path) == []


def test_rest_and_open_connections_are_on_record(tmp_path: Path) -> None:
    resting = ("--rate=300", "--set=measure.rest_s=0.5")
    run_rounds(1, "compare", "nginx", "apache-event", *resting, *QUICK, folder=tmp_path)
    looks = [it for it in RunFolder.open(tmp_path / "run").records() if isinstance(it, RestRecord)]
    assert {look.variant for look in looks} == {"nginx", "apache-event"}
    for look in looks:
        assert look.rested_s >= 0.5
        assert look.cpu_s < look.rested_s
        assert look.memory_bytes
        assert look.memory_with_held_bytes
    assert max(look.held for look in looks) > 0  # how many is a matter of time


@pytest.mark.long
def test_instructions_are_counted_in_slots_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the servers' CPU time as the kernel counts it, which no machine lacks."""
    counter = partial(InstructionCounter, event=CPU_CLOCK)
    monkeypatch.setattr("webdyno.measure.local_backend.InstructionCounter", counter)
    catalogue = Catalogue.load()
    asked = {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": {"one": {"stack": "nginx"}, "other": {"stack": "nginx"}},
        "load": {"loop": "open", "rate_per_s": 300.0},
        "measure": {"decide_on": "server_cpu_us", "slot_s": 0.2, "warmup_s": 0.0, "seed": 1},
    }
    experiment = read_experiment(CommandLine(asked, {}), [], catalogue)
    with begin_run("counted", experiment, catalogue, tmp_path / "run") as folder:
        measure_run(folder, LineProgress(folder.head, print), rounds={0: 6})
        records = [it for it in folder.records() if isinstance(it, InstructionsRecord)]
    assert [(it.round, it.variant, it.fault) for it in records] == [
        (number, name, "") for number in (1, 2, 3) for name in ("one", "other")
    ]
    for record in records:
        assert record.responses > 20
        assert record.instructions
        assert 1_000 < record.instructions / record.responses < 10_000_000


@pytest.mark.long
def test_what_is_asked_for_too_much_has_no_cost(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    quick, slow = (
        f"{name}=cmd:{sys.executable} slow.py $PORT {sleep_s}"
        for name, sleep_s in (("quick", 0), ("slow", 0.01))
    )
    long_enough = ("--rate=300", *QUICK[1:], "--set=measure.slot_s=0.4")
    done = webdyno("compare", slow, quick, *long_enough, folder=tmp_path)
    assert done.returncode == 1
    reported = " ".join(done.stdout.split())
    assert "slow: 300 req/s were offered, but " in reported
    assert "cores per 1,000" not in reported


def test_what_is_no_rate_is_refused(tmp_path: Path) -> None:
    refusals = {
        ("--rate=500,",): "--rate 500,: should be a rate, or several such as 500,2000",
        ("--rate=2,000",): "--rate 2,000: is read as several rates; write 2000 for two thousand",
        ("--rate=fast",): "--rate fast",
        ("--rate=0",): "--rate 0",
        ("--rate=500,500",): "--rate 500,500",
        ("--rate=500", "--set=load.loop=closed"): "is about the same setting; give one of them",
        ("--rate=500", "--vary=load.rate_per_s=1,2"): "is about the same setting; give one of them",
        ("--idle", "--target-is-mine"): "are about servers here",
        ("--idle", "--set=measure.rest_s=3"): "is about the same setting; give one of them",
    }
    for flags, says in refusals.items():
        done = webdyno_here("compare", "nginx", "apache-event", *flags, folder=tmp_path)
        assert done.returncode == 2, flags
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
