"""Whether stacks pass requests on to other machines, as their configurations were kept."""

from collections.abc import Iterable

from webdyno.model.stack import Stack
from webdyno.own import names
from webdyno.own.names import PassedOn

SHOWN_PLACES = 20
"""Of each host."""


def other_machines(stacks: Iterable[Stack], *, anywhere: bool) -> list[str]:
    """Give the hosts that aren't this machine, each with every place that names it.

    `anywhere`: whatever isn't the loopback interface is somebody else's to another machine.
    """
    services = [role.service for stack in stacks for role in stack.services.values()]
    kept = [it for service in services if service.own for it in service.own.passes_on]
    places: dict[str, dict[str, None]] = {}
    for it in kept:
        places.setdefault(it.host, {})[it.at] = None
    if anywhere:
        found = [it.host for it in names.not_loopback([PassedOn(host, None) for host in places])]
    else:
        found = names.not_here(places)
    return [f"{host} ({_shown(list(places[host]))})" for host in found]


def _shown(places: list[str]) -> str:
    more = f" and {len(places) - SHOWN_PLACES:,} more" if len(places) > SHOWN_PLACES else ""
    return ", ".join(places[:SHOWN_PLACES]) + more
