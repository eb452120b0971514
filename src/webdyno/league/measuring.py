"""A sitting of a league: what is missing is measured, as far as the time goes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

from webdyno.comparison import question_of
from webdyno.comparison.sentences import ranking_headline
from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import count, duration, typed_duration
from webdyno.core.question import FEWEST_IN_RACE
from webdyno.core.testbed import Machine
from webdyno.launch.foreign import is_agreed_to
from webdyno.launch.measure import MeasuredRun, measure_again, measure_on
from webdyno.league.joined import join
from webdyno.league.judged import cold_among
from webdyno.league.planning import (
    LEAST_ROOM,
    Group,
    Held,
    cold_of,
    groups_left,
    long_warmup_s,
    missing,
    next_group,
    statements_together,
    time_of_run,
)
from webdyno.league.records import (
    LeagueFolder,
    LeagueRun,
    MeasuredMachine,
    is_same,
    machine_folder,
    sum_of,
)
from webdyno.league.task import Asking, Task, key_of
from webdyno.measure.budget import least_s
from webdyno.measure.repeat import kept_catalogue


@dataclass(frozen=True)
class Lack:
    """A task, who can serve it, and who has no result there."""

    task: Task
    able: list[str]
    held: list[Held]
    lacking: list[str]

    @cached_property
    def cold(self) -> set[str]:
        """Those that hadn't warmed up when they were measured."""
        return cold_of(self.held)

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        return groups_left(self.lacking, self.held)

    @property
    def together(self) -> int:
        """How many statements share the risk."""
        return statements_together(self.held, self.lacking)


