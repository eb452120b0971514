"""The process probe counts what processes did, and sees them come and go."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from webdyno.probes.cpu import CpuReading
from webdyno.probes.processes import ProcessReading, ServiceReading

SCRIPT = """
import os, sys, threading, time
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
CPU = CpuReading(1.0, 2.0, "procfs")


class Helper:
    """A process that does what it is reported."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, line: str) -> None:
        """Let it run a line of Python."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def read(self) -> ServiceReading:
        """Read its counters."""
        return ServiceReading.read([self.process.pid], CPU)


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper()
    made.do("pass")
    yield made
    with made.process:
        made.process.kill()


def test_waits_are_voluntary_switches_of_all_threads(helper: Helper) -> None:
    before = helper.read()
    helper.do("[time.sleep(0.001) for _ in range(50)]")
    helper.do(
        "t = threading.Thread(target=lambda: ([time.sleep(.001) for _ in range(50)], "
        "time.sleep(60)), daemon=True); t.start(); time.sleep(0.3)"
    )
    use = helper.read().since(before)
    assert 100 <= use.switches_voluntary <= 200
    assert use.threads == 2


def test_touched_memory_is_faults_and_proportional_set_size(helper: Helper) -> None:
    before = helper.read()
    small = before.since(before)
    helper.do("block = bytearray(os.urandom(1)) * (32 << 20)")
    use = helper.read().since(before)
    assert use.faults_minor > 10
    assert small.pss_bytes is not None
    assert use.pss_bytes is not None
    assert 30 << 20 <= use.pss_bytes - small.pss_bytes <= 40 << 20
    assert use.peak_rss_bytes >= small.peak_rss_bytes + (30 << 20)
    helper.do("del block")
    assert helper.read().since(before).peak_rss_bytes >= small.peak_rss_bytes + (30 << 20)


def test_processes_that_come_and_go_are_counted(helper: Helper) -> None:
    other = Helper()
    both = ServiceReading.read([helper.process.pid, other.process.pid], CPU)
    with other.process:
        other.process.kill()
    alone = helper.read()
    gone, come = alone.since(both), both.since(alone)
    assert (gone.processes, gone.started, gone.ended) == (1, 0, 1)
    assert (come.processes, come.started, come.ended) == (2, 1, 0)


def test_disk_writes_are_counted_where_we_may_see_them(helper: Helper) -> None:
    before = helper.read()
    use = helper.read().since(before)
    assert use.disk_read_bytes == 0
    assert use.disk_written_bytes == 0


def test_cpu_time_comes_from_the_readings_given(helper: Helper) -> None:
    earlier = ServiceReading(CpuReading(0.5, 0.5, "procfs"), {})
    use = helper.read().since(earlier)
    assert (use.cpu_user_s, use.cpu_sys_s) == (0.5, 1.5)


def test_a_process_that_is_gone_is_excluded() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert ServiceReading.read([gone.pid], CPU).processes == {}


def test_a_counter_that_steps_back_counts_as_nothing() -> None:
    """As that of another process that got the number of one that ended."""
    before = ServiceReading(CPU, {7: ProcessReading(9, 9, 9, 9, 9, (9, 9), 1, 0)})
    after = ServiceReading(CPU, {7: ProcessReading(1, 12, 4, 0, 0, (0, 10), 1, 0)})
    use = after.since(before)
    assert (use.switches_voluntary, use.switches_involuntary) == (0, 3)
    assert use.waited_for_cpu_s == 0
    assert (use.disk_read_bytes, use.disk_written_bytes) == (0, 1)
