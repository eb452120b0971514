"""Races of three variants or more, which variants leave while they go on."""

import shlex
from abc import ABC
from collections.abc import Mapping
from typing import ClassVar

from webdyno.model.command import NAME
from webdyno.model.experiment import Experiment
from webdyno.model.question import Asking, QuestionSettings

FEWEST_IN_RACE = 3
RANKING_BUDGET_S, RANKING_ROUNDS = 900.0, 400
"""Of a ranking, whose later rounds are short: fewer and fewer variants are in them."""


class RaceSettings(QuestionSettings, ABC):
    """What all races have in common."""

    def check(self, experiment: Asking) -> None:
        """Raise ValueError where so many variants can't race."""
        if len(experiment.variants) < FEWEST_IN_RACE:
            raise ValueError("a race has three variants at least; two are compared without it")


class RankingSettings(RaceSettings):
    """Who comes first of all, and who after that: the result is ranks."""

    key: ClassVar[str] = "ranking"
    usual_measure: ClassVar[Mapping[str, object]] = {
        "budget_s": RANKING_BUDGET_S,
        "max_rounds": RANKING_ROUNDS,
    }

    def command_elsewhere(self, experiment: Asking) -> str | None:
        """Return it for stacks of the catalog as they are, under the usual load."""
        measure, paths = experiment.measure, experiment.load.paths
        as_they_are = {
            "title": experiment.title,
            "question": experiment.question,
            "site": experiment.site,
            self.key: {},
            "load": {"paths": paths},
            "measure": {
                "budget_s": measure.budget_s,
                "budget_is_limit": measure.budget_is_limit,
                "seed": measure.seed,
            },
            "variants": {name: {"stack": name} for name in experiment.variants},
        }
        if experiment != Experiment.model_validate(as_they_are):
            return None
        flags = [word for path in paths for word in ("--path", path)]
        flags += ["--time", f"{measure.budget_s:g}s"] if measure.budget_is_limit else []
        return shlex.join(
            [NAME, "compare", *experiment.variants, "--site", experiment.site, *flags]
        )


class HalvingSettings(RaceSettings):
    """Which are better than the baseline: after each round the worse half of the others leaves."""

    key: ClassVar[str] = "halving"
