"""The pre-flight check where connections are users: one logs in and goes through all once.

The load generator does it, so that what is checked is what will be sent.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import regex

from webdyno.generator.interface import Generator, GeneratorError, LoadOrder, TracedResponse
from webdyno.model.load import Load
from webdyno.model.records import Response
from webdyno.model.text import HIDDEN
from webdyno.run.planned import PlannedRequest, PlannedUsers
from webdyno.run.preflight import Undecodable, described, unanswered
from webdyno.stack.speaking import ServerResponse

LONGEST_S = 600.0
SHORTEST_HIDDEN = 4
"""Captured values of fewer letters may stand anywhere in a page."""
FIRST = "HTTP/1.1"


def ask_as_user(
    url: str,
    requests: Sequence[PlannedRequest],
    load: Load,
    users: PlannedUsers,
    generator: Generator,
    ignored: Sequence[str] = (),
    *,
    elsewhere: bool = False,
) -> list[Response]:
    """Have one user log in and ask everything once; keep the responses, without what is personal.

    Where the login fails, its response is the only one. `elsewhere`: on a machine that is vouched
    for.
    """
    order = LoadOrder(
        id="pre-flight check",
        requests=tuple(asked.sent_to(url, load) for asked in requests),
        load=_alone(load),
        duration_s=LONGEST_S,
        users=users.sent_to(url, load, uuid4().hex),
        elsewhere=elsewhere,
    )
    try:
        traced = generator.trace(replace(order, count=len(order.flows())))
    except GeneratorError as error:
        return [unanswered(requests[0]).replace(error=str(error))]
    for said in traced:
        if said.is_login and said.failure is not None:
            told = unanswered(users.login[said.number])
            return [told.replace(error=_without_address(said.failure, url), is_login=True)]
    captured = {value for said in traced for value in said.captured.values()}
    longest_first = sorted(captured, key=len, reverse=True)
    hidden = [regex.escape(value) for value in longest_first if len(value) >= SHORTEST_HIDDEN]
    answers = {said.number: said for said in traced if not said.is_login}
    return [
        _response(url, asked, answers.get(number), (*ignored, *hidden))
        for number, asked in enumerate(requests)
    ]


def _alone(load: Load) -> Load:
    """Give the load of one user who doesn't pause."""
    at_once = {"loop": "closed", "rate_per_s": None, "rate_per_connection": None, "burst": 1}
    no_waits = {"send_lag_budget": 0.0, "think_s": 0.0, "connection_ramp_s": 0.0}
    return load.replace(
        **at_once,
        **no_waits,
        connections=1,
        zipf=None,
        replay=None,
        arrivals="poisson",
        requests=None,
    )


def _without_address(failure: str, url: str) -> str:
    """Leave out what the step's name says already: method and address."""
    return re.sub(rf"^(?:[A-Z]+ )?{re.escape(url)}\S*: ", "", failure)


def _response(
    url: str, asked: PlannedRequest, said: TracedResponse | None, ignored: Sequence[str]
) -> Response:
    told = unanswered(asked)
    if said is None:
        return told.replace(error="a request before it in its flow failed")
    if not said.status:
        return told.replace(error=_without_address(said.failure or "there was no response", url))
    lines = said.head.split("\r\n")
    pairs = [
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])
    ]
    headers = [
        (name, f"{value.partition('=')[0]}={HIDDEN}" if name.lower() == "set-cookie" else value)
        for name, value in pairs
        if name
    ]
    whole = ServerResponse(
        said.status, lines[0].partition(" ")[0] or FIRST, headers, said.body, len(said.head)
    )
    try:
        response = described(told, whole, asked, ignored, asked.headers or {})
    except (zlib.error, Undecodable) as error:
        return told.replace(error=str(error))
    is_capture = said.failure is not None and response.has_right_status and response.lacks is None
    return told.replace(error=_without_address(str(said.failure), url)) if is_capture else response
