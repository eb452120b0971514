"""One experiment on several hosts at once: what each measures comes here while it is measured.

Blocks of one comparison never straddle machines, so each host runs all of the experiment, with a
random order of its own. Where a host is lost, what it measured stays here, and another one that has
nothing to do begins anew. The fleet's folder holds the experiment and its part of the catalogue, as
a run's does, and the run of each host: whoever has it can go on.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.cluster.host import Runner
from webdyno.cluster.host_run import HostRun, News, came_to_its_end, end_all
from webdyno.run.folder import HEAD_FILE, RunFolder


@dataclass
class Fleet:
    """Hosts that each run one experiment."""

    hosts: Sequence[Runner]
    parcel: Callable[[str], bytes]
    """What a host of that name is given; see `agent.parcel_of`."""
    out: Path
    """Gets a run's folder for each host, called as that is."""
    done: list[HostRun] = field(default_factory=list)
    """All that was begun, in that order."""

    def measure(self, wanted: int, news: News, *, yes: bool) -> None:
        """Run the experiment on so many of the hosts; the others stand by.

        A host that is lost is on record in `done`. At Ctrl-C all hosts are told to stop. For `yes`
        see `agent.replicate`.
        """
        spare = deque(self.hosts)
        with ThreadPoolExecutor(wanted) as pool:
            running = [pool.submit(self._replicate, spare, news, yes) for _ in range(wanted)]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:
                spare.clear()
                end_all(self.hosts, running)
        for each in running:
            each.result()

    def _replicate(self, spare: deque[Runner], news: News, yes: bool) -> None:
        """Run it on one host, and where that is lost or can't, on the next one."""
        while spare:
            host = spare.popleft()
            run = HostRun(host.name, self.out / host.name, host.name)
            self.done.append(run)
            run.follow(host.replicate(self.parcel(host.name), yes=yes), news)
            if run.measured:
                return


def finished_runs(fleet: Path) -> list[Path]:
    """Name the runs in a fleet's folder that came to their end, whatever their verdict."""
    runs = (RunFolder.open(path.parent) for path in sorted(fleet.glob(f"*/{HEAD_FILE}")))
    return [run.path for run in runs if came_to_its_end(run)]
