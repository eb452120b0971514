"""The variants of an experiment with all that it names looked up, ready to start and to ask.

Users make requests before the load (logins), and have values of their own, which the load generator
fills in.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from webdyno.config import Catalogue
from webdyno.config.calls import filled, filled_json, values_of_call
from webdyno.config.columns import secret_columns
from webdyno.config.requests import read_rows
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.hiding import keep_secret
from webdyno.core.load import Load
from webdyno.core.metrics import CPU_TIME, INSTRUCTIONS
from webdyno.core.request import WrittenRequest, endpoints_of, header, with_headers
from webdyno.core.service import SERVER_ERROR
from webdyno.core.session import Row, Values
from webdyno.core.setting import SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.core.sweep import plan_points
from webdyno.core.text import SECRET, secret_values, with_secrets
from webdyno.core.variant import Variant
from webdyno.load.interface import Expectation, Request, Users
from webdyno.servers.ready import FirstRequest

SWITCHED = 101
"""The status by which a server switches to WebSocket."""
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
    """Values that nothing on disk may show."""
    memory_bytes: int | None
    cpus: float | None
    resets: bool = False
    """Whether what its services hold is put back before each slot."""
    users: Users | None = None
    """Who asks; None where connections ask alike."""

    @property
    def preflight_requests(self) -> tuple[Request, ...]:
        """What the pre-flight check asks for: all, or of very many paths some; of users all."""
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
    """Return a load as a stack's clients make it.

    Unless it says otherwise, they ask for the host that a URL names, and check another machine's
    certificate.
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
    """Return each variant once for each stack and site that it has at any point."""
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
    asked = planned_requests(requests, load, site, os.environ, experiment.values)
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


class AskedByUsers(Protocol):
    """An experiment, or one system, that may have users."""

    @property
    def login(self) -> Sequence[WrittenRequest]: ...

    @property
    def values(self) -> Mapping[str, Values]: ...

    @property
    def has_users(self) -> bool: ...


def planned_users(
    experiment: AskedByUsers,
    requests: Sequence[WrittenRequest],
    load: Load,
    environment: Mapping[str, str],
) -> Users | None:
    """Return who makes the load; None where connections ask alike."""
    if not experiment.has_users:
        return None
    login = []
    for number, written in enumerate(experiment.login, 1):
        expect = Expectation(written.status, contains=written.contains)
        request = _plan_request(written, written.path, load, expect, environment)
        login.append(replace(request, label=f"login step {number}, {written.label}"))
    columns = secret_columns(experiment.login, requests, load.headers)
    return Users(tuple(login), engine_values(experiment.values, environment, columns))


def planned_requests(
    requests: Sequence[WrittenRequest],
    load: Load,
    site: Site,
    environment: Mapping[str, str],
    values: Mapping[str, Values] = MappingProxyType({}),
) -> tuple[Request, ...]:
    """Return everything that a load asks for; raise UserError where a secret isn't there.

    `values`: those that calls are filled with; users get theirs from the load generator.
    """
    planned = []
    for written, endpoint in zip(requests, endpoints_of(requests), strict=True):
        fillings = [*values_of_call(written, values, environment)]
        requests_of_it = []
        for path in written.paths:
            expect = _expectation(written, path, site)
            request = _plan_request(written, path, load, expect, environment)
            requests_of_it += [_with_values(request, its) if its else request for its in fillings]
        weight = written.weight / len(requests_of_it)
        planned += [replace(each, weight=weight, endpoint=endpoint) for each in requests_of_it]
    return tuple(planned)


def _with_values(call: Request, values: Mapping[str, str]) -> Request:
    """Return a call that is filled with values."""
    contains = call.expect.contains
    return replace(
        call,
        headers={name: filled(text, values) for name, text in call.headers.items()},
        json=call.json and filled_json(call.json, values),
        expect=replace(call.expect, contains=contains and filled(contains, values)),
    )


def secrets_of(
    requests: Sequence[WrittenRequest], load: Load, environment: Mapping[str, str]
) -> set[str]:
    """Return what is filled in from the environment, which nothing on disk may show."""
    texts = [text for request in requests for text in request.fillable]
    return secret_values([*texts, *load.headers.values()], environment)


