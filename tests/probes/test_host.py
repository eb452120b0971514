"""The host probe reads /proc/stat at both edges, and in between."""

from pathlib import Path

import pytest

from webdyno.core.testbed import CpuSplit
from webdyno.probes.cpu import Stat, busiest, host_samples
from webdyno.probes.scene import USUAL_FILE_BYTES, read_quickly

STAT = """\
cpu  100 10 50 1000 5 1 2 3 0 0
cpu0 60 10 30 500 5 1 1 3 0 0
cpu1 40 0 20 500 0 0 1 0 0 0
intr 12345 1 2 3
ctxt 777
procs_running 4
procs_blocked 0
"""


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


def test_a_proc_stat_with_very_many_interrupts_is_read_to_its_end(tmp_path: Path) -> None:
    many = STAT.replace("intr 12345 1 2 3", "intr 12345" + " 0" * 70_000)
    file = tmp_path / "stat"
    file.write_text(many)
    assert len(many) > 2 * USUAL_FILE_BYTES
    assert Stat.parse(read_quickly(str(file)).decode()) == Stat.parse(STAT)


def test_samples_report_of_the_time_between_them() -> None:
    first = Stat.parse(STAT)
    second = Stat.parse(STAT.replace("cpu1 40 0 20 500", "cpu1 45 0 25 500"))
    third = Stat.parse(STAT.replace("cpu1 40 0 20 500", "cpu1 45 0 25 510"))
    split = CpuSplit(servers=[1], client=[0], rest=[], shared=False)
    one, two = host_samples(first, [(0.1, second), (0.2, third)], split)
    assert (one.at_s, one.servers_busy, one.running) == (0.1, 1.0, 4)
    assert (two.at_s, two.servers_busy, two.client_busy) == (0.2, 0.0, 0.0)


def test_the_busiest_of_the_chosen_cpus_is_reported() -> None:
    first = Stat.parse(STAT)
    later = Stat.parse(
        STAT.replace("cpu0 60 10 30 500", "cpu0 60 10 30 600").replace("cpu1 40 0", "cpu1 90 0")
    )
    assert busiest(first, later, [0, 1]) == 1.0
    assert busiest(first, later, [0]) == 0.0
    assert busiest(first, later, []) is None
