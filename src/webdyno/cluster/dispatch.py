"""An experiment that several hosts measure: what each measures comes here while it does.

Rounds of one comparison never straddle machines, so what a host is given is a run of its own: all
of the experiment, with a random order of its own, or one point of it. A host gets the next work
when it is free, and the same only once. Where it is lost, or can't, what it measured stays here,
and another one begins again. The folder holds the experiment, its part of the catalogue, and the
run of each host in FOLDER/HOST/PART: whoever has it can go on.

Machines are judged over as many processes as CPUs, each with one machine's records at a time.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from webdyno.cluster.host import AgentExit, Piece, Runner
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.files import open_given, open_here
from webdyno.core.records import RECORD
from webdyno.core.sweep import only_at, plan_points
from webdyno.evidence.point_data import RunData
from webdyno.fleet import JudgedMachine, judge_machine
from webdyno.host.children import end_with_parent, from_no_folder
from webdyno.measure.backend import HostLost
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.records_file import RECORDS_FILE, whole_lines
from webdyno.measure.session import is_finished

News = Callable[[str, Path], None]
"""Hears whose run has something new, and its folder."""

ENDS = (b'{"kind":"stop"', b'{"kind":"long-look"')
"""How records begin that say of a run's end; see `measure.redact.line_of`."""

MEASURED = (0, 1)
"""Exit codes of a run that came to its end: with a verdict, or with `invalid`."""
INTERRUPTED_AGAIN_S = 0.5
WORTH_PROCESSES_BYTES = 64 * 2**20
"""Records of so many bytes take longer to judge than processes take to start."""


@dataclass(frozen=True, eq=False)
class Work:
    """All of an experiment, or a part of it, for a host to measure."""

    part: str = ""
    """Names the run's folder in its host's; empty for all of the experiment, which has that."""
    label: str = ""
    """What people read of the part by."""
    experiment: Experiment | None = None
    """The part; None for all of it."""
    hosts: int = 1
    """How many are to measure it, each for itself."""

    def run_on(self, host: str, out: Path) -> Path:
        return out / host / self.part


def work_at_points(experiment: Experiment) -> list[Work]:
    """Return a work for each point of an experiment, in their order."""
    points = [plan.point for plan in plan_points(experiment)]
    return [
        Work(f"point-{point.number:03d}", point.label, only_at(experiment, point))
        for point in points
    ]


def finished_runs(out: Path, part: str = "") -> list[RunFolder]:
    """Return the runs of a work that came to their end, whatever their verdict."""
    heads = sorted(out.glob(str(Path("*", part, HEAD_FILE))))
    runs = (RunFolder.open(head.parent) for head in heads)
    return [run for run in runs if _surely_ended(run) or is_finished(run.data())]


def missing_runs(works: Sequence[Work], out: Path) -> Counter[Work]:
    """Count how many hosts are still to measure each work, without those that are measured."""
    missing = Counter({work: work.hosts - len(finished_runs(out, work.part)) for work in works})
    return +missing


def _surely_ended(run: RunFolder) -> bool:
    """Whether stops and long looks alone show that, as they mostly do, without reading the rest.

    Without rounds all variants count as looked at or lacking. Whether a capacity is looked at
    depends on what rounds have found.
    """
    if run.head.experiment.capacity is not None:
        return False
    file = run.path / RECORDS_FILE
    with suppress(FileNotFoundError, ValidationError), open_given(file) as given:
        lines = (line.text for line in whole_lines(given, file))
        ends = [RECORD.validate_json(line) for line in lines if line.startswith(ENDS)]
        data = RunData(run.head, ends)
        return all(point.stop for point in data.points) and is_finished(data)
    return False


@dataclass
class HostRun:
    """A run on a host."""

    host: str
    folder: Path
    label: str
    """What people read of it by: the host, and at which point it measures if it isn't all."""
    ended: AgentExit | None = None
    """None while it goes on, and where it was lost or interrupted."""
    lost: str | None = None
    """What is known of a host that was lost."""

    @property
    def has_measured(self) -> bool:
        return self.ended is not None and self.ended.code in MEASURED

    @property
    def came_to_nothing(self) -> bool:
        return self.ended is not None and not self.has_measured

    def follow(self, says: Iterator[Piece | AgentExit], news: News) -> None:
        try:
            for message in says:
                if isinstance(message, AgentExit):
                    self.ended = message
                    return
                _write(self.folder, message)
                if message.file.name == RECORDS_FILE:
                    news(self.label, self.folder)
        except HostLost as lost:
            self.lost = str(lost)


def _write(folder: Path, piece: Piece) -> None:
    if piece.file.is_absolute() or ".." in piece.file.parts:
        raise HostLost(f"it sent a file that is none of the run's: {piece.file}")
    flags = os.O_WRONLY if piece.start_bytes else os.O_WRONLY | os.O_TRUNC
    with open_here(folder / piece.file, flags, below=folder) as file:
        file.seek(piece.start_bytes)
        file.write(piece.data)


