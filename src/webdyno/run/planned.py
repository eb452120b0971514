"""The variants of an experiment with all that it names looked up, ready to start and to ask."""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdyno.definitions import Catalogue
from webdyno.generator.interface import Expectation, SentRequest
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment, Variant
from webdyno.model.load import Load
from webdyno.model.point import plan_points
from webdyno.model.request import Request, endpoints_of, with_headers
from webdyno.model.service import SERVER_ERROR
from webdyno.model.setting import SettingValue
from webdyno.model.stack import Site, Stack
from webdyno.model.text import secret_values, with_secrets
from webdyno.stack.ready import FirstRequest

MOST_CERTIFIED = 20
"""Paths whose responses are written down in each round, of each variant."""


@dataclass(frozen=True)
class PlannedRequest:
    """One request of the load, with its valid response."""

    path: str
    expect: Expectation
    label: str = ""
    """What reports call it; its path unless given."""
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    """Those of the load among them; None: those of the load alone."""
    body: bytes | None = None
    weight: float = 1.0
    endpoint: str | None = None
    contains: str | None = None
    """Text that the valid response contains."""

    def sent_to(self, url: str, load: Load) -> SentRequest:
        """Give it as a load generator takes it, to be sent to a stack."""
        headers = load.headers if self.headers is None else self.headers
        expect = self.expect.under(headers)
        return SentRequest(
            url + self.path, expect, self.method, headers, self.body, self.weight, self.endpoint
        )


def planned_requests(
    requests: Sequence[Request], load: Load, site: Site, environment: Mapping[str, str]
) -> tuple[PlannedRequest, ...]:
    """Give everything that a load asks for; raise UserError where a secret isn't there."""
    endpoints = endpoints_of(requests)
    return tuple(
        asked
        for request, endpoint in zip(requests, endpoints, strict=True)
        for asked in _spelled_out(request, load, site, environment, endpoint)
    )


def secrets_of(requests: Sequence[Request], load: Load, environment: Mapping[str, str]) -> set[str]:
    """Give what is filled in from the environment, which nothing on disk may show."""
    texts = [text for request in requests for text in request.fillable]
    return secret_values([*texts, *load.headers.values()], environment)


def _spelled_out(
    request: Request,
    load: Load,
    site: Site,
    environment: Mapping[str, str],
    endpoint: str | None,
) -> list[PlannedRequest]:
    headers = {
        name: with_secrets(value, environment)
        for name, value in with_headers(load.headers, request.sent_headers).items()
    }
    paths, body = request.paths, _body(request, environment)
    return [
        PlannedRequest(
            path=path,
            expect=_expectation(request, path, site),
            label=request.name or (path if request.method == "GET" else f"{request.method} {path}"),
            method=request.method,
            headers=headers,
            body=body,
            weight=request.weight / len(paths),
            endpoint=endpoint,
            contains=request.contains,
        )
        for path in paths
    ]


def _body(request: Request, environment: Mapping[str, str]) -> bytes | None:
    if request.body_base64 is not None:
        return base64.b64decode(request.body_base64)
    return None if request.text is None else with_secrets(request.text, environment).encode()


def _expectation(request: Request, path: str, site: Site) -> Expectation:
    """Take what the request says of its response, and for a GET what the site knows of the page.

    Of users' own systems no page is known: any status of 2xx is right unless they say another.
    """
    page = site.page(path) if request.method == "GET" and site.paths else None
    if page is None or (request.status or page.status) != page.status:
        return Expectation(request.status, body_sha256=request.sha256)
    if request.sha256 not in {None, page.body_sha256}:
        return Expectation(page.status, body_sha256=request.sha256)
    return Expectation(page.status, page.body_bytes, page.body_sha256)


@dataclass(frozen=True)
class PlannedVariant:
    """One variant with all that the experiment names looked up, to be started in every round."""

    name: str
    stack: Stack
    settings: dict[str, SettingValue]
    site: Site
    load: Load
    """What the clients do with it."""
    asked: tuple[PlannedRequest, ...]
    """What the load asks for, with the valid responses."""
    secrets: frozenset[str]
    """What of it nothing on disk may show."""
    memory_bytes: int | None
    cpus: float | None
    resets: bool = False
    """Whether what its services hold is put back before each slot."""

    @property
    def certified(self) -> tuple[PlannedRequest, ...]:
        """What the pre-flight check asks for.

        All of it, or of very many paths some, spread evenly.
        """
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
    site, load = catalogue.site(experiment.site_of(name)), experiment.load_of(name)
    requests = experiment.requests_of(name)
    asked = planned_requests(requests, load, site, os.environ)
    stack = catalogue.stack(variant.stack)
    own = [part.service for part in stack.services.values() if part.service.own]
    variables = [text for service in own for text in service.environment.values()]
    secrets = frozenset(
        secrets_of(requests, load, os.environ) | secret_values(variables, os.environ)
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
