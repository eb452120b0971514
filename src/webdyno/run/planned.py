"""The variants of an experiment with all that it names looked up, ready to start and to ask."""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webdyno.definitions import Catalogue
from webdyno.generator.interface import Expectation, SentRequest, Step, Users
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment
from webdyno.model.load import Load
from webdyno.model.point import plan_points
from webdyno.model.request import EventFormat, Request, endpoints_of, header, with_headers
from webdyno.model.service import SERVER_ERROR
from webdyno.model.setting import SettingValue
from webdyno.model.stack import Page, Site, Stack
from webdyno.model.text import secret_values, with_secrets
from webdyno.model.variant import Variant
from webdyno.run.users import encoding_of, engine_values, sent_form, sent_path, with_places
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
    page: Page = field(default_factory=Page)
    """What the site says of it."""
    has_rules: bool = False
    """Whether the site's rules say what is right, whatever else responses hold."""
    step: Step | None = None
    """What a user does with it; None where connections are no users."""
    events: EventFormat | None = None
    """The response is a stream of these."""

    def sent_to(self, url: str, load: Load) -> SentRequest:
        """Give it as a load generator takes it, to be sent to a stack."""
        headers = load.headers if self.headers is None else self.headers
        expect = self.expect.under(headers)
        return SentRequest(
            url + self.path,
            expect,
            self.method,
            headers,
            self.body,
            self.weight,
            self.endpoint,
            self.step,
            self.events,
        )


@dataclass(frozen=True)
class PlannedUsers:
    """Users who log in before they are measured."""

    login: tuple[PlannedRequest, ...]
    values: Mapping[str, Any]
    """In the form of the engine's contract."""

    def sent_to(self, url: str, load: Load, key: str) -> Users:
        """Give them as a load generator takes them; they stay logged in for orders of that key."""
        return Users(tuple(step.sent_to(url, load) for step in self.login), self.values, key)


def planned_users(
    experiment: Experiment,
    requests: Sequence[Request],
    load: Load,
    environment: Mapping[str, str],
) -> PlannedUsers | None:
    """Give who makes the load; None where connections ask alike."""
    if not experiment.has_users:
        return None
    login = [
        replace(
            _as_user(
                _planned(request, request.path, load, Expectation(request.status), environment),
                request,
            ),
            label=f"login step {number}, {request.label}",
        )
        for number, request in enumerate(experiment.login, 1)
    ]
    values = engine_values(experiment.values, [*experiment.login, *requests], environment)
    return PlannedUsers(tuple(login), values)


def with_steps(
    asked: Sequence[PlannedRequest], requests: Sequence[Request]
) -> tuple[PlannedRequest, ...]:
    """Give requests as users make them."""
    of_each = (request for request in requests for _ in request.paths)
    return tuple(_as_user(step, request) for step, request in zip(asked, of_each, strict=True))


def _as_user(asked: PlannedRequest, request: Request) -> PlannedRequest:
    """Give a request with places for a user's values, and what the user does with it."""
    body = asked.body
    if body is not None and request.body_base64 is None:
        body = with_places(body.decode(), encoding_of(request)).encode()
    headers = {name: with_places(value) for name, value in (asked.headers or {}).items()}
    path = sent_path(asked.path)
    return replace(asked, path=path, headers=headers, body=body, step=_step(request))


def _step(request: Request) -> Step:
    return Step(
        request.flow,
        {
            name: its.model_dump(by_alias=True, exclude_none=True)
            for name, its in request.capture.items()
        },
        request.think_s,
        request.contains,
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
    paths = request.paths
    planned = (
        _planned(request, path, load, _expectation(request, path, site), environment)
        for path in paths
    )
    weight = request.weight / len(paths)
    return [
        replace(
            prepared,
            weight=weight,
            endpoint=endpoint,
            page=_page(request, path, site),
            has_rules=bool(site.rules),
        )
        for prepared, path in zip(planned, paths, strict=True)
    ]


def _page(request: Request, path: str, site: Site) -> Page:
    """Give what the site says of a GET's response."""
    return site.page(path) if request.method == "GET" and site.paths else Page()


def _planned(
    request: Request, path: str, load: Load, expect: Expectation, environment: Mapping[str, str]
) -> PlannedRequest:
    headers = {
        name: with_secrets(value, environment)
        for name, value in with_headers(load.headers, request.sent_headers).items()
    }
    return PlannedRequest(
        path=path,
        expect=expect,
        label=request.name or (path if request.method == "GET" else f"{request.method} {path}"),
        method=request.method,
        headers=headers,
        body=_body(request, environment),
        contains=request.contains,
        events=request.events,
    )


def _body(request: Request, environment: Mapping[str, str]) -> bytes | None:
    if request.body_base64 is not None:
        return base64.b64decode(request.body_base64)
    if request.form is not None:
        return sent_form(request.form, environment).encode()
    if request.text is None:
        return None
    return with_secrets(request.text, environment).encode()


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
    users: PlannedUsers | None = None
    """Who asks; None where connections ask alike."""

    @property
    def certified(self) -> tuple[PlannedRequest, ...]:
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


def first_request(asked: Sequence[PlannedRequest], load: Load) -> FirstRequest | None:
    """Give what shows that a system is ready that is asked so: its first GET, if there is one."""
    first = next(
        (request for request in asked if request.method == "GET" and "{{" not in request.path), None
    )
    if first is None:
        return None
    wanted = first.expect.status
    return FirstRequest(
        first.path,
        lambda status, _: status == wanted or status < SERVER_ERROR,
        load.headers if first.headers is None else first.headers,
        checks_certificate=bool(load.tls_verify),
    )


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
    if users is not None:
        asked = with_steps(asked, requests)
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
