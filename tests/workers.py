"""Tests in several processes: `pytest --workers 5`.

They are forked off the process that has collected the tests. Collecting imports webdyno and all of
its tests; workers that collect by themselves spend ten seconds of CPU time each on that.
"""

import gc
import io
import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

NEXT = "next"
"""What a worker says to get a test; all else that it says is a report."""
DEAR_FOLDER, DEAR = "e2e", 30
"""Tests that mostly wait for servers, and how many others take as long: some workers begin with
those, and others have the CPUs meanwhile."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the number of processes."""
    parser.addoption("--workers", type=int, default=1, help="run tests in so many processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Fork off workers, and report what they report; each worker runs its tests in here, too."""
    count = min(session.config.getoption("--workers"), len(session.items))
    if count < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # for all
    session.config.get_terminal_writer().flush()  # else each worker has it to print, too
    gc.freeze()  # what is never looked at is never copied
    workers: dict[Connection, Worker] = {}
    for number in range(count):
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            for link in (ours, *workers):
                link.close()
            _work(session, number, theirs)
            gc.unfreeze()  # libraries complain at the end of what is never collected
            return True
        theirs.close()
        workers[ours] = Worker(number, pid)
    try:
        _lead(session, workers)
    finally:
        for link in workers:
            link.close()
        for worker in workers.values():
            worker.exit_code()
        gc.unfreeze()
    return True


class Shares:
    """Which tests each worker runs: those of a file together, as they share what they start."""

    def __init__(self, costs: Sequence[int], workers: int) -> None:
        """Take what each test costs compared with others."""
        self._costs = costs
        sums = [0, *accumulate(costs)]
        cuts = [bisect_left(sums, sums[-1] * number / workers) for number in range(workers)]
        self._shares = [range(*cut) for cut in pairwise([*cuts, len(costs)])]

    def next_of(self, worker: int) -> int | None:
        """Give its next test; a worker that has none left takes half of the dearest share."""
        if not self._shares[worker]:
            dearest = max(range(len(self._shares)), key=lambda number: sum(self._left(number)))
            left, share = self._left(dearest), self._shares[dearest]
            middle = bisect_right(list(accumulate(left)), sum(left) / 2)
            self._shares[dearest], self._shares[worker] = share[:middle], share[middle:]
        share = self._shares[worker]
        self._shares[worker] = share[1:]
        return share[0] if share else None

    def _left(self, worker: int) -> list[int]:
        return [self._costs[test] for test in self._shares[worker]]


class Worker:
    """A process that runs tests, as its parent knows it."""

    def __init__(self, number: int, pid: int) -> None:
        self.number = number
        self.tests: list[int] = []
        """The one that it runs, and the one after that, for which some fixtures stay."""
        self._pid = pid
        self._exit_code: int | None = None

    def exit_code(self) -> int:
        """Wait for its end."""
        if self._exit_code is None:
            self._exit_code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._exit_code


def _lead(session: pytest.Session, workers: dict[Connection, Worker]) -> None:
    """Hand out tests and report their results, until all workers have ended."""
    costs = [DEAR if DEAR_FOLDER in item.path.parts else 1 for item in session.items]
    shares = Shares(costs, len(workers))
    working = dict(workers)
    while working:
        for link in wait(working):
            assert isinstance(link, Connection)
            worker, message = working[link], _received(link)
            if message is None:
                del working[link]
                _report_lost(session, worker)
            elif message == NEXT:
                test = shares.next_of(worker.number)
                worker.tests += [] if test is None else [test]
                with suppress(BrokenPipeError):
                    link.send(test)
            else:
                _report(session, worker, message)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    if shares.next_of(0) is not None:
        raise session.Interrupted("the processes of all workers have ended")


def _report(session: pytest.Session, worker: Worker, message: dict[str, Any]) -> None:
    hook = session.config.hook
    report = hook.pytest_report_from_serializable(config=session.config, data=message)
    if report.when == "teardown":
        worker.tests.pop(0)
    hook.pytest_runtest_logreport(report=report)


def _report_lost(session: pytest.Session, worker: Worker) -> None:
    """Count tests as failed whose process has ended meanwhile."""
    why = f"its worker ended with exit code {worker.exit_code()}"
    for item in (session.items[test] for test in worker.tests):
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        session.config.hook.pytest_runtest_logreport(report=report)


def _work(session: pytest.Session, number: int, link: Connection) -> None:
    """Run tests in a worker; its session ends then, without a word."""
    config = session.config
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.mktemp(f"w{number}", numbered=False)
    config.workerinput = {}  # type: ignore[attr-defined]  # by this name pytest writes no cache
    config.get_terminal_writer()._file = io.StringIO()
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # into files that the parent has as well
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.register(Reports(config, link))
    test = _ask(link)
    while test is not None and not session.shouldfail and not session.shouldstop:
        after = _ask(link)
        item, following = session.items[test], None if after is None else session.items[after]
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        test = after


class Reports:
    """Sends a worker's reports to its parent."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self._config = config
        self._link = link

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send one."""
        hook = self._config.hook
        self._link.send(hook.pytest_report_to_serializable(config=self._config, report=report))


def _ask(link: Connection) -> int | None:
    """Get the next test from the parent, unless there is none, or no parent either."""
    with suppress(BrokenPipeError):
        link.send(NEXT)
        test: int | None = _received(link)
        return test
    return None


def _received(link: Connection) -> Any:  # noqa: ANN401 (what `Connection` gives)
    """Give what the other one has sent, or nothing once it has ended."""
    with suppress(EOFError, ConnectionResetError):
        return link.recv()
    return None
