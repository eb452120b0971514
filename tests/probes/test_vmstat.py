"""Over a slot of load, the probes count the CPU time and context switches that vmstat counts."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.load import Load
from webdyno.core.readings import HostUse
from webdyno.core.testbed import CpuSplit
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.probes.cpu import Stat
from webdyno.probes.slot import SlotProbe
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack

SLOT_S = 2.0
AGREE = 0.05
TICKS_PER_S = 100
BUSY = r"(non-nice user|nice user|system|IRQ|softirq) cpu ticks"
IDLE = r"(idle|IO-wait) cpu ticks"
IDLE_STEPS_S = 0.05
"""Idle counters may step back, and the sum of all CPUs is rounded once."""


@dataclass(frozen=True)
class Counts:
    """What `vmstat -s` says since boot."""

    switches: int
    busy_s: float
    idle_s: float

    @classmethod
    def now(cls) -> "Counts":
        """Ask vmstat."""
        text = subprocess.run(["vmstat", "-s"], capture_output=True, text=True, check=True).stdout
        lines = (re.fullmatch(r"\s*(\d+) (.+)", line) for line in text.splitlines())
        counts = {match[2]: int(match[1]) for match in lines if match}

        def seconds(kinds: str) -> float:
            return sum(n for name, n in counts.items() if re.fullmatch(kinds, name)) / TICKS_PER_S

        return cls(counts["CPU context switches"], seconds(BUSY), seconds(IDLE))

    def since(self, earlier: "Counts") -> "Counts":
        """Give the difference."""
        return Counts(
            self.switches - earlier.switches,
            self.busy_s - earlier.busy_s,
            self.idle_s - earlier.idle_s,
        )


@pytest.mark.skipif(shutil.which("vmstat") is None, reason="vmstat (procps) isn't there")
def test_cpu_time_and_context_switches_of_a_slot_agree_with_vmstat(tmp_path: Path) -> None:
    """Other programs' work counts as well; whatever they do, ours lies between two of vmstat's.

    One pair is read just outside the probes' edges, the other just inside, so that what happens
    while vmstat itself starts can't matter.
    """
    catalogue, testbed = Catalogue.load(), Testbed()
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with (
        open_stack(stack, {}, site, folder=tmp_path, testbed=testbed) as nginx,
        Loadgen(testbed.split.client[:1]) as loadgen,
    ):
        inner, ours, outer = measured(nginx, loadgen)
    assert inner.switches * (1 - AGREE) <= ours.context_switches <= outer.switches * (1 + AGREE)
    busy_s, idle_s = ours.servers.busy_s, ours.servers.idle_s
    assert inner.busy_s * (1 - AGREE) <= busy_s <= outer.busy_s * (1 + AGREE)
    assert inner.idle_s * (1 - AGREE) - IDLE_STEPS_S <= idle_s
    assert idle_s <= outer.idle_s * (1 + AGREE) + IDLE_STEPS_S


def measured(nginx: RunningStack, loadgen: Loadgen) -> tuple[Counts, HostUse, Counts]:
    """Load nginx for a slot; give what vmstat counted inside, what we did, vmstat outside."""
    expect = Expectation(status=200, body_bytes=13)
    order = LoadOrder(
        id="a slot",
        url=nginx.url,
        requests=(Request("/hello.txt", expect),),
        load=Load(connections=16),
        duration_s=SLOT_S,
    )
    everywhere = Testbed()
    everywhere.split = CpuSplit(servers=sorted(Stat.read().cpus), client=[], rest=[], shared=True)
    outside = Counts.now()
    with SlotProbe("nginx", {"nginx": nginx}, everywhere, loadgen.pid) as probe:
        inside = Counts.now()
        result = loadgen.slot(order)
        inner = Counts.now().since(inside)
    outer = Counts.now().since(outside)
    assert result.requests.completed > 0
    return inner, probe.readings().host, outer
