"""Whom a configuration of nginx passes requests on to."""

import re
from collections.abc import Iterator, Mapping, Sequence

from webdyno.own.backends import PORTS, Backends
from webdyno.own.nginx_read import Directive
from webdyno.own.passing import PassedOn

TABLES = {"map", "geo", "split_clients"}
"""Blocks that give a variable one of several values."""
AFTER_THE_HOST = {"uri", "request_uri", "document_uri", "is_args", "args", "query_string"}
MOST_VALUES = 1_000
DEEPEST = 5
"""Variables within the values of variables."""
_PASSING = re.compile(r"\w+_pass|endpoint")
"""The latter is where `otel_exporter` tells of each request."""
_SCHEME = re.compile(r"(?:[a-z0-9]+|\$\w+)://")
_HOST = re.compile(r"\[[^\]]*\]|[^:/\s]+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_TARGET = re.compile(
    r"(?P<scheme>[a-z0-9]+://)?(?P<host>\[[^\]]*\]|[\w.-]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?$].*)?"
)
_BY_SOCKET = re.compile(r"(?P<scheme>[a-z0-9]+://)?unix:(?P<path>[^:;\s]+)(?::(?P<rest>.*))?")
_AUTHORITY = re.compile(r"(?P<scheme>(?:[a-z0-9]+://)?)(?P<at>[^/]*)(?P<rest>/.*|)")


def looked_up(directives: Sequence[Directive]) -> list[PassedOn]:
    """Give what nginx looks up when it starts, whether or not it passes requests there."""
    groups = _groups(directives)
    members = [
        member for group in groups.values() for member in group if "resolve" not in member["args"]
    ]
    targets = [target for target in _targets(directives) if "$" not in target["args"][0]]
    return list(_hosts(_in_order(directives, [*targets, *members]), groups, {}))


def passed_on(directives: Sequence[Directive]) -> list[PassedOn]:
    """Give all places where requests are passed on.

    Where a variable names the host it is one of the values that the configuration gives it; else it
    stands as it is written.
    """
    groups, values = _groups(directives), _values(directives)
    targets = list(_targets(directives))
    named = {host for target in targets for host in _named(target["args"][0], values)}
    is_open = any("$" in host for host in named)
    members = [
        member for name, group in groups.items() if is_open or name in named for member in group
    ]
    return list(_hosts(_in_order(directives, [*targets, *members]), groups, values))


def _in_order(all_of_it: Sequence[Directive], some: Sequence[Directive]) -> list[Directive]:
    chosen = set(map(id, some))
    return [directive for directive in _everything(all_of_it) if id(directive) in chosen]


def _hosts(
    places: Sequence[Directive],
    groups: Mapping[str, Sequence[Directive]],
    values: Mapping[str, Sequence[str]],
) -> Iterator[PassedOn]:
    for place in places:
        for host in _named(place["args"][0], values):
            if place["directive"] == "server" or host not in groups:
                yield PassedOn(host, place.get("origin"))


def _named(target: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Give the hosts that a target may name: none for a Unix socket."""
    for text in _expanded(target, values):
        match = _HOST.match(text, scheme.end() if (scheme := _SCHEME.match(text)) else 0)
        if match and match[0] != "unix":
            yield match[0]


def _expanded(text: str, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Give all that a text may come to be; a variable stays that only a request has."""
    texts = [text]
    for _ in range(DEEPEST):
        texts = [new for text in texts for new in _once(text, values)]
        if len(texts) > MOST_VALUES:
            return [text]
    return list(dict.fromkeys(texts))


def _once(text: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for match in _VARIABLE.finditer(text):
        name = match[1] or match[2]
        for value in ["/"] if name in AFTER_THE_HOST else values.get(name, []):
            yield f"{text[: match.start()]}{value}{text[match.end() :]}"
        if name in AFTER_THE_HOST or name in values:
            return
    yield text


def _values(directives: Sequence[Directive]) -> dict[str, list[str]]:
    """Give what a configuration itself has variables be."""
    values: dict[str, list[str]] = {}
    for directive in _everything(directives):
        name, words = directive["directive"], directive["args"]
        if name == "set" and len(words) == 2:
            values.setdefault(words[0].lstrip("$"), []).append(words[1])
        elif name in TABLES and words:
            given = [entry["args"][-1] for entry in directive.get("block", []) if entry["args"]]
            values.setdefault(words[-1].lstrip("$"), []).extend(given)
    return {name: list(dict.fromkeys(given)) for name, given in values.items()}


def _groups(directives: Sequence[Directive]) -> dict[str, list[Directive]]:
    """Give the members of each `upstream`."""
    return {
        directive["args"][0]: [each for each in directive["block"] if _is_member(each)]
        for directive in _everything(directives)
        if directive["directive"] == "upstream" and directive["args"]
    }


def _is_member(it: Directive) -> bool:
    return it["directive"] == "server" and "block" not in it and bool(it["args"])


def _targets(directives: Sequence[Directive]) -> Iterator[Directive]:
    for directive in _everything(directives):
        if _PASSING.fullmatch(directive["directive"]) and directive["args"]:
            yield directive


def _everything(directives: Sequence[Directive]) -> Iterator[Directive]:
    for directive in directives:
        yield directive
        yield from _everything(directive.get("block", []))


def lead_to_backends(backends: Backends, directives: Sequence[Directive]) -> None:
    """Have targets, members of groups and variables name backends in the place of hosts."""
    groups, values = _groups(directives), _values(directives)
    for passing in _targets(directives):
        target = _with_host(passing["args"][0], values)
        passing["args"] = [_instead(target, groups, backends), *passing["args"][1:]]
    for member in (
        member for group in groups.values() for member in group
    ):  # also one called like its group
        member["args"] = [_instead(member["args"][0], {}, backends), *member["args"][1:]]
    for directive in _everything(directives):
        is_set = directive["directive"] == "set" and len(directive["args"]) == 2
        for entry in (
            [directive]
            if is_set
            else directive.get("block", [])
            if directive["directive"] in TABLES
            else []
        ):
            *before, value = entry["args"] or [""]
            if _SCHEME.match(value) or re.search(r"[^:]:[0-9]+$", value):
                entry["args"] = [*before, _instead(value, groups, backends)]


def _with_host(target: str, values: Mapping[str, Sequence[str]]) -> str:
    """Give a target whose host is a variable with one value with that value."""
    match = _AUTHORITY.fullmatch(target)
    if not match or "$" not in match["at"]:
        return target
    may_be = _expanded(match["at"], values)
    if len(may_be) != 1 or not re.fullmatch(r"[\w.-]+(?::[0-9]+)?", may_be[0]):
        return target
    return f"{match['scheme']}{may_be[0]}{match['rest']}"


def _instead(target: str, groups: Mapping[str, Sequence[Directive]], backends: Backends) -> str:
    """Give a target with the address of a backend, if it leads to one; else as it is."""
    if match := _BY_SOCKET.fullmatch(target):
        address, rest = backends.of_socket(match["path"]), match["rest"] or ""
    elif (match := _TARGET.fullmatch(target)) and match["host"] not in groups:
        scheme = (match["scheme"] or "http://").removesuffix("://")
        port = int(match["port"]) if match["port"] else PORTS.get(scheme)
        address, rest = backends.of_host(match["host"], port), match["rest"] or ""
    else:
        return target
    if address is None:
        return target
    where = f"unix:{address.socket}{':' if rest else ''}" if address.socket else address.text
    return f"{match['scheme'] or ''}{where}{rest}"
