"""Studies that others published, repeated: they are measured as far as the time goes.

Whether their claims hold then is in `claims.py`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webdyno.config import Catalogue
from webdyno.config.catalogue import levels_first
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Level
from webdyno.core.format import count, duration
from webdyno.core.study import ClaimRow, Outcome, Publication
from webdyno.core.sweep import plan_points
from webdyno.launch.caller import Caller
from webdyno.launch.measure import MeasuredRun, measure_again, measure_on
from webdyno.measure.folder import HEAD_FILE, RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.studies.claims import Further

BUDGET_FOR_NEED = 3.0
"""Pilots plan for rounds that take a quarter of a budget, and adjustments need room besides."""
FIGURE_ROUNDS = 4
"""Of an experiment whose claims are figures: they have no verdict, but an interval."""


class Plan(NamedTuple):
    """An experiment of a study that is to be measured."""

    name: str
    run: Path
    """The folder of its run."""
    begun: bool
    """Whether there are rounds of it already."""
    first: dict[str, list[Level]]
    """Levels that claims need."""
    rounds: int
    """How many each point gets before the claims are looked at."""
    need_s: float
    """How long these rounds take there, about."""


def plans_of(study: Publication, catalogue: Catalogue, folder: Path) -> Iterator[Plan]:
    """Return the study's experiments that aren't measured to their end yet."""
    from webdyno.comparison import question_of
    from webdyno.measure.budget import need_s
    from webdyno.measure.session import rounds_are_over

    for name in study.experiments:
        run = folder / name
        begun = (run / HEAD_FILE).exists()
        if begun and rounds_are_over(RunFolder.open(run).data()):
            continue
        experiment = catalogue.experiment(name)
        first = levels_first(study, name, experiment)
        has_verdict = any(
            claim.experiment == name and not claim.is_figure for claim in study.claims
        )
        rounds = question_of(experiment).fewest_rounds if has_verdict else FIGURE_ROUNDS
        need = need_s(experiment, catalogue, first, rounds)
        yield Plan(name, run, begun, first, rounds, need)


@dataclass
class Repetition:
    """Measures studies in a folder; what fails is put on record, and the others go on."""

    folder: Path
    catalogue: Catalogue
    ends: float
    """When the time is used up, by the monotonic clock."""
    caller: Caller
    show: Callable[[MeasuredRun], object]
    """Is given each run as it was measured."""
    failures: dict[str, str] = field(default_factory=dict)
    """By experiment: why it failed."""

    def measure_all(self, planned: Sequence[Plan]) -> bool:
        """Measure one experiment after the other, until one is interrupted: False then."""
        for number, plan in enumerate(planned):
            share = plan.need_s / sum(each.need_s for each in planned[number:])
            share_s = min(plan.need_s, share * (self.ends - time.monotonic()))
            if not self._went_on(plan.name, partial(self._measure, plan, share_s)):
                return False
        return True

    def decide_more(self, wanted: Sequence[Publication]) -> bool:
        """Spend what is left of the time on inconclusive claims, until interrupted: False then."""
        from webdyno.studies.claims import Batch, next_batch

        names = [name for study in wanted for name in study.experiments]
        further = {
            name: self._foresee(name, wanted)
            for name in names
            if name not in self.failures and (self.folder / name / HEAD_FILE).exists()
        }
        done: list[Batch] = []
        while due := next_batch(
            chain(*further.values()), left_s := self.ends - time.monotonic(), done
        ):
            done.append(due)
            name = due.experiment
            self.caller.notify(
                f"{name}: {count(due.more, 'more round')} for {due.claim.says!r}, which is "
                f"inconclusive; {duration(left_s)} are left"
            )
            rounds = {due.point: due.rounds}
            measuring = partial(measure_on, self.folder / name, self.caller, None, rounds)
            if not self._went_on(name, measuring):
                return False
            further[name] = [] if name in self.failures else self._foresee(name, wanted)
        return True

    def rows_of(self, study: Publication) -> list[ClaimRow]:
        """Judge the claims of a study by what was measured."""
        from webdyno.studies.claims import judge_claim

        rows = []
        for claim in study.claims:
            run = self.folder / claim.experiment
            measured = RunFolder.open(run).data() if (run / HEAD_FILE).exists() else None
            row = judge_claim(study.name, claim, measured)
            if row.outcome is Outcome.NOT_JUDGED and claim.experiment in self.failures:
                row = row.replace(reported=[], why=self.failures[claim.experiment])
            rows.append(row)
        return rows

    def _went_on(self, name: str, measuring: Callable[[], MeasuredRun]) -> bool:
        """Measure, and put on record what fails; False when somebody interrupted it."""
        try:
            measured = measuring()
            self.show(measured)
        except KeyboardInterrupt:  # before the first round
            return False
        except (UserError, OperationError) as error:
            self.failures[name] = str(error).splitlines()[0]
            self.caller.notify(f"{name}: {error}")
            return True
        return not measured.interrupted

    def _measure(self, plan: Plan, share_s: float) -> MeasuredRun:
        """Run an experiment at as many points as fit into its share of the time, or go on with it.

        Each gets the rounds of its plan, all others wait until it is known which claims want more.
        So pilots and adjustments have a budget of their own, as in an ordinary run.
        """
        from webdyno.measure.budget import reduce_levels

        if plan.begun:
            experiment = RunFolder.open(plan.run).head.experiment
        else:
            whole = self.catalogue.experiment(plan.name)
            experiment = reduce_levels(whole, self.catalogue, share_s, plan.first, plan.rounds)
            budget_s = plan.need_s * BUDGET_FOR_NEED
            experiment = experiment.with_measure(budget_s=budget_s, patience=1.0)
        points = [each.point.number for each in plan_points(experiment)]
        rounds = dict.fromkeys(points, plan.rounds)
        if plan.begun:
            return measure_on(plan.run, self.caller, None, rounds)
        return measure_again(plan.name, experiment, self.catalogue, plan.run, self.caller, rounds)

    def _foresee(self, name: str, wanted: Sequence[Publication]) -> "list[Further]":
        from webdyno.studies.claims import further_rounds

        run = RunFolder.open(self.folder / name).data()
        about = [claim for study in wanted for claim in study.claims if claim.experiment == name]
        return [further for claim in about for further in further_rounds(claim, run)]
