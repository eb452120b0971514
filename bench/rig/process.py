"""Programs pinned to cores that die with this script, and what they cost."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from rig.machine import busy_s


class BenchError(Exception):
    """Something needed for the benchmark is missing or failed; the message is for people."""


@dataclass(frozen=True)
class Finished:
    """A program that has ended."""

    output: str
    """Its standard output."""
    complaint: str
    """Its standard error."""
    exit_code: int
    cpu_s: float
    """CPU time of all its threads, user and system, from `wait4`."""
    wall_s: float
    others_s: float
    """What others used of its first core meanwhile, or the host took; to some 10 ms."""
    peak_bytes: int
    """The most memory it had in RAM, from `wait4` as well."""

    @property
    def others(self) -> float:
        """Share of the time in which others had the core."""
        return self.others_s / self.wall_s

    @property
    def reason(self) -> str:
        """Why it failed: the exit code and the first line of what it said."""
        first_line = next(iter(self.complaint.strip().splitlines()), "it says nothing")
        return f"exit code {self.exit_code}: {first_line}"


def pinned(command: Sequence[str], cpus: Sequence[int], parent_death: str = "KILL") -> list[str]:
    """Give a command that runs on these CPUs and gets a signal when this script dies.

    Both wrappers end in `exec`, so that process id and CPU time are the program's own.
    """
    listed = ",".join(map(str, cpus))
    return ["setpriv", "--pdeathsig", parent_death, "taskset", "-c", listed, *command]


def run_pinned(command: Sequence[str], cpus: Sequence[int], timeout_s: float) -> Finished:
    """Run a program to its end; kill it after `timeout_s`, which shows as a negative exit code."""
    with TemporaryFile() as output, TemporaryFile() as complaint:
        busy_before_s = busy_s(cpus[0])
        began_s = time.monotonic()
        process = subprocess.Popen(
            pinned(command, cpus), stdin=subprocess.DEVNULL, stdout=output, stderr=complaint
        )
        killer = threading.Timer(timeout_s, process.kill)
        killer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            killer.cancel()
        wall_s = time.monotonic() - began_s
        cpu_s = usage.ru_utime + usage.ru_stime
        others_s = max(0.0, busy_s(cpus[0]) - busy_before_s - cpu_s)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaint.seek(0)
        return Finished(
            output=output.read().decode(errors="replace"),
            complaint=complaint.read().decode(errors="replace"),
            exit_code=process.returncode,
            cpu_s=cpu_s,
            wall_s=wall_s,
            others_s=others_s,
            peak_bytes=usage.ru_maxrss * 1024,
        )
