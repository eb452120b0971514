"""`webdyno run` on real servers: verdicts, refusals, interruptions."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from builders import point_data
from e2e.commands import (
    QUICK,
    left_behind,
    seeded,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from variants import further
from webdyno.comparison import decide, judge
from webdyno.comparison.stop import SPARE_ROUNDS
from webdyno.config.catalogue import BUILT_IN
from webdyno.core.judgement import Verdict
from webdyno.core.records import RoundRecord, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.measure.folder import RunFolder

CAUSED_BY_NEIGHBOURS = {
    "client-limited",
    "client-cpu-starved",
    "client-stalled",
    "exclusion-matters",
    "other-work",
    "steal",
    "few-samples",
    "trend",
}
"""Rules that other programs on the machine can break; nothing else is wrong with the first duel."""


@pytest.mark.measures
def test_the_first_duel_ends_with_a_verdict_and_a_report(tmp_path: Path) -> None:
    done = webdyno("run", "static-hello", *QUICK, "--output=run", "--report", folder=tmp_path)
    folder = RunFolder.open(tmp_path / "run")
    records = folder.records()
    rounds = [record for record in records if isinstance(record, RoundRecord)]
    slots = [record for record in records if isinstance(record, SlotRecord)]
    judgement = judge(PointData.of(folder.head, records))
    assert {warning.rule for warning in judgement.warnings} <= CAUSED_BY_NEIGHBOURS
    # A neighbour can invalidate rounds, which are replaced, or all slots of a variant, which ends a
    # run.
    stop = decide(point_data(records, folder.head.experiment), elapsed_s=0.0)
    assert 6 <= len(rounds) <= 6 + SPARE_ROUNDS or (
        stop is not None and stop.reason == "nothing-valid"
    )
    assert len(slots) == len(rounds) * 4
    assert {slot.load.failures.total for slot in slots} == {0}
    assert all(slot.servers.cpu_s > 0 for slot in slots)
    # On a busy machine the verdict on the throughput may rightly be withheld, that on CPU time may
    # not.
    (by_cpu,) = (it for it in judgement.comparisons if it.metric == "server_cpu_us")
    assert (by_cpu.a, by_cpu.b, by_cpu.verdict) == ("nginx", "apache-event", Verdict.FASTER)
    assert judgement.verdict in {Verdict.FASTER, Verdict.INVALID}
    assert done.returncode == (1 if judgement.verdict is Verdict.INVALID else 0), done.stderr
    assert "apache-event" in done.stdout
    assert "report.html" in done.stdout
    assert (tmp_path / "run/summary.csv").read_text().count("\n") > 8
    assert set(folder.head.versions) == {"nginx", "apache-event"}
    assert left_behind(tmp_path) == []

    (tmp_path / "run/report.html").unlink()
    again = webdyno("report", "run", folder=tmp_path)
    assert again.returncode == done.returncode
    assert again.stdout == done.stdout
    assert (tmp_path / "run/report.html").exists()


def test_a_missing_file_ends_invalid_and_names_variant_and_status(tmp_path: Path) -> None:
    setting = '--set=variants.apache-event.paths=["/missing.txt"]'
    done = webdyno("run", *QUICK, setting, "--output=run", folder=tmp_path)
    assert done.returncode == 1
    reported = " ".join(done.stdout.split())
    assert "INVALID" in reported
    assert "apache-event answered 404 to /missing.txt" in reported
    assert "webdyno report run" in reported
    assert not (tmp_path / "run/report.html").exists()
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["run", "static-helo"], "static-hello"),
        (["run", "--set=load.conections=3"], "connections"),
        (["run", "--set=variants.nginx.stack=ngnix"], "nginx"),
        (["run", "--set=variants.nginx.settings.worker=1"], "workers"),
        (["run", "--set=variants.nginx.settings.workers=0"], "between 1 and 1024"),
        (["run", "--time=soon"], "--time soon"),
        (["run", "/nowhere/mine.toml"], "/nowhere/mine.toml"),
        (["up", "nginxx"], "nginx"),
        (["report", "nowhere"], "nowhere"),
        (["resume", "nowhere"], "nowhere"),
        (["resume", ".", "--time=soon"], "--time soon"),
    ],
)
def test_mistakes_are_reported_with_what_would_be_right(
    arguments: list[str], reported: str, tmp_path: Path
) -> None:
    done = webdyno_here(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert reported in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rejected_configuration_is_reported_in_the_servers_words(tmp_path: Path) -> None:
    shutil.copytree(BUILT_IN / "services/nginx", tmp_path / "mine/services/nginx")
    shutil.copytree(BUILT_IN / "stacks/nginx", tmp_path / "mine/stacks/nginx")
    template = tmp_path / "mine/services/nginx/nginx.conf.j2"
    template.write_text("nonsense on;\n" + template.read_text())
    done = webdyno("run", *QUICK, "--catalog=mine", "--yes", "--output=run", folder=tmp_path)
    assert done.returncode == 3
    assert 'unknown directive "nonsense"' in done.stderr
    assert "Traceback" not in done.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("blow", [signal.SIGINT, further(signal.SIGTERM), signal.SIGKILL])
def test_an_interrupted_run_keeps_its_slots_and_leaves_no_server(
    blow: signal.Signals, tmp_path: Path
) -> None:
    moments = seeded("moment of the blow")
    with started_webdyno(
        "run", *QUICK, "--set=measure.min_rounds=30", "--output=run", folder=tmp_path
    ) as process:
        wait_for(tmp_path / "run/slots.jsonl", lines=9)
        time.sleep(moments.uniform(0, 0.3))
        os.kill(process.pid, blow)
        reported, _ = process.communicate(timeout=60)
    assert left_behind(tmp_path) == []
    lines = (tmp_path / "run/slots.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]]
    assert len(RunFolder.open(tmp_path / "run").records()) >= 9
    if blow is not signal.SIGKILL:
        assert process.returncode == 130
        assert "webdyno report run" in reported
