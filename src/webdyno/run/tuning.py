"""A contender that is tuned: its rounds so far, what they tell, and what the next one tries.

A round is a run of its own: the default and some settings, of which each block sorts out the worse
half. So a search that was interrupted goes on from its folders.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp
from pathlib import Path

from webdyno.definitions import Catalogue
from webdyno.definitions.compatibility import knobs_of
from webdyno.judge.questions.races import gains_on_baseline
from webdyno.judge.validity import used_s
from webdyno.model.errors import UserError
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.knob import Knob, KnobValue, TunedSide, TuningStep
from webdyno.model.race import FEWEST_IN_RACE, HALVING, LEAGUE
from webdyno.model.records import BlockRecord
from webdyno.run.arm import SEED_BITS
from webdyno.run.folder import HEAD_FILE, RunFolder
from webdyno.run.point import rng_of
from webdyno.run.session import with_seed
from webdyno.search.tuning import TriedSettings, best_of, key_of, next_settings, shares_of, space_of

DEFAULT = "default"
CANDIDATES = 8
"""Settings of a round beside the default."""
BROKEN = -3.0
"""ln of the gain of settings with which a server doesn't do what it is asked for."""
ROUND_BUDGET_S = 600.0
"""Longer than rounds take: pilots shorten windows to what so many arms leave of it."""
FINAL_BUDGET_S, FINAL_BLOCKS = 300.0, 400

SHOWN = (
    "`webdyno stacks {stack}` shows those of a stack, docs/how-to/tune.md how a knob says that it "
    "may "
    "be tuned"
)
DECLARED = (
    "of a system of your own you say what may be turned, such as knobs.workers = "
    '{ type = "whole", min = 1, max = 16 } below [app] in webdyno.toml, for `webdyno tune rev:.` '
    "(docs/how-to/tune.md)"
)
"""Where knobs are, of a stack of the catalogue and of a user's own system."""


@dataclass
class Contender:
    """A contender: what may be turned, and what was tried so far."""

    name: str
    arm: Arm
    """As it is by default."""
    experiment: Experiment
    """What is asked of it."""
    catalogue: Catalogue
    folder: Path
    """Where the folders of its rounds are."""
    rounds: list[RunFolder] = field(default_factory=list)

    @cached_property
    def space(self) -> dict[str, Knob]:
        """The knobs that are tuned."""
        stack = self.catalogue.stack(self.arm.stack)
        site = self.catalogue.site(self.arm.site or self.experiment.site)
        return space_of(knobs_of(stack, site), self.arm.knobs)

    def check(self) -> None:
        """Raise UserError where there is nothing to tune; find the rounds of an earlier session."""
        if not self.space:
            is_own = self.catalogue.stack(self.arm.stack).is_own
            where = DECLARED if is_own else SHOWN.format(stack=self.arm.stack)
            raise UserError(f"{self.name} has no knob to tune: {where}")
        while (self.next_folder / HEAD_FILE).exists():
            self.rounds.append(RunFolder.open(self.next_folder))

    @property
    def next_folder(self) -> Path:
        """Where the next round is kept."""
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", self.name).strip("-.")
        return self.folder / f"{slug}-{len(self.rounds) + 1:02}"

    @property
    def tried(self) -> list[TriedSettings]:
        return _tried(self.rounds, self.space)

    @property
    def used_s(self) -> float:
        return sum(map(_took_s, self.rounds))

    def fits(self, each_s: float) -> bool:
        """Whether another round fits into its time; the first one always does."""
        longest_s = max(map(_took_s, self.rounds), default=0.0)
        return not self.rounds or self.used_s + longest_s <= each_s

    def next_round(self) -> Experiment | None:
        """Make the next round; None when all there is was tried.

        The best so far has to prove itself again in each. Where nothing new is left, the better
        ones of what was tried are compared again.
        """
        tried, asked = self.tried, self.experiment if self.rounds else with_seed(self.experiment)
        first = self.rounds[0].head.experiment if self.rounds else asked
        draw = rng_of(first.measure.seed, len(self.rounds), "settings")
        fresh = next_settings(self.space, tried, CANDIDATES, draw.getrandbits(SEED_BITS))
        known = sorted(tried, key=lambda candidate: -candidate.gain)
        again = known[:1] if fresh else known[: CANDIDATES // 2]
        candidates = [candidate.settings for candidate in again] + list(
            fresh[: CANDIDATES - len(again)]
        )
        if len(candidates) < FEWEST_IN_RACE - 1:
            return None
        arms = {DEFAULT: self.arm}
        for number, settings in enumerate(candidates, start=1):
            arms[f"settings {number}"] = self.arm.with_knobs(settings)
        return asked.replace(
            title=f"{self.name}, round {len(self.rounds) + 1}",
            question="Which of these settings are better than the default?",
            arms=arms,
            race=HALVING,
        ).with_measure(budget_s=ROUND_BUDGET_S)

    def summary(self) -> TunedSide:
        """Give what was done and found, as it is kept with the final run."""
        tried, best = self.tried, best_of(self.tried)
        in_blocks = [
            len(set(record.order))
            for folder in self.rounds
            for record in folder.records()
            if isinstance(record, BlockRecord)
        ]
        return TunedSide(
            name=self.name,
            arm=f"{self.name} (tuned)",
            default_arm=f"{self.name} (default)",
            stack=self.arm.stack,
            knobs=list(self.space),
            settings=dict(best.settings) if best else {},
            used_s=self.used_s,
            tried=len(tried),
            blocks=len(in_blocks),
            measurements=sum(in_blocks),
            steps=[self._step(rounds) for rounds in range(1, len(self.rounds) + 1)],
            shares=shares_of(self.space, tried, seed=0),
        )

    def _step(self, rounds: int) -> TuningStep:
        best = best_of(_tried(self.rounds[:rounds], self.space))
        used_s = sum(map(_took_s, self.rounds[:rounds]))
        return TuningStep(used_s=used_s, gain=exp(best.gain) if best else 1.0)


def _tried(rounds: Sequence[RunFolder], space: dict[str, Knob]) -> list[TriedSettings]:
    gains: dict[object, list[float]] = {}
    settings: dict[object, dict[str, KnobValue]] = {}
    for folder in rounds:
        (data,) = folder.data().points
        if not data.blocks:
            continue
        found = gains_on_baseline(data)
        for name, arm in data.experiment.arms.items():
            if name != DEFAULT:
                own = {knob: arm.knobs[knob] for knob in space}
                settings[key_of(own)] = own
                gains.setdefault(key_of(own), []).extend(found.get(name, [BROKEN]))
    return [TriedSettings(own, tuple(gains[key])) for key, own in settings.items()]


def _took_s(folder: RunFolder) -> float:
    return used_s(folder.data())


def final_experiment(
    sides: Sequence[Contender], found: Sequence[TunedSide], experiment: Experiment
) -> Experiment | None:
    """Make the experiment that judges what was found on fresh blocks; None where nothing was.

    Its arms are the default of each side, and what was found for it.
    """
    arms: dict[str, Arm] = {}
    for side, it in zip(sides, found, strict=True):
        arms[it.default_arm] = side.arm
        if it.settings:
            arms[it.arm] = side.arm.with_knobs(it.settings)
    if not any(candidate.settings for candidate in found):
        return None
    return experiment.replace(
        title=f"{' and '.join(side.name for side in sides)}, tuned",
        question="What is the tuning of each side worth?",
        arms=arms,
        race=LEAGUE if len(arms) >= FEWEST_IN_RACE else None,
        tuning=list(found),
    )
