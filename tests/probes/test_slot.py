"""All probes around a slot, on real servers."""

import gzip
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.readings import Readings, StoppedUse
from webdyno.host.this_machine import Testbed
from webdyno.probes.cpu import interrupts_kept_apart
from webdyno.probes.scene import SAMPLE_EVERY_S, Scene
from webdyno.probes.slot import PROBES, SlotProbe
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack

REQUESTS = 200


def test_the_loaded_variant_is_reported_from_the_idle_one(tmp_path: Path) -> None:
    catalogue, testbed = Catalogue.load(), Testbed()
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with (
        open_stack(stack, {}, site, folder=tmp_path / "loaded", testbed=testbed) as loaded,
        open_stack(stack, {}, site, folder=tmp_path / "idle", testbed=testbed) as idle,
    ):
        stacks = {"loaded": loaded, "idle": idle}
        with SlotProbe("loaded", stacks, testbed, os.getpid()) as probe:
            for _ in range(REQUESTS):
                with urllib.request.urlopen(f"{loaded.url}/100KB.txt", timeout=5) as response:  # noqa: S310
                    response.read()
        servers, readings = probe.servers(), probe.readings()
    use = readings.services["nginx"]
    assert servers.cpu_s > 0
    if servers.means == "cgroup-v2":
        assert use.cpu_user_s + use.cpu_sys_s == pytest.approx(servers.cpu_s, rel=0.2, abs=0.005)
    # One that had to wait for a CPU finds the next request there already, and gives nothing away.
    assert use.switches_voluntary + use.switches_involuntary >= REQUESTS / 2
    assert use.switches_voluntary > 0
    assert use.processes >= 2
    assert use.ended == 0
    assert readings.network.sent_bytes > REQUESTS * 100_000
    assert set(readings.other_variants_cpu_s) == {"idle"}
    assert readings.other_variants_cpu_s["idle"] < servers.cpu_s / 2
    assert readings.host.context_switches >= use.switches_voluntary
    assert readings.shared_cpus == testbed.split.shared
    assert readings.front == "nginx"
    assert readings.network.dropped == 0
    assert readings.stopped == StoppedUse()


@contextmanager
def running(folder: Path) -> Iterator[RunningStack]:
    """Nginx with a static site."""
    catalogue, testbed = Catalogue.load(), Testbed()
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with open_stack(stack, {}, site, folder=folder, testbed=testbed) as up:
        yield up


def test_the_host_is_sampled_inside_the_slot(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        with SlotProbe("a", {"a": up}, Testbed(), None) as probe:
            time.sleep(10 * SAMPLE_EVERY_S)
        use = probe.readings().host
    assert 1 <= len(use.samples) <= use.took_s / SAMPLE_EVERY_S
    assert all(0 <= sample.servers_busy <= 1 for sample in use.samples)
    assert all(sample.running >= 0 for sample in use.samples)
    assert 0 < use.samples[0].at_s < use.took_s


def test_stopped_servers_and_clients_are_reported(tmp_path: Path) -> None:
    with running(tmp_path) as up, subprocess.Popen(["sleep", "60"]) as client:
        with SlotProbe("a", {"a": up}, Testbed(), client.pid) as probe:
            worker = max(up.services()["nginx"].pids())
            os.kill(worker, signal.SIGSTOP)
            time.sleep(0.35)
            os.kill(worker, signal.SIGCONT)
            os.kill(client.pid, signal.SIGSTOP)
            time.sleep(0.35)
        stopped = probe.readings().stopped
        client.kill()
    assert stopped is not None
    assert stopped.servers_s > 0.05
    assert stopped.client_s > 0.05


def test_a_slot_that_fails_leaves_no_sampler_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with running(tmp_path) as up, pytest.raises(ZeroDivisionError):  # noqa: SIM117
        with SlotProbe("a", {"a": up}, Testbed(), None):
            raise ZeroDivisionError
    assert threading.active_count() == before


def joules(_: Scene) -> Generator[None, None, dict[str, float]]:
    """A probe of a new kind."""
    yield
    return {"joules": 2.5}


def test_a_probe_is_added_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBES, "energy", joules)
    with running(tmp_path) as up:
        with SlotProbe("a", {"a": up}, Testbed(), None) as probe:
            pass
        readings = probe.readings()
    again = Readings.model_validate_json(readings.model_dump_json())
    assert again == readings
    assert again.part("energy") == {"joules": 2.5}
    assert again.part("entropy") == {}


@pytest.mark.parametrize("apart", [True, False])
def test_interrupts_kept_apart_are_the_servers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    monkeypatch.setattr("webdyno.probes.slot.interrupts_kept_apart", lambda: apart)
    with running(tmp_path) as up, SlotProbe("a", {"a": up}, Testbed(), None) as probe:
        time.sleep(0.05)
    interrupts_s = probe.readings().host.servers.interrupts_s
    servers = probe.servers()
    assert servers.interrupts_s == (interrupts_s if apart else 0)
    assert servers.cpu_s == servers.cpu_user_s + servers.cpu_sys_s + servers.interrupts_s


def test_whether_interrupts_are_kept_apart_is_as_the_kernel_was_built() -> None:
    try:
        built = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    except OSError:
        pytest.skip("this kernel doesn't tell how it was built")
    assert interrupts_kept_apart() == ("CONFIG_IRQ_TIME_ACCOUNTING=y" in built)
