"""All probes around a slot, on real servers."""

import os
import urllib.request
from pathlib import Path

import pytest

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.probe import SlotProbe
from webdyno.stack import start_stack

REQUESTS = 200


def test_the_loaded_arm_is_told_from_the_idle_one(tmp_path: Path) -> None:
    catalogue, bench = Catalogue.load(), Bench()
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with (
        start_stack(stack, {}, site, folder=tmp_path / "loaded", bench=bench) as loaded,
        start_stack(stack, {}, site, folder=tmp_path / "idle", bench=bench) as idle,
    ):
        stacks = {"loaded": loaded, "idle": idle}
        with SlotProbe("loaded", stacks, bench, os.getpid()) as probe:
            for _ in range(REQUESTS):
                with urllib.request.urlopen(f"{loaded.url}/100KB.txt", timeout=5) as answer:  # noqa: S310
                    answer.read()
        servers, readings = probe.servers(), probe.readings()
    use = readings.services["nginx"]
    assert servers.cpu_s > 0
    if servers.means == "cgroup-v2":
        assert use.cpu_user_s + use.cpu_sys_s == pytest.approx(servers.cpu_s, rel=0.2, abs=0.005)
    assert use.switches_voluntary >= REQUESTS / 2
    assert use.processes >= 2
    assert use.ended == 0
    assert readings.network.sent_bytes > REQUESTS * 100_000
    assert set(readings.other_arms_cpu_s) == {"idle"}
    assert readings.other_arms_cpu_s["idle"] < servers.cpu_s / 2
    assert readings.host.context_switches >= use.switches_voluntary
    assert readings.shared_cpus == bench.split.shared
