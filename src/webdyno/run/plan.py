"""The plan of a run: each arm with its stack, its site and the right answers."""

from dataclasses import dataclass

from webdyno.definitions import Catalogue
from webdyno.generator import Expectation
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.knob import KnobValue
from webdyno.model.paths import spell_out
from webdyno.model.site import Site
from webdyno.model.stack import Stack

MOST_CERTIFIED = 20
"""Paths whose answers are written down in each block, of each arm."""


@dataclass(frozen=True)
class ArmPlan:
    """One arm, ready to be started again in every block."""

    name: str
    stack: Stack
    knobs: dict[str, KnobValue]
    site: Site
    asked: tuple[tuple[str, Expectation], ...]
    """Paths that the load asks for, with their right answers."""
    memory_bytes: int | None
    cpus: int | None

    @property
    def certified(self) -> tuple[tuple[str, Expectation], ...]:
        """What the certificate asks for: all of it, or of very many paths some, spread evenly."""
        step = -(-len(self.asked) // MOST_CERTIFIED)
        return self.asked[::step]


def plan_arms(experiment: Experiment, catalogue: Catalogue) -> list[ArmPlan]:
    """Look everything up that an experiment names, in the experiment's order of arms."""
    return [_plan_arm(name, arm, experiment, catalogue) for name, arm in experiment.arms.items()]


def _plan_arm(name: str, arm: Arm, experiment: Experiment, catalogue: Catalogue) -> ArmPlan:
    site = catalogue.site(arm.site or experiment.site)
    asked = tuple(
        (path, _expectation(site, path))
        for written in arm.paths or experiment.load.paths
        for path in spell_out(written)
    )
    stack = catalogue.stack(arm.stack)
    return ArmPlan(name, stack, arm.knobs, site, asked, arm.memory, arm.cpus)


def _expectation(site: Site, path: str) -> Expectation:
    page = site.page(path)
    return Expectation(page.status, page.body_bytes, page.body_sha256)
