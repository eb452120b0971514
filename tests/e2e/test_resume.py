"""Runs that are killed or fail, and are resumed, end like runs that nobody interrupted."""

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders import point_data
from e2e.commands import (
    left_behind,
    master_processes,
    run_rounds,
    seeded,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from variants import further
from waiting import wait_until
from webdyno.config.catalogue import BUILT_IN
from webdyno.core.records import (
    IncidentRecord,
    LongLookRecord,
    Record,
    RoundRecord,
    SessionRecord,
    SlotRecord,
    StopRecord,
)
from webdyno.load.engine import find_loadgen
from webdyno.measure.folder import RunFolder

ROUNDS = 6


def short(fewest: int, most: int) -> tuple[str, ...]:
    """Make rounds as short as they can be, and so many of them."""
    return (
        "--set=measure.slot_s=0.05",
        "--set=measure.warmup_s=0.05",
        "--set=measure.slots_per_variant=2",
        f"--set=measure.min_rounds={fewest}",
        f"--set=measure.max_rounds={most}",
        "--set=measure.seed=7",
        # A client that is short of CPU, as next to other tests, says nothing about server CPU time.
        "--set=measure.decide_on=server_cpu_us",
    )


NO_LOOK = "--soak=0s"
"""Ten seconds of load on each variant would follow else, on all CPUs."""
SIX = (*short(ROUNDS, ROUNDS), NO_LOOK)


def structure(records: Sequence[Record]) -> list[tuple[int, list[str], list[tuple[int, str]]]]:
    """What doesn't depend on the machine's mood: rounds with their orders and slots."""
    return [
        (
            this_round.record.round,
            this_round.record.order,
            [(slot.slot, slot.variant) for slot in this_round.slots],
        )
        for this_round in point_data(records).rounds
    ]


@pytest.mark.parametrize("kills", [further(1), further(6)])
def test_a_run_killed_again_and_again_ends_like_an_uninterrupted_one(
    tmp_path: Path, kills: int
) -> None:
    moments = seeded("moments of kills")
    (calm := tmp_path / "calm").mkdir()
    (rough := tmp_path / "rough").mkdir()
    with started_webdyno("run", *SIX, "--output=run", folder=calm) as uninterrupted:
        arguments = ["run", *SIX, "--output=run"]
        for _ in range(kills):
            with started_webdyno(*arguments, folder=rough) as process:
                wait_for(rough / "run/slots.jsonl", lines=1)
                time.sleep(moments.uniform(0, 2.0))
                os.kill(process.pid, signal.SIGKILL)
            assert left_behind(rough) == []
            arguments = ["resume", "run"]
        finished = webdyno("resume", "run", folder=rough)
        uninterrupted.communicate(timeout=60)
    # 1: other tests on this machine can make a verdict invalid; that is not asked here.
    assert {finished.returncode, uninterrupted.returncode} <= {0, 1}, finished.stderr
    there, here = (RunFolder.open(folder / "run").records() for folder in (calm, rough))
    assert len(structure(there)) == ROUNDS
    assert structure(here) == structure(there)
    assert [it.round for it in here if isinstance(it, RoundRecord)] == list(range(1, ROUNDS + 1))
    assert any(isinstance(it, SlotRecord) and it.phase == "warmup" for it in here)
    assert left_behind(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("looks", [further(0), 1])
def test_a_long_look_that_was_killed_goes_on(tmp_path: Path, looks: int) -> None:
    six = short(ROUNDS, ROUNDS)
    with started_webdyno("run", *six, "--soak=4s", "--output=run", folder=tmp_path) as process:
        wait_for_kind(tmp_path, "stop", 1)
        wait_for_kind(tmp_path, "long-look", looks)
        os.kill(process.pid, signal.SIGKILL)
    done = webdyno("resume", "run", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    assert "come to its end" not in done.stderr + done.stdout
    records = RunFolder.open(tmp_path / "run").records()
    looked = [it for it in records if isinstance(it, LongLookRecord)]
    variants = RunFolder.open(tmp_path / "run").head.experiment.variants
    assert sorted(it.variant for it in looked) == sorted(variants)
    assert {it.ended_by for it in looked} == {"time"}
    assert "come to its end" in (again := webdyno("resume", "run", folder=tmp_path)).stderr, again
    assert left_behind(tmp_path) == []


def wait_for_kind(folder: Path, kind: str, count: int) -> None:
    """Wait until so many records of a kind are in the run of a test's folder."""
    file = folder / "run/slots.jsonl"
    wait_until(lambda: file.exists() and file.read_text().count(f'"kind":"{kind}"') >= count)


def incidents(folder: Path) -> list[IncidentRecord]:
    """What went wrong in the run of a test's folder."""
    records = RunFolder.open(folder / "run").records()
    return [record for record in records if isinstance(record, IncidentRecord)]


def finished_rounds(folder: Path) -> list[int]:
    """The rounds of the run in a test's folder, in their order."""
    records = RunFolder.open(folder / "run").records()
    return [record.round for record in records if isinstance(record, RoundRecord)]


def test_after_a_server_died_the_run_is_reported_to_go_on_and_does(tmp_path: Path) -> None:
    with started_webdyno("run", *SIX, "--output=run", folder=tmp_path) as process:
        wait_for(tmp_path / "run/slots.jsonl", 12)
        for pid in master_processes(tmp_path, b"nginx: master"):
            os.kill(pid, signal.SIGKILL)
        reported, _ = process.communicate(timeout=60)
    assert [incident.variant for incident in incidents(tmp_path)] == ["nginx"]
    assert "every finished slot is kept in run" in reported
    (hint,) = [line for line in reported.splitlines() if " resume run " in line]
    assert len(finished_rounds(tmp_path)) < 6

    goes_on = shlex.split(hint.partition("   continues")[0])
    done = webdyno(*goes_on[1:], folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    assert finished_rounds(tmp_path) == list(range(1, 7))
    records = RunFolder.open(tmp_path / "run").records()
    assert sum(isinstance(record, SessionRecord) for record in records) == 2
    after_rounds = [it for it in records if not isinstance(it, LongLookRecord)]
    assert isinstance(after_rounds[-1], StopRecord)
    assert left_behind(tmp_path) == []


FLAKY_ENGINE = """#!/bin/sh
if [ "$1" = serve ] && [ "$(ls {fails} | wc -l)" -gt 0 ]; then
    read -r order
    rm "{fails}/$(ls {fails} | head -n 1)"
    exit 7
fi
exec {engine} "$@"
"""


def flaky_engine(folder: Path, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an engine in the place of ours that dies in its first slot, so many times."""
    (fails := folder / "fails").mkdir()
    for number in range(failures):
        (fails / str(number)).touch()
    wrapper = folder / "loadgen"
    wrapper.write_text(FLAKY_ENGINE.format(fails=fails, engine=find_loadgen()))
    wrapper.chmod(0o755)
    monkeypatch.setenv("WEBDYNO_LOADGEN", str(wrapper))


def test_an_engine_that_ends_once_costs_its_round_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaky_engine(tmp_path, 1, monkeypatch)
    reported = run_rounds(2, "run", *SIX, folder=tmp_path)
    assert "ended unexpectedly (exit code 7); round 1 is begun again" in reported
    (incident,) = incidents(tmp_path)
    assert (incident.variant, incident.round) == (None, 1)
    assert finished_rounds(tmp_path)[:2] == [1, 2]


def test_an_engine_that_always_ends_is_reported_with_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaky_engine(tmp_path, 9, monkeypatch)
    done = webdyno("run", *SIX, "--output=run", folder=tmp_path)
    assert done.returncode == 3
    assert "ended unexpectedly (exit code 7)" in done.stderr
    assert "nothing was measured yet" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(incidents(tmp_path)) == 2
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_run_with_a_catalogue_of_ones_own_goes_on_and_is_repeated_from_its_folder(
    tmp_path: Path,
) -> None:
    own = tmp_path / "my catalog"
    shutil.copytree(BUILT_IN / "services/nginx", own / "services/odd")
    shutil.copytree(BUILT_IN / "stacks/nginx", own / "stacks/odd")
    stack = own / "stacks/odd/stack.toml"
    stack.write_text(stack.read_text().replace('service = "nginx"', 'service = "odd"'))
    arguments = (f"--catalog={own}", "--set=variants.nginx.stack=odd", "--output=my run", "--yes")
    with started_webdyno("run", *SIX, *arguments, folder=tmp_path) as process:
        wait_for(tmp_path / "my run/slots.jsonl", 5)
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=60)
    assert " resume 'my run'   continues" in reported
    shutil.rmtree(own)
    done = webdyno("resume", "my run", "--yes", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    folder = RunFolder.open(tmp_path / "my run")
    assert len(folder.data().points[0].rounds) == 6

    head = json.loads((folder.path / "run.json").read_text())
    head["machine"]["cpu_model"] = "another one"
    (folder.path / "run.json").write_text(json.dumps(head))
    refused = webdyno_here("resume", "my run", "--yes", folder=tmp_path)
    assert refused.returncode == 2
    assert "cpu_model: another one before" in refused.stderr
    again = shlex.split(refused.stderr.splitlines()[-1].partition("again: ")[2])[1:]
    with started_webdyno(*again, "--output=again", "--yes", folder=tmp_path) as process:
        wait_for(tmp_path / "again/slots.jsonl", 4)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert RunFolder.open(tmp_path / "again").head.experiment == folder.head.experiment


@pytest.mark.long
def test_a_finished_run_is_measured_further_when_asked(tmp_path: Path) -> None:
    # Two that are equal: a ratio far from 1 would be known well enough.
    equal = ("--set=variants.apache-event.stack=nginx", "--set=measure.precision=0.0001")
    quick = (*short(6, 7), NO_LOOK, *equal, "--set=measure.budget_s=1s")
    assert webdyno("run", *quick, "--output=run", folder=tmp_path).returncode in {0, 1}
    before = len(finished_rounds(tmp_path))
    again = webdyno_here("resume", "run", folder=tmp_path)
    assert "has come to its end" in again.stderr
    assert len(finished_rounds(tmp_path)) == before
    more = webdyno("resume", "run", "--time=5m", folder=tmp_path)
    assert more.returncode in {0, 1}, more.stderr
    assert len(finished_rounds(tmp_path)) == before + 1
