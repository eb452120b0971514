"""What the hosts of a cluster are, what lies between them, and which can measure together."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from webdyno.cluster.host import Host, HostLost
from webdyno.judge.differences import machine_differences
from webdyno.model.cluster import LinkFacts
from webdyno.model.machine import Machine
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.several_runs import Difference


@dataclass
class CheckedHost:
    """A host, and whether it can measure beside the others."""

    host: Host
    machine: Machine | None = None
    why_not: str | None = None
    """Why it can't; None of one that can."""
    link: LinkFacts | None = None
    """To the first that can; None of that one."""
    differs: list[Difference] = field(default_factory=list)
    """In what its machine isn't like the first that can."""


def checked_hosts(hosts: Sequence[Host]) -> list[CheckedHost]:
    """Look at all hosts at once; say of each what it is, or why it can't measure."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        looked = list(pool.map(_look, hosts))
    first = next((it.machine for it in looked if it.machine), None)
    for number, it in enumerate(looked):
        if first and it.machine:
            it.why_not = _same_machine(it, looked[:number])
            it.differs = _differences(first, it.machine)
    return looked


def measure_links(looked: Sequence[CheckedHost]) -> None:
    """Measure the link from each host to the first, each after the other."""
    fit = [it for it in looked if not it.why_not]
    for it in fit[1:]:
        try:
            it.link = _link(fit[0].host, it.host)
        except (Mistake, HostLost) as failure:
            it.why_not = str(failure)


def _look(host: Host) -> CheckedHost:
    try:
        return CheckedHost(host, host.look())
    except (Mistake, Trouble, HostLost) as failure:
        return CheckedHost(host, why_not=str(failure))


def _same_machine(it: CheckedHost, others: Sequence[CheckedHost]) -> str | None:
    """Say which other host is this one's machine, which counts once."""
    identity = it.machine and it.machine.identity
    for other in others:
        if identity and other.machine and other.machine.identity == identity:
            return f"{it.host.name} is the same machine as {other.host.name}"
    return None


def _differences(first: Machine, other: Machine) -> list[Difference]:
    return [it for it in machine_differences(first, other) if it.what != "machine.identity"]


def _link(one: Host, other: Host) -> LinkFacts:
    answering = one.answer_link()
    address, port = next(answering)
    found = other.measure_link(address, port)
    for _ in answering:
        pass
    return found
