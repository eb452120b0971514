"""Counters of the kernel for processes, by events that every machine has: page faults, CPU time.

The CPUs' own counters are opened and read in the same way; here there may be none.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack

import pytest

from webdyno.core.errors import UserError
from webdyno.host.machine import first_number
from webdyno.probes import instructions
from webdyno.probes.instructions import (
    NO_COUNTERS,
    NO_PROCESSES,
    PARANOID_ALLOWS,
    Counted,
    Event,
    InstructionCounter,
    check_counted,
    why_uncounted,
)

CPU_CLOCK, PAGE_FAULTS = Event(1, 1), Event(1, 2)
"""PERF_TYPE_SOFTWARE: PERF_COUNT_SW_TASK_CLOCK (nanoseconds), PERF_COUNT_SW_PAGE_FAULTS."""
NOTHING_LIKE_IT = Event(1, 10_000)
PAGES = 20_000
TOUCH = f"""
import mmap, os, sys, threading

def touch():
    memory = mmap.mmap(-1, {PAGES} * mmap.PAGESIZE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1

def in_a_child():
    if os.fork() == 0:
        touch()
        os._exit(0)
    os.wait()

def in_a_thread():
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()

waiting = threading.Event()
def in_an_older_thread():
    waiting.set()
    older.join()
older = threading.Thread(target=lambda: waiting.wait() and touch(), daemon=True)
older.start()

print("ready", flush=True)
sys.stdin.readline()
globals()[sys.argv[1]]()
print("done", flush=True)
sys.stdin.readline()
"""


@contextmanager
def process(how: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that waits for a line, uses fresh memory page by page, and waits for another."""
    command = [sys.executable, "-c", TOUCH, how]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout
        assert started.stdout.readline() == "ready\n"
        yield started
        assert started.stdin
        started.stdin.close()
        assert started.wait(30) == 0


def have_it_work(started: "subprocess.Popen[str]") -> None:
    assert started.stdin
    assert started.stdout
    started.stdin.write("go\n")
    started.stdin.flush()
    assert started.stdout.readline() == "done\n"


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize("how", ["touch", "in_a_child", "in_a_thread", "in_an_older_thread"])
def test_what_processes_and_all_that_they_start_do_is_counted_once(how: str) -> None:
    before = open_files()
    with process(how) as started:
        with InstructionCounter(lambda: [started.pid], PAGE_FAULTS) as counter:
            have_it_work(started)
        assert counter.counted.fault == ""
        assert counter.counted.instructions
        assert PAGES <= counter.counted.instructions < 1.9 * PAGES
    after = InstructionCounter(lambda: [os.getpid()], PAGE_FAULTS)
    with process(how) as started, after:
        have_it_work(started)
    assert after.counted.instructions is not None
    assert after.counted.instructions < PAGES
    assert open_files() <= before + 2  # pipes of a process that has ended are closed a bit later


def test_time_in_user_space_is_counted_without_root() -> None:
    """In a child, which gives root away."""
    level = first_number(instructions.PARANOID, 0)
    if level > PARANOID_ALLOWS:
        pytest.skip(f"kernel.perf_event_paranoid is {level}: root only")
    script = f"""
import os
from webdyno.probes.instructions import Event, InstructionCounter
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
with InstructionCounter(lambda: [os.getpid()], Event{tuple(CPU_CLOCK)}) as counter:
    sum(range(100_000))
print(counter.counted.instructions, counter.counted.fault)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    counted_ns, _, fault = done.stdout.strip().partition(" ")
    if fault == instructions.NO_RIGHTS:
        pytest.skip("this container's profile allows no counters")
    assert fault == ""
    assert int(counted_ns) > 100_000


def test_the_cpus_counters_count() -> None:
    if why := why_uncounted():
        pytest.skip(why)
    with process("touch") as started:
        with InstructionCounter(lambda: [started.pid]) as counter:
            have_it_work(started)
        assert counter.counted.instructions
        assert counter.counted.instructions > 20 * PAGES


def test_where_nothing_counts_the_reason_is_given_and_limits_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = open_files()
    real = instructions.open_counter
    monkeypatch.setattr(
        instructions, "open_counter", lambda _, thread: real(NOTHING_LIKE_IT, thread)
    )
    why = why_uncounted()
    assert why
    assert open_files() == before
    with pytest.raises(UserError, match="--fail-if: instructions can't be counted here: ") as error:
        check_counted("--fail-if")
    assert why in str(error.value)
    assert "server_cpu_us" in str(error.value)
    monkeypatch.setattr(instructions, "open_counter", lambda _, thread: real(CPU_CLOCK, thread))
    check_counted("--fail-if")


def test_a_kernel_that_leaves_counters_to_root_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    level = tmp_path / "perf_event_paranoid"
    level.write_text("4\n")
    monkeypatch.setattr(instructions, "PARANOID", level)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "kernel.perf_event_paranoid is 4" in instructions._fault(PermissionError(13, "no"))
    assert "sysctl kernel.perf_event_paranoid=2" in instructions._fault(PermissionError(13, "no"))
    level.write_text("2\n")
    assert instructions._fault(PermissionError(13, "no")) == instructions.NO_RIGHTS


def test_where_nobody_is_nothing_is_counted() -> None:
    with InstructionCounter(list, PAGE_FAULTS) as counter:
        pass
    assert counter.counted == Counted(None, NO_PROCESSES)


def test_servers_that_keep_starting_threads_are_not_counted_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, own, others = open_files(), os.getpid(), iter(range(10**9, 10**9 + 100))
    monkeypatch.setattr(instructions, "_threads", lambda _: {own, next(others)})
    with InstructionCounter(lambda: [own], PAGE_FAULTS) as counter:
        pass
    assert counter.counted == Counted(None, instructions.NEVER_AT_REST)
    assert open_files() == before


def test_an_unknown_processor_has_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with InstructionCounter(lambda: [os.getpid()]) as counter:
        pass
    assert counter.counted == Counted(None, NO_COUNTERS)


def test_what_was_counted_for_a_part_of_the_time_is_refused() -> None:
    whole, unused, half = pack("QQQ", 300, 10, 10), pack("QQQ", 0, 0, 0), pack("QQQ", 500, 10, 5)
    assert instructions._total([whole, whole, unused]) == Counted(600)
    partly = instructions._total([whole, half])
    assert partly.instructions is None
    assert "free 50% of the time" in partly.fault
