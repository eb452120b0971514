"""The arms of an experiment with everything looked up that it names, ready to be started."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from webdyno.definitions import Catalogue
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.knob import KnobValue
from webdyno.model.load import Load
from webdyno.model.point import plan_points
from webdyno.model.service import SERVER_ERROR
from webdyno.model.stack import Site, Stack
from webdyno.model.text import secret_values
from webdyno.run.asked import PlannedRequest, asked_for, secrets_of
from webdyno.stack.ready import FirstRequest

MOST_CERTIFIED = 20
"""Paths whose answers are written down in each block, of each arm."""


@dataclass(frozen=True)
class PlannedArm:
    """One arm with everything that the experiment names looked up, to be started in every block."""

    name: str
    stack: Stack
    knobs: dict[str, KnobValue]
    site: Site
    load: Load
    """What the clients do with it."""
    asked: tuple[PlannedRequest, ...]
    """What the load asks for, with the right answers."""
    secrets: frozenset[str]
    """What of it nothing on disk may show."""
    memory_bytes: int | None
    cpus: float | None

    @property
    def certified(self) -> tuple[PlannedRequest, ...]:
        """What the certificate asks for: all of it, or of very many paths some, spread evenly."""
        step = -(-len(self.asked) // MOST_CERTIFIED)
        return self.asked[::step]

    @property
    def first_request(self) -> FirstRequest | None:
        """What shows that a system of the user's own is ready: its first GET, if there is one."""
        return first_request(self.asked, self.load)

    @property
    def shares(self) -> list[float]:
        """How often each is asked for, as shares that add up to 1."""
        if self.load.zipf is not None:
            return self.load.shares(len(self.asked))
        total = sum(asked.weight for asked in self.asked)
        return [asked.weight / total for asked in self.asked]


def first_request(asked: Sequence[PlannedRequest], load: Load) -> FirstRequest | None:
    """Give what shows that a system is ready that is asked so: its first GET, if there is one."""
    first = next((it for it in asked if it.method == "GET"), None)
    if first is None:
        return None
    wanted = first.expect.status
    return FirstRequest(
        first.path,
        lambda status, _: status == wanted or status < SERVER_ERROR,
        load.headers if first.headers is None else first.headers,
    )


def plan_arms(experiment: Experiment, catalogue: Catalogue) -> list[PlannedArm]:
    """Look everything up that an experiment names, in the experiment's order of arms."""
    return [_plan_arm(name, arm, experiment, catalogue) for name, arm in experiment.arms.items()]


def arms_of_all_points(experiment: Experiment, catalogue: Catalogue) -> list[PlannedArm]:
    """Give each arm once for each stack and site that it has at any point."""
    arms = [
        arm for plan in plan_points(experiment) for arm in plan_arms(plan.experiment, catalogue)
    ]
    return list({(arm.name, arm.stack.name, arm.site.name): arm for arm in arms}.values())


def _plan_arm(name: str, arm: Arm, experiment: Experiment, catalogue: Catalogue) -> PlannedArm:
    site, load = catalogue.site(experiment.site_of(name)), experiment.load_of(name)
    requests = experiment.requests_of(name)
    asked = asked_for(requests, load, site, os.environ)
    stack = catalogue.stack(arm.stack)
    own = [part.service for part in stack.services.values() if part.service.own]
    variables = [text for service in own for text in service.environment.values()]
    secrets = frozenset(
        secrets_of(requests, load, os.environ) | secret_values(variables, os.environ)
    )
    knobs = experiment.knobs_of(name)
    return PlannedArm(name, stack, knobs, site, load, asked, secrets, arm.memory, arm.cpus)
