"""Races of three variants or more, which variants leave while they go on."""

import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from webdyno.core.experiment import Experiment
from webdyno.core.question import Asking, RaceSettings
from webdyno.core.registry import NAME

RANKING_BUDGET_S, RANKING_ROUNDS = 900.0, 400
"""Of a ranking, whose later rounds are short: fewer and fewer variants are in them."""
MOST_TOGETHER = 1_000


class RankingSettings(RaceSettings):
    """Who comes first of all, and who after that: the result is ranks."""

    key: ClassVar[str] = "ranking"
    usual_measure: ClassVar[Mapping[str, object]] = {
        "budget_s": RANKING_BUDGET_S,
        "max_rounds": RANKING_ROUNDS,
    }

    together: Annotated[int, Field(ge=1, le=MOST_TOGETHER)] = 1
    """How many statements are to hold together at 95%; the ranks are one of them."""

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
