"""What limits a variant, found by real limits on real servers."""

import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from e2e.commands import (
    left_behind,
    run_rounds,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from webdyno.core.errors import Exit
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder

SERVER = """
import http.server, sys, time

class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Slow).serve_forever()
"""
RIG = Path(__file__).parents[2] / "bench/rig/dialed"
CMD = f"cmd:{sys.executable} server.py $PORT"
FEW = (
    "--set=load.connections=4",
    "--set=measure.slot_s=0.3",
    "--set=measure.warmup_s=0",
    "--set=measure.slots_per_variant=2",
    "--set=measure.patience=1",
    "--set=measure.budget_s=8s",
)


@pytest.mark.measures
@pytest.mark.skipif(os.geteuid() != 0, reason="control groups take root")
def test_servers_that_work_all_the_time_are_limited_by_their_cpu(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    run_rounds(1, "compare", CMD, CMD, *FEW, folder=tmp_path)
    done = webdyno("explain", "run", "--variant=server.py (1st)", "--no-report", folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    reported = " ".join(done.stdout.split())
    said = reported.partition("What limits it: ")[2][:400]
    # With few rounds on a restless machine the interval is wide: "in part (0.79, 0.56 to 1.02)".
    assert "the servers' CPU limits it" in said, said
    assert "the client's CPU limits it" not in said, said
    assert left_behind(tmp_path) == []


@pytest.mark.measures
def test_a_planted_cause_is_named_and_its_fix_measured(tmp_path: Path) -> None:
    slow = ("--set=variants.slow.settings.workers=1", "--set=variants.slow.settings.children=1")
    (tmp_path / "slow.toml").write_text(
        'title = "t"\nquestion = "q?"\nsite = "waiting"\n'
        '[variants.good]\nstack = "nginx-phpfpm"\n[variants.slow]\nstack = "nginx-phpfpm"\n'
    )
    run_rounds(1, "run", "slow.toml", f"--catalog={RIG}", "--yes", *FEW, *slow, folder=tmp_path)
    reported = webdyno("explain", "run", "--advice", "--variant=slow", folder=tmp_path).stdout
    assert "worth trying is children = 4: with 1 it has too few PHP processes" in unwrapped(
        reported
    )
    asked = ("explain", "run", "--advice", "--try", "--variant=slow", "--no-report", "--time=60s")
    done = webdyno(*asked, folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    assert "slow: children = 4 is worth" in unwrapped(done.stdout)
    assert left_behind(tmp_path) == []


def unwrapped(reported: str) -> str:
    return " ".join(reported.split())


@pytest.mark.long
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="perf of other processes takes root")
def test_samples_have_names_also_of_what_a_server_compiles(tmp_path: Path) -> None:
    before = written_for_perf()
    few = [it for it in FEW if "warmup" not in it]
    run_rounds(1, "compare", "node", "nginx", "--yes", *few, folder=tmp_path)
    asked = ("explain", "run", "--profile", "--time=60s", "--no-report")
    with started_webdyno(*asked, folder=tmp_path) as process:
        wait_for(tmp_path / "run/explain/profile/slots.jsonl", lines=12)  # more than one round has
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED, reported
    sampled = RunFolder.open(tmp_path / "run/explain/profile")
    assert sampled.head.experiment.measure.budget_s == 60
    stacks = (sampled.path / "profile/node.folded").read_text()
    assert "server.js" in stacks, stacks[:2000]
    slots = [it for it in sampled.records() if isinstance(it, SlotRecord)]
    assert all(it.profile for it in slots if it.phase == "measure")
    assert written_for_perf() <= before
    assert left_behind(tmp_path) == []


def written_for_perf() -> set[Path]:
    return set(Path("/tmp").glob("perf-*.map"))  # noqa: S108 (perf looks there alone)


def test_without_perf_it_says_so_and_shows_what_the_kernel_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated_run(
        {"nginx": SimulatedVariant(), "apache": SimulatedVariant(server_cpu_us=40.0)}
    ).stored(tmp_path / "run")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = webdyno_here("explain", "run", "--profile", folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    assert "no samples: profiles take `perf` (Debian: apt-get install linux-perf)" in done.stderr
    assert "A request costs apache" in done.stdout


def test_a_part_of_a_variant_s_name_is_enough_when_no_other_has_it(tmp_path: Path) -> None:
    variants = {"nginx (A)": SimulatedVariant(), "nginx (B)": SimulatedVariant()}
    simulated_run(variants).stored(tmp_path / "run")
    done = webdyno_here("explain", "run", "--advice", "--variant=(B)", folder=tmp_path)
    assert done.stdout.startswith("nginx (B): "), done.stderr
    assert "nginx (A)" not in done.stdout
    done = webdyno_here("explain", "run", "--advice", "--variant=nginx", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert (
        "--variant nginx: several variants have that in their names; it has nginx (A)"
        in done.stderr
    )


def test_what_no_rate_can_report_is_refused(tmp_path: Path) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()})
    load = run.head.experiment.load.replace(loop="open", rate_per_s=50.0)
    opened = run.head.replace(experiment=run.head.experiment.replace(load=load))
    replace(run, head=opened).stored(tmp_path / "run")
    done = webdyno_here("explain", "run", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert "an open loop's rate is given" in done.stderr
    done = webdyno_here("explain", "run", "--variant=none", folder=tmp_path)
    assert "the run has no such variant" in done.stderr