@dataclass
class Dispatcher:
    """Deals works to hosts."""

    hosts: Sequence[Runner]
    parcel: Callable[[Work, Path | None], bytes]
    """What a host is given for a work, with the run that it had begun there before, if it had."""
    out: Path
    """Gets a folder for each host, and in that a run's folder for each part."""
    done: list[HostRun] = field(default_factory=list)
    """All that was begun, in that order."""

    def hosts_for(self, work: Work) -> list[Runner]:
        """Return the hosts that haven't measured a work to its end."""
        finished = {run.path for run in finished_runs(self.out, work.part)}
        return [host for host in self.hosts if work.run_on(host.name, self.out) not in finished]

    def measure(self, missing: Counter[Work], news: News, *, yes: bool) -> None:
        """Measure each work so many times, on as many hosts at once as there are.

        Runs are missing afterwards where no host is left that could measure them; `done` has the
        reasons. At Ctrl-C all hosts are asked to stop. For `yes` see `agent.replicate`.
        """
        waiting, free = Counter(missing), {host.name for host in self.hosts}
        untried = self._pairs(missing)
        running: dict[Future[HostRun], Work] = {}
        with ThreadPoolExecutor(min(len(self.hosts), waiting.total())) as pool:
            try:
                while True:
                    for host, work in _dealt(untried, waiting, free):
                        running[pool.submit(self._measure, host, work, news, yes)] = work
                    if not running:
                        return
                    for each in wait(running, return_when=FIRST_COMPLETED).done:
                        work, run = running.pop(each), each.result()
                        if not run.has_measured:
                            waiting[work] += 1
                        if run.lost is None:
                            free.add(run.host)
            finally:
                _end_all(self.hosts, running)

    def _pairs(self, works: Counter[Work]) -> "Pairs":
        """First with who had begun them, and last what others had begun."""
        ranked = []
        for work in works:
            begun = {host.name for host in self.hosts if self._begun(host.name, work)}
            ranked += [
                ((host.name not in begun, bool(begun)), host, work) for host in self.hosts_for(work)
            ]
        ranked.sort(key=lambda entry: entry[0])
        return {(host.name, work): host for _, host, work in ranked}

    def _measure(self, host: Runner, work: Work, news: News, yes: bool) -> HostRun:
        label = f"{host.name}, {work.label}" if work.label else host.name
        run = HostRun(host.name, work.run_on(host.name, self.out), label)
        self.done.append(run)
        parcel = self.parcel(work, self._begun(host.name, work))
        run.follow(host.replicate(parcel, yes=yes), news)
        return run

    def _begun(self, host: str, work: Work) -> Path | None:
        folder = work.run_on(host, self.out)
        return folder if (folder / HEAD_FILE).exists() else None


Pairs = dict[tuple[str, Work], Runner]
"""Hosts that haven't tried a work yet, by name and work, in the order in which they get it."""


def _dealt(untried: Pairs, waiting: Counter[Work], free: set[str]) -> Iterator[tuple[Runner, Work]]:
    """Take pairs of a free host and a waiting work that it hasn't tried out of all three."""
    for (name, work), host in tuple(untried.items()):
        if name in free and waiting[work]:
            del untried[name, work]
            free.remove(name)
            waiting[work] -= 1
            yield host, work


def _end_all(hosts: Sequence[Runner], running: Collection["Future[Any]"]) -> None:
    """Interrupt what still runs on hosts; again and again, as an order may be on its way there."""
    while wait(running, timeout=0).not_done:
        for host in hosts:
            host.interrupt()
        wait(running, timeout=INTERRUPTED_AGAIN_S)


def judged_machines(runs: Mapping[str, Path]) -> dict[str, JudgedMachine]:
    """Judge machines by their runs' folders, by name.

    Raise UserError where a folder holds no run, OperationError where a process that judges is
    killed. At Ctrl-C each process comes to the end of its machine.
    """
    processes = min(len(os.sched_getaffinity(0)), len(runs))
    records = (run / RECORDS_FILE for run in runs.values())
    size_bytes = sum(file.stat().st_size for file in records if file.exists())
    if processes < 2 or size_bytes < WORTH_PROCESSES_BYTES:
        return {name: _judge(path) for name, path in runs.items()}
    # Ray's threads run by now, with which a process must not be forked.
    ending = (signal.SIGKILL, os.getpid())
    with (
        from_no_folder(),
        ProcessPoolExecutor(processes, get_context("spawn"), end_with_parent, ending) as pool,
    ):
        try:
            # Processes that are started meanwhile never get Ctrl-C; this one does later.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                judged = pool.map(_judge, runs.values())
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return dict(zip(runs, judged, strict=True))
        except BrokenProcessPool as error:
            raise OperationError(
                "a process that judged machines was killed, for want of memory perhaps: "
                "judge them again, on fewer CPUs (`taskset`)"
            ) from error


def _judge(run: Path) -> JudgedMachine:
    return judge_machine(RunFolder.open(run).data())
