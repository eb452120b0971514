"""The host probe reads /proc/stat at both edges, and in between."""

import time

import pytest

from webdyno.bench.cpus import allowed_cpus
from webdyno.model.machine import CpuSplit
from webdyno.probe.host import HostProbe, Stat

STAT = """\
cpu  100 10 50 1000 5 1 2 3 0 0
cpu0 60 10 30 500 5 1 1 3 0 0
cpu1 40 0 20 500 0 0 1 0 0 0
intr 12345 1 2 3
ctxt 777
procs_running 4
procs_blocked 0
"""


def all_cpus() -> CpuSplit:
    """A split that gives every CPU of the host to the servers."""
    return CpuSplit(
        servers=sorted(Stat.read().cpus), client=sorted(allowed_cpus()), rest=[], shared=True
    )


def test_proc_stat_is_read_by_kind() -> None:
    stat = Stat.parse(STAT)
    assert stat.cpus == {0: (70, 30, 2, 505, 3), 1: (40, 20, 1, 500, 0)}
    assert (stat.context_switches, stat.running) == (777, 4)


def test_use_is_the_difference_on_the_chosen_cpus() -> None:
    later = Stat.parse(STAT.replace("cpu1 40 0 20 500", "cpu1 90 0 40 530"))
    use = later.use_since(Stat.parse(STAT), [1])
    assert (use.user_s, use.system_s, use.idle_s) == (0.5, 0.2, 0.3)
    assert use.busy_s == pytest.approx(0.7)
    assert use.total_s == pytest.approx(1.0)


def test_counters_that_step_back_count_as_nothing() -> None:
    later = Stat.parse(STAT.replace("cpu1 40 0 20 500", "cpu1 40 0 20 499"))
    assert later.use_since(Stat.parse(STAT), [1]).idle_s == 0


def test_samples_are_taken_in_between() -> None:
    with HostProbe(all_cpus()) as probe:
        time.sleep(0.35)
    use = probe.use()
    assert 1 <= len(use.samples) <= 4
    assert all(0 <= sample.servers_busy <= 1 for sample in use.samples)
    assert all(sample.running >= 0 for sample in use.samples)
    assert 0 < use.samples[0].at_s < use.took_s
