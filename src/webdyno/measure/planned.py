"""The variants of an experiment with all that it names looked up, ready to start and to ask."""

import os
from dataclasses import dataclass

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.point import plan_points
from webdyno.core.request import header
from webdyno.core.setting import SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.core.text import secret_values
from webdyno.core.variant import Variant
from webdyno.load.interface import Request, Users
from webdyno.measure.requests import first_request, planned_requests, planned_users, secrets_of
from webdyno.servers.ready import FirstRequest

MOST_CERTIFIED = 20
"""Paths whose responses are written down in each round, of each variant."""


@dataclass(frozen=True)
class PlannedVariant:
    """One variant with all that the experiment names looked up, to be started in every round."""

    name: str
    stack: Stack
    settings: dict[str, SettingValue]
    site: Site
    load: Load
    """What the clients do with it."""
    asked: tuple[Request, ...]
    """What the load asks for, with the valid responses."""
    secrets: frozenset[str]
    """What of it nothing on disk may show."""
    memory_bytes: int | None
    cpus: float | None
    resets: bool = False
    """Whether what its services hold is put back before each slot."""
    users: Users | None = None
    """Who asks; None where connections ask alike."""

    @property
    def certified(self) -> tuple[Request, ...]:
        """What the pre-flight check asks for.

        All of it, or of very many paths some, spread evenly; of users all.
        """
        if self.users is not None:
            return self.asked
        step = -(-len(self.asked) // MOST_CERTIFIED)
        return self.asked[::step]

    @property
    def first_request(self) -> FirstRequest | None:
        """What shows that a system of the user's own is ready: its first GET, if there is one."""
        login = self.users.login if self.users else ()
        return first_request((*login, *self.asked), self.load)

    @property
    def shares(self) -> list[float]:
        """How often each is asked for, as shares that add up to 1."""
        if self.load.zipf is not None:
            return self.load.shares(len(self.asked))
        total = sum(asked.weight for asked in self.asked)
        return [asked.weight / total for asked in self.asked]


def load_on(stack: Stack, load: Load) -> Load:
    """Give a load as a stack's clients make it.

    Where it says nothing else they ask for the host that a URL names, and check the certificate of
    another machine.
    """
    own = stack.services[stack.front].service.own
    if own is None:
        return load
    if own.called and header(load.headers, "host") is None:
        load = load.replace(headers={**load.headers, "Host": own.called})
    if own.elsewhere and load.tls_verify is None:
        load = load.replace(tls_verify=True)
    return load


def plan_variants(experiment: Experiment, catalogue: Catalogue) -> list[PlannedVariant]:
    """Look everything up that an experiment names, in the experiment's order of variants."""
    return [
        _plan_variant(name, variant, experiment, catalogue)
        for name, variant in experiment.variants.items()
    ]


def variants_of_all_points(experiment: Experiment, catalogue: Catalogue) -> list[PlannedVariant]:
    """Give each variant once for each stack and site that it has at any point."""
    variants = [
        variant
        for plan in plan_points(experiment)
        for variant in plan_variants(plan.experiment, catalogue)
    ]
    return list(
        {
            (variant.name, variant.stack.name, variant.site.name): variant for variant in variants
        }.values()
    )


def _plan_variant(
    name: str, variant: Variant, experiment: Experiment, catalogue: Catalogue
) -> PlannedVariant:
    stack, site = catalogue.stack(variant.stack), catalogue.site(experiment.site_of(name))
    load = load_on(stack, experiment.load_of(name))
    requests = experiment.requests_of(name)
    asked = planned_requests(requests, load, site, os.environ)
    users = planned_users(experiment, requests, load, os.environ)
    own = [part.service for part in stack.services.values() if part.service.own]
    variables = [text for service in own for text in service.environment.values()]
    rows = [row for its in experiment.values.values() for row in its.rows or []]
    variables += [text for row in rows for text in row.values()]
    secrets = frozenset(
        secrets_of([*experiment.login, *requests], load, os.environ)
        | secret_values(variables, os.environ)
    )
    return PlannedVariant(
        name=name,
        stack=stack,
        settings=experiment.settings_of(name),
        site=site,
        load=load,
        asked=asked,
        secrets=secrets,
        memory_bytes=variant.memory,
        cpus=variant.cpus,
        resets=_resets(name, experiment, stack.with_services(site.services)),
        users=users,
    )


def _resets(name: str, experiment: Experiment, served: Stack) -> bool:
    """Whether services are put back before each slot; raise UserError where none of them can be."""
    if experiment.state.reset != "slot":
        return False
    if not any(part.service.restore for part in served.services.values()):
        raise UserError(
            f'state.reset = "slot": {name} has no service that can be put back; services.db = '
            '"postgresql" gives it one, and state.before_round runs commands of your own'
        )
    return True
