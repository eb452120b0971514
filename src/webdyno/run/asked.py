"""What an arm is asked for, ready to be sent: paths spelled out, secrets filled in."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdyno.generator import Expectation
from webdyno.generator import Request as SentRequest
from webdyno.model.load import Load
from webdyno.model.request import Request, endpoints_of, with_headers
from webdyno.model.stack import Site
from webdyno.model.text import secret_values, with_secrets


@dataclass(frozen=True)
class PlannedRequest:
    """One request of the load, with its right answer."""

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
    """Text that the right answer contains."""

    def sent_to(self, url: str, load: Load) -> SentRequest:
        """Give it as a load generator takes it, to be sent to a stack."""
        headers = load.headers if self.headers is None else self.headers
        expect = self.expect.under(headers)
        return SentRequest(
            url + self.path, expect, self.method, headers, self.body, self.weight, self.endpoint
        )


def asked_for(
    requests: Sequence[Request], load: Load, site: Site, environment: Mapping[str, str]
) -> tuple[PlannedRequest, ...]:
    """Give everything that a load asks for; raise Mistake where a secret isn't there."""
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
    """Take what the request says of its answer, and for a GET what the site knows of the page.

    Of users' own systems no page is known: any status of 2xx is right unless they say another.
    """
    page = site.page(path) if request.method == "GET" and site.paths else None
    if page is None or (request.status or page.status) != page.status:
        return Expectation(request.status, body_sha256=request.sha256)
    if request.sha256 not in {None, page.body_sha256}:
        return Expectation(page.status, body_sha256=request.sha256)
    return Expectation(page.status, page.body_bytes, page.body_sha256)