@dataclass
class Sitting:
    """Measures what a league lacks on this machine, until the time is used up."""

    folder: LeagueFolder
    asking: Asking
    tasks: dict[Task, list[str]]
    """By task: the stacks that are to have a result."""
    machine: Machine
    older_than: timedelta
    ends: float
    """When the time is used up, by the monotonic clock."""
    show: Callable[[MeasuredRun], object]
    """Is given each run as it was measured."""
    failures: list[str] = field(default_factory=list)
    measured: int = 0
    """Runs of this sitting."""
    _due: int = 0
    """Runs that were missing when it began."""
    _tried: set[tuple[Task, str, bool]] = field(default_factory=set)
    """Also whether that was for the second time, with those that hadn't warmed up."""
    _stuck: set[Path] = field(default_factory=set)
    _said: set[Path] = field(default_factory=set)
    """Runs of which it was said that they aren't taken as they are."""

    def lacks(self) -> list[Lack]:
        """Return what is missing at each task, by what lies in the folder now."""
        return [self._lack(task) for task in self.tasks]

    def measure_all(self) -> bool:
        """Measure one group of stacks after the other; False where somebody interrupted it.

        Those that hadn't warmed up come last, together, and share what time is left: all that they
        lacked was a longer warm-up.
        """
        self.asking.check(self.tasks)
        self._due = sum(lack.runs for lack in self.lacks())
        for cold in (False, True):
            for task, able in self.tasks.items():
                for run in self._unfinished(self._key(task, able)):
                    if not self._went_on(f"{run.path}", partial(self._go_on, run)):
                        return False
                while (lack := self._lack(task)) and (group := self._next(lack, cold=cold)):
                    measuring = self._measuring(lack, group)
                    if measuring is None:
                        return True
                    if not self._went_on(f"{task.words}: {', '.join(group.stacks)}", measuring):
                        return False
        return True

    def headlines(self) -> Iterator[str]:
        """Yield the ranks of each task that has any on this machine."""
        here = self._here()
        for task, able in self.tasks.items():
            if runs := here.finished(self._key(task, able)):
                joined = join([run.judged for run in runs])
                yield f"{task.words}: {ranking_headline(joined.ranking, joined.decide_on)}"

    def _lack(self, task: Task) -> Lack:
        able = self.tasks[task]
        runs = self._here().finished(self._key(task, able))
        held = [self._held(run, runs) for run in runs]
        lacking = missing(able, held, datetime.now(UTC), self.older_than)
        return Lack(task, able, held, lacking)

    def _next(self, lack: Lack, *, cold: bool) -> Group | None:
        return next_group(self._untried(lack, cold=cold), lack.held, lack.able)

    def _untried(self, lack: Lack, *, cold: bool) -> list[str]:
        return [
            stack
            for stack in lack.lacking
            if (stack in lack.cold) is cold and (lack.task, stack, cold) not in self._tried
        ]

    def _measuring(self, lack: Lack, group: Group) -> Callable[[], MeasuredRun] | None:
        """Return what measures a group, or as much of it as there is time for; None for nothing."""
        left_s, need_s = self._left_s, 0.0
        fewest = max(1, FEWEST_IN_RACE - len(group.anchors))
        for size in range(len(group.new), fewest - 1, -1):
            new = group.new[:size]
            stacks = [*group.anchors, *new]
            arranged = self.asking.arrange(lack.task, stacks, lack.together)
            need_s = least_s(arranged.experiment, arranged.catalogue)
            if need_s <= left_s:
                self._tried |= {(lack.task, stack, stack in lack.cold) for stack in new}
                if not lack.cold.issuperset(new):
                    time_s = time_of_run(need_s, left_s, self._due - self.measured)
                    return partial(self._measure, lack, stacks, max(need_s, time_s))
                time_s = max(need_s, left_s / (1 + self._cold_runs()))
                rounds = question_of(arranged.experiment).fewest_rounds
                warmup_s = long_warmup_s(time_s - need_s, rounds, len(new))
                return partial(self._measure, lack, stacks, time_s, warmup_s)
        if not self.measured:
            would_do = typed_duration(LEAST_ROOM * need_s)
            raise UserError(
                f"--time {typed_duration(left_s)} is too short: the smallest ranking takes about "
                f"{duration(need_s)}; --time {would_do} would do"
            )
        return None

    def _cold_runs(self) -> int:
        """Count the runs that measure again what hadn't warmed up and wasn't tried since."""
        return sum(groups_left(self._untried(lack, cold=True), lack.held) for lack in self.lacks())

    def _measure(
        self, lack: Lack, stacks: Sequence[str], time_s: float, warmup_s: float | None = None
    ) -> MeasuredRun:
        name, experiment, catalogue = self.asking.arrange(
            lack.task,
            stacks,
            lack.together,
            time_s=time_s,
            cold=lack.cold,
            warmup_s=warmup_s,
        )
        began = datetime.now().astimezone()
        out = self.folder.path / machine_folder(self.machine) / name / f"{began:%Y-%m-%d-%H%M%S}"
        self.asking.caller.notify(f"\n{lack.task.words}: {', '.join(stacks)}")
        return measure_again(name, experiment, catalogue, out, self.asking.caller)

    def _go_on(self, run: LeagueRun) -> MeasuredRun:
        """Measure for the rest of a run's own time; if that was too short, for as much of ours."""
        self._stuck.add(run.path)
        why, more_s = "was interrupted", None
        if run.is_too_short:
            why = "was too short"
            more_s = time_of_run(self._least_s(run), self._left_s, self._due - self.measured)
        self.asking.caller.notify(f"\n{run.path} {why}, and continues")
        return measure_on(run.path, self.asking.caller, more_s)

    def _least_s(self, run: LeagueRun) -> float:
        return least_s(run.experiment, kept_catalogue(run.path))

    def _went_on(self, name: str, measuring: Callable[[], MeasuredRun]) -> bool:
        """Measure, and put on record what fails; False where somebody interrupted it."""
        self.measured += 1
        try:
            measured = measuring()
        except KeyboardInterrupt:  # before the first round
            return False
        except (UserError, OperationError) as error:
            self.failures.append(f"{name}: {str(error).splitlines()[0]}")
            self.asking.caller.notify(f"{name}: {error}")
            return True
        if not measured.interrupted:
            self.show(measured)
        return not measured.interrupted

    def _here(self) -> MeasuredMachine:
        machines = self.folder.machines()
        mine = (each for each in machines if is_same(each.machine, self.machine))
        return next(mine, MeasuredMachine(self.machine, []))

    def _unfinished(self, key: str) -> list[LeagueRun]:
        """Return a task's runs that can go on; one that was too short takes as long again."""
        return [
            run
            for run in self._here().runs
            if run.key == key
            and not run.is_over
            and run.path not in self._stuck
            and self._is_ours(run)
            and (not run.is_too_short or self._least_s(run) <= self._left_s)
        ]

    def _is_ours(self, run: LeagueRun) -> bool:
        """Whether it runs nothing that nobody agreed to: its folder may be a copy of others'."""
        try:
            if is_agreed_to(kept_catalogue(run.path), run.experiment):
                return True
            why = "you didn't begin it"
        except (UserError, OperationError) as error:
            why = str(error)
        self._say_once(run, f"is left unfinished: {why}")
        return False

    def _say_once(self, run: LeagueRun, what: str) -> None:
        if run.path not in self._said:
            self._said.add(run.path)
            self.asking.caller.notify(f"{run.path} {what}")

    @property
    def _left_s(self) -> float:
        return self.ends - time.monotonic()

    def _key(self, task: Task, able: Sequence[str]) -> str:
        return key_of(self.asking.arrange(task, able[:FEWEST_IN_RACE]).experiment)

    def _held(self, run: LeagueRun, runs: Sequence[LeagueRun]) -> Held:
        changed = frozenset(self._changed(run))
        cold = cold_among(run.judged, (each.judged for each in runs))
        return Held(run.head.started_at, run.stacks, run.judged.ranked, changed, cold)

    def _changed(self, run: LeagueRun) -> Iterator[str]:
        """Yield the stacks of a run whose program or settings aren't those of the catalog now.

        All of them where what the run kept can't be read: nobody knows what it measured.
        """
        try:
            then = kept_catalogue(run.path).stacks
            sums = {stack: sum_of(then[stack]) for stack in run.stacks if stack in then}
        except (UserError, OperationError) as error:
            sums = {}
            self._say_once(run, f"is measured again: {error}")
        for stack in run.stacks:
            its = self.asking.catalogue.stacks.get(stack)
            if its is None or sums.get(stack) != sum_of(its):
                yield stack


def words_of(lacks: Sequence[Lack]) -> str:
    """Return what is missing, and in how many runs it is measured."""
    results = sum(len(lack.lacking) for lack in lacks)
    of = sum(len(lack.able) for lack in lacks)
    runs = sum(lack.runs for lack in lacks)
    if not results:
        return f"nothing is missing: {count(of, 'result')} of {count(len(lacks), 'task')}"
    return (
        f"{results:,} of {count(of, 'result')} of {count(len(lacks), 'task')} are missing or old: "
        f"{count(runs, 'run')}"
    )
