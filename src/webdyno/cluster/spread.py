"""The points of an experiment dealt to hosts: each is measured whole on one of them.

Blocks of one comparison never straddle machines, and a comparison is made at one point: so points
can be spread, and a host gets the next one when it is free. A host that is lost, or can't measure a
point, gives it back, and another one begins it anew. What each host has measured is a run of its
own, in the folder FOLDER/HOST/POINT, and tells by its place what it is.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.cluster.host import Runner
from webdyno.cluster.host_run import HostRun, News, came_to_its_end, end_all
from webdyno.model.point import Point
from webdyno.run.folder import HEAD_FILE, RunFolder


@dataclass
class Spread:
    """Hosts that share the points of one experiment."""

    hosts: Sequence[Runner]
    parcel: Callable[[Point, Path | None], bytes]
    """What a host is given for a point, with the run that it had begun there before, if it had."""
    out: Path
    """Gets a folder for each host, and in that a run's folder for each point."""
    done: list[HostRun] = field(default_factory=list)
    """All that was begun, in that order."""

    def measure(self, points: Sequence[Point], news: News, *, yes: bool) -> None:
        """Measure these points, on as many hosts at once as there are.

        Points are missing afterwards where no host is left that could measure them; `done` has the
        reasons. At Ctrl-C all hosts are told to stop. For `yes` see `agent.replicate`.
        """
        free, waiting = list(self.hosts), list(points)
        tried: set[tuple[str, int]] = set()
        running: dict[Future[HostRun], tuple[Runner, Point]] = {}
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            try:
                while True:
                    for host, point in self._dealt(free, waiting, tried):
                        running[pool.submit(self._measure, host, point, news, yes)] = host, point
                    if not running:
                        return
                    for each in wait(running, return_when=FIRST_COMPLETED).done:
                        host, point = running.pop(each)
                        run = each.result()
                        if not run.measured:
                            waiting.append(point)
                            tried.add((host.name, point.number))
                        if run.lost is None:
                            free.append(host)
            finally:
                end_all(self.hosts, running)

    def _dealt(
        self, free: list[Runner], waiting: list[Point], tried: set[tuple[str, int]]
    ) -> Iterator[tuple[Runner, Point]]:
        """Take pairs of a free host and a point that it hasn't tried out of the two lists."""
        for host in tuple(free):
            new = [it for it in waiting if (host.name, it.number) not in tried]
            if new:
                point = min(new, key=lambda it: self._rank(host, it))
                free.remove(host)
                waiting.remove(point)
                yield host, point

    def _rank(self, host: Runner, point: Point) -> tuple[bool, bool]:
        """Put points first that the host itself had begun before, and last those of others."""
        begun = {it.name for it in self.hosts if self._begun(it.name, point)}
        return host.name not in begun, bool(begun)

    def _measure(self, host: Runner, point: Point, news: News, yes: bool) -> HostRun:
        folder = run_at(self.out, host.name, point)
        run = HostRun(host.name, folder, f"{host.name}, {point.label}")
        self.done.append(run)
        parcel = self.parcel(point, self._begun(host.name, point))
        run.follow(host.replicate(parcel, yes=yes), news)
        return run

    def _begun(self, host: str, point: Point) -> Path | None:
        folder = run_at(self.out, host, point)
        return folder if (folder / HEAD_FILE).exists() else None


def run_at(out: Path, host: str, point: Point) -> Path:
    """Name the folder of the run of a point on a host."""
    return out / host / f"point-{point.number:03d}"


def finished_points(out: Path, points: Sequence[Point]) -> dict[int, RunFolder]:
    """Give the run of each point that was measured to its end, by number of the point."""
    found = {}
    for point in points:
        for head in sorted(out.glob(str(run_at(Path(), "*", point) / HEAD_FILE))):
            run = RunFolder.open(head.parent)
            if came_to_its_end(run):
                found[point.number] = run
                break
    return found
