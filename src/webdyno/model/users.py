"""What must hold where connections are users, who log in and go through flows."""

from collections.abc import Mapping, Sequence

from webdyno.model.load import Load
from webdyno.model.request import Request
from webdyno.model.session import Values, places, unknown_place


def has_users(
    login: Sequence[Request], requests: Sequence[Request], values: Mapping[str, Values]
) -> bool:
    """Whether connections are users with cookies and values of their own."""
    return bool(login or values or any(request.flow or request.capture for request in requests))


def check_users(
    login: Sequence[Request],
    requests: Sequence[Request],
    values: Mapping[str, Values],
    load: Load,
) -> None:
    """Raise ValueError where users can't do what is asked of them."""
    if has_users(login, requests, values):
        _check_load(load, flows=any(request.flow for request in requests))
    if any(request.flow for request in login):
        raise ValueError("[[login]] is one flow already; omit flow there")
    for request in (*login, *requests):
        if len(request.paths) > 1 and (request.flow or request in login):
            raise ValueError(f"{request.path} stands for many; give a value from [values] instead")
    _check_places(login, requests, values)


def _check_load(load: Load, *, flows: bool) -> None:
    if load.protocol in {"h2", "h2c"}:
        raise ValueError("[[login]], values, flows and captures are there over HTTP/1.1 only")
    if load.idle_connections or load.slow_readers:
        raise ValueError("idle_connections and slow_readers are no users; omit them")
    if flows and (load.zipf is not None or load.replay or load.due != "request"):
        raise ValueError("a flow says which request follows; omit zipf, replay and due")


def _check_places(
    login: Sequence[Request], requests: Sequence[Request], values: Mapping[str, Values]
) -> None:
    """Raise ValueError where a request needs what nothing before it gives."""
    captured: list[str] = []
    for request in login:
        _check_place(request, values, captured)
        captured += request.capture
    before, flow = captured, None
    for request in requests:
        if request.flow is None or request.flow != flow:
            before, flow = captured, request.flow
        if has_users(login, requests, values) or request.path.startswith("{{"):
            _check_place(request, values, before)
        before = [*before, *request.capture]


def _check_place(request: Request, values: Mapping[str, Values], captured: Sequence[str]) -> None:
    unknown = unknown_place(places(request.texts), values, captured)
    if unknown is None:
        return
    table = unknown.partition(".")[0]
    if table in values:
        columns = list((values[table].rows or [{}])[0])
        know = f"[values.{table}] has {', '.join(columns)}" if columns else "name a column of it"
        raise ValueError(f"{request.label}: {{{{{unknown}}}}} is no value; {know}")
    raise ValueError(
        f"{request.label}: nothing gives {{{{{unknown}}}}}: no capture of a request before it in "
        f"[[login]] or its flow, and no [values.{table}]"
    )