def _plan_request(
    written: WrittenRequest,
    path: str,
    load: Load,
    expect: Expectation,
    environment: Mapping[str, str],
) -> Request:
    headers = {
        name: with_secrets(value, environment)
        for name, value in with_headers(load.headers, written.sent_headers).items()
    }
    return Request(
        path=path,
        expect=expect,
        label=written.name or written.named(path),
        method="POST" if written.is_call else written.method,
        headers=headers,
        is_call=written.is_call,
        json=_call_json(written, environment),
        body=written.content(environment),
        message=written.message_kind,
        events=written.events,
        flow=written.flow,
        capture={
            name: its.model_dump(by_alias=True, exclude_none=True)
            for name, its in written.capture.items()
        },
        think_s=written.think_s,
    )


def _call_json(written: WrittenRequest, environment: Mapping[str, str]) -> str | None:
    """Return what a call sends, with secrets as JSON has them."""
    if (text := written.call_json) is None or not SECRET.search(text):
        return text
    return with_secrets(text, {name: json.dumps(its)[1:-1] for name, its in environment.items()})


def _expectation(written: WrittenRequest, path: str, site: Site) -> Expectation:
    """Take what the request says of its response, and for a GET what the site knows of the page.

    Of users' own systems no page is known: any status of 2xx is right unless they say another. Of
    messages it is that by which the WebSocket was opened.
    """
    is_get = written.method == "GET" and not written.message_kind
    page = site.page(path) if is_get and site.paths else None
    expect = Expectation(
        SWITCHED if written.message_kind else written.status,
        body_sha256=written.sha256,
        contains=written.contains,
        headers=page.headers if page else {},
        reads=page.reads if page else 0,
        has_rules=bool(site.rules),
    )
    if page is None or (written.status or page.status) != page.status:
        return expect
    if written.sha256 not in {None, page.body_sha256}:
        return replace(expect, status=page.status)
    return replace(
        expect, status=page.status, body_bytes=page.body_bytes, body_sha256=page.body_sha256
    )


def first_request(requests: Sequence[Request], load: Load) -> FirstRequest | None:
    """Return what shows that a system is ready that is asked so: its first GET, if there is one."""
    first = next(
        (
            request
            for request in requests
            if request.method == "GET" and not request.message and "{{" not in request.path
        ),
        None,
    )
    if first is None:
        return None
    wanted = first.expect.status
    return FirstRequest(
        first.path,
        lambda status, _: status == wanted or status < SERVER_ERROR,
        first.headers,
        checks_certificate=bool(load.tls_verify),
    )


def engine_values(
    values: Mapping[str, Values], environment: Mapping[str, str], hidden: Collection[str] = ()
) -> dict[str, Any]:
    """Return values in the form of the engine's contract, files read."""
    return {name: _engine_value(name, its, environment, hidden) for name, its in values.items()}


def _engine_value(
    name: str, its: Values, environment: Mapping[str, str], hidden: Collection[str]
) -> dict[str, Any]:
    if its.file is not None:
        rows, _ = read_rows(Path(its.file), f"values.{name}", its.sha256)
        secret = [column for column in rows[0] if f"{name}.{column}" in hidden]
        keep_secret(row[column] for row in rows for column in secret)
        return _table(rows, its.each)
    if its.rows is not None:
        filled = [
            {key: with_secrets(text, environment) for key, text in row.items()} for row in its.rows
        ]
        return _table(filled, its.each)
    if its.counter is not None:
        return {"counter": {"from": its.counter, "step": 1}}
    if its.choose is not None:
        return {"choose": list(its.choose)}
    if its.random is not None:
        return {"random": {"from": its.random[0], "to": its.random[1]}}
    return {"unique": {}}


def _table(rows: Sequence[Row], each: str) -> dict[str, Any]:
    columns = list(rows[0])
    table = [[row[column] for column in columns] for row in rows]
    return {"rows": {"columns": columns, "rows": table, "each": each}}


def sampled_experiment(experiment: Experiment, catalogue: Catalogue) -> Experiment:
    """Return the experiment with CPU profiling on, and with symbol names where there are any."""
    variants = {name: _with_names(name, experiment, catalogue) for name in experiment.variants}
    measure = experiment.measure
    if measure.decide_on == INSTRUCTIONS:  # perf has the counters
        measure = measure.replace(decide_on=CPU_TIME)
    return experiment.replace(profile=True, variants=variants, measure=measure)


def _with_names(variant: str, experiment: Experiment, catalogue: Catalogue) -> Variant:
    here = experiment.variants[variant]
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(variant))
    named: dict[str, SettingValue] = {
        name: setting.when_sampled
        for name, (setting, _) in stack.with_services(site.services).exposed_settings().items()
        if setting.when_sampled is not None
    }
    return here.with_settings(named)
