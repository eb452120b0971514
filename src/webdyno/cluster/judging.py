"""The machines of a fleet, judged each by itself: many of them over as many processes as CPUs.

Of each only what a fleet asks of it comes back, so that no more than one machine's records are in a
process's memory at a time, however many machines there are.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from webdyno.host.processes import end_with_parent
from webdyno.judge.fleet import JudgedMachine, judge_machine
from webdyno.model.mistake import Trouble
from webdyno.run.folder import RunFolder
from webdyno.run.records_file import RECORDS_FILE

WORTH_PROCESSES_BYTES = 64 * 2**20
"""Records of so many bytes take longer to judge than processes take to start."""


def judged_machines(runs: Mapping[str, Path]) -> dict[str, JudgedMachine]:
    """Judge machines by their runs' folders, by name.

    Raises Mistake where a folder holds no run, Trouble where a process that judges is killed. At
    Ctrl-C each process comes to the end of its machine.
    """
    processes = min(len(os.sched_getaffinity(0)), len(runs))
    if processes < 2 or _bytes_of(runs.values()) < WORTH_PROCESSES_BYTES:
        return {name: _judged(path) for name, path in runs.items()}
    # Ray's threads run by now, with which a process must not be forked.
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), end_with_parent, (signal.SIGKILL, os.getpid())
    )
    with pool:
        try:
            with _deaf_to_ctrl_c():
                judged = pool.map(_judged, runs.values())
            return dict(zip(runs, judged, strict=True))
        except BrokenProcessPool as error:
            raise Trouble(
                "a process that judged machines was killed, for want of memory perhaps: "
                "judge them again, on fewer CPUs (`taskset`)"
            ) from error


def _judged(run: Path) -> JudgedMachine:
    return judge_machine(RunFolder.open(run).data())


def _bytes_of(runs: Iterable[Path]) -> int:
    records = (run / RECORDS_FILE for run in runs)
    return sum(file.stat().st_size for file in records if file.exists())


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Leave Ctrl-C to this process: those started meanwhile never get it; this one does later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
