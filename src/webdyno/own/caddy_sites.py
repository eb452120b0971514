"""The sites of a Caddy server: what they do, and which of them is measured."""

from collections.abc import Iterator
from typing import Any

from webdyno.model.format import listed
from webdyno.model.mistake import Mistake
from webdyno.own.moved import Wanted

Json = dict[str, Any]

FILES, CONTENT, WORDS, REDIRECTS = range(4)
"""What a site gives, the likeliest to be measured first: files, others' answers, a fixed answer,
nothing but a redirect or an end."""
SERVES_FILES = {"file_server", "templates"}
GIVES_CONTENT = {"reverse_proxy", "php", "acme_server", "metrics"}


def answer_any_host(wanted: Wanted, server: Json, changes: list[str]) -> None:
    """Have one site answer requests that name none, its log included.

    It is the one that gives most, unless somebody is asked for.
    """
    sites = routes(server)
    if not sites or not all(map(hosts, sites)):
        return
    if wanted.host:
        if not any(_matches(wanted.host, host) for site in sites for host in hosts(site)):
            there = listed(host for site in sites for host in hosts(site))
            raise Mistake(f"{wanted.file} has no site {wanted.host}; those there are {there}")
        return
    chosen = min(sites, key=gives)
    sites.remove(chosen)
    names = hosts(chosen)
    others = [host for site in sites for host in hosts(site)]
    more = f"; --host NAME asks for another one: {listed(others)}" if others else ""
    changes.append(f"{', '.join(names)} answers, whatever host is asked for{more}")
    matches = [{k: it for k, it in match.items() if k != "host"} for match in chosen["match"]]
    logs = server.get("logs", {})
    named = [it for it in map(logs.get("logger_names", {}).get, names) if it]
    if named:
        logs["default_logger_name"] = named[0]
    chosen["match"] = [it for it in matches if it]
    sites.append(chosen)


def serve_from(wanted: Wanted, server: Json, changes: list[str]) -> None:
    """Put another root in the place of those that are named."""
    root = str(wanted.root)
    if gives(server) != FILES:
        raise Mistake(f"{wanted.file} serves no files there; leave --root out")
    named = [it for it in handlers(server) if "root" in it]
    for handler in named:
        changes.append(f"root {root}, not {handler['root']}")
        handler["root"] = root
    if not named:
        changes.append(f"root {root} (there was none)")
        routes(server).insert(0, {"handle": [{"handler": "vars", "root": root}]})


def gives(node: object) -> int:
    """Say what a site or a whole server gives."""
    found = list(handlers(node))
    names = {it.get("handler") for it in found}
    fastcgi = any(it.get("transport", {}).get("protocol") == "fastcgi" for it in found)
    if names & SERVES_FILES or fastcgi:
        return FILES
    if names & GIVES_CONTENT:
        return CONTENT
    fixed = [it for it in found if it.get("handler") == "static_response"]
    return WORDS if any(map(_is_answer, fixed)) else REDIRECTS


def routes(server: Json) -> list[Json]:
    """Give the routes of a server: one a site, or what holds for all."""
    found: list[Json] = server.setdefault("routes", [])
    return found


def hosts(route: Json) -> list[str]:
    """Give the names of a site."""
    return [host for match in route.get("match", []) for host in match.get("host", [])]


def handlers(node: object) -> Iterator[Json]:
    """Give everything that handles requests, however deep."""
    if isinstance(node, dict):
        if "handler" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from handlers(inner)


def _is_answer(handler: Json) -> bool:
    status = str(handler.get("status_code", 200))
    return (
        not handler.get("abort")
        and "Location" not in handler.get("headers", {})
        and (not status.isdecimal() or int(status) < 300)
    )


def _matches(host: str, name: str) -> bool:
    """Whether a site's name, perhaps with wildcards for whole labels, is that of a host."""
    ours, theirs = host.lower().split("."), name.lower().split(".")
    return len(ours) == len(theirs) and all(
        one in {other, "*"} for one, other in zip(theirs, ours, strict=True)
    )
