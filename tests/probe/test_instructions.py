"""Counters of the kernel for a control group, by an event that every machine has: page faults.

The CPUs' own counters are opened and read in the same way; here there may be none.
"""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from webdyno.host.control_group import ControlGroup
from webdyno.probe import instructions
from webdyno.probe.instructions import (
    NO_COUNTERS,
    NO_GROUP,
    Counted,
    Event,
    InstructionCounter,
)

PAGE_FAULTS = Event(1, 2)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS."""
NOTHING_LIKE_IT = Event(1, 10_000)
CPUS = sorted(os.sched_getaffinity(0))
PAGES = 20_000
TOUCH = f"""
import mmap, sys
sys.stdin.readline()
memory = mmap.mmap(-1, {PAGES * mmap.PAGESIZE})
if hasattr(mmap, "MADV_NOHUGEPAGE"):
    memory.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(memory), mmap.PAGESIZE):
    memory[at] = 1
"""

as_root = pytest.mark.skipif(not ControlGroup.possible(), reason="control groups take root")


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    made = ControlGroup.create(f"counted-{os.getpid()}")
    assert made
    yield made
    made.end()


def touch_pages(entry: Path | None) -> None:
    """Have a process of a control group use fresh memory, page by page."""
    command = [sys.executable, "-c", TOUCH]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin
        if entry is not None:
            entry.write_text(f"{process.pid}\n")
        process.stdin.write("go\n")
        process.stdin.close()
        assert process.wait(30) == 0


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@as_root
def test_what_a_group_does_is_counted_and_nobody_else(group: ControlGroup) -> None:
    before = open_files()
    with InstructionCounter(group, CPUS, PAGE_FAULTS) as inside:
        touch_pages(group.entry("a service"))
    with InstructionCounter(group, CPUS, PAGE_FAULTS) as outside:
        touch_pages(None)
    assert inside.counted.fault == outside.counted.fault == ""
    assert inside.counted.instructions
    assert PAGES <= inside.counted.instructions < 3 * PAGES
    assert outside.counted.instructions == 0
    assert open_files() == before


@as_root
def test_the_cpus_counters_count_or_are_not_there(group: ControlGroup) -> None:
    with InstructionCounter(group, CPUS) as counter:
        touch_pages(group.entry("a service"))
    if counter.counted.fault:
        assert counter.counted == Counted(None, NO_COUNTERS)
    else:
        assert counter.counted.instructions
        assert counter.counted.instructions > 100 * PAGES


@as_root
def test_what_no_kernel_counts_has_a_reason(group: ControlGroup) -> None:
    before = open_files()
    with InstructionCounter(group, CPUS, NOTHING_LIKE_IT) as counter:
        pass
    assert counter.counted.instructions is None
    assert counter.counted.fault
    assert open_files() == before


def test_without_a_group_nothing_is_counted() -> None:
    with InstructionCounter(None, CPUS, PAGE_FAULTS) as counter:
        pass
    assert counter.counted == Counted(None, NO_GROUP)


def test_an_unknown_processor_has_no_counters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with InstructionCounter(ControlGroup(tmp_path), CPUS) as counter:
        pass
    assert counter.counted == Counted(None, NO_COUNTERS)


def test_counters_that_took_turns_stand_for_all_of_the_time() -> None:
    half, whole, unused = pack("QQQ", 500, 10, 5), pack("QQQ", 300, 10, 10), pack("QQQ", 0, 0, 0)
    assert instructions._total([half, whole, unused]) == Counted(1_300)
    never = pack("QQQ", 0, 10, 0)
    assert instructions._total([half, never]).instructions is None
