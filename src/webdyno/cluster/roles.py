"""What hosts do together in a role: servers of one stack on several, clients that share a load."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from webdyno.cluster.host import Acting
from webdyno.cluster.readings import joined_servers, joined_uses
from webdyno.cluster.role_agent import keep_files
from webdyno.generator import LoadOrder
from webdyno.generator.sharing import joined, shares
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import PointPlan
from webdyno.model.records import Answer
from webdyno.run.host import HostLost, Loaded, Look, Up, Used
from webdyno.run.planned import PlannedArm
from webdyno.stack import Placement
from webdyno.stack.roles import resolve_stack


def all_do(acting: Sequence[Acting], what: str, *values: Any) -> list[Any]:  # noqa: ANN401
    """Give several agents an order at once; give what came of it, in their order.

    Raises the first refusal when all have answered.
    """
    return _at_once([partial(it.do, what, *values) for it in acting])


def _at_once(orders: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(max(len(orders), 1)) as pool:
        given = [pool.submit(order) for order in orders]
    return [it.result() for it in given]


def all_there_do(acting: Sequence[Acting], what: str) -> list[Acting]:
    """Give an order to those that are still there; give them.

    Who is lost is told when the next order needs him; what he had started ends with him.
    """
    return [it for it in acting if _does(it, what)]


def _does(acting: Acting, what: str) -> bool:
    with suppress(HostLost):
        acting.do(what)
        return True
    return False


class Servers:
    """The hosts with the servers of a point's arms."""

    def __init__(
        self, acting: Mapping[str, Acting], addresses: Mapping[str, str], plan: PointPlan
    ) -> None:
        """Use the agents of hosts, by name."""
        self._acting, self._addresses, self._plan = acting, addresses, plan
        self._bench = plan.experiment.bench
        self._where: dict[str, list[str]] = {}
        """The hosts of each arm that is up, in the order in which they start; the front's last."""
        self._folders: dict[str, Path] = {}
        self._loaded: list[str] = []

    def start(self, arm: PlannedArm, folder: Path) -> Up:
        """Start an arm's servers anew, those first on which others rely."""
        self._go_to_point()
        by_host = self._roles_by_host(arm)
        self._where[arm.name], self._folders[arm.name] = list(by_host), folder
        placement = self._placement(arm, by_host) if len(by_host) > 1 else {}
        ups: list[Up] = [
            self._acting[host].do("start", arm.name, placement.get(host)) for host in by_host
        ]
        if len(ups) == 1:
            return ups[0]
        settings = {name: value for up in ups for name, value in up.settings.items()}
        return ups[-1]._replace(
            ready_s=sum(up.ready_s for up in ups),
            cpu_s=sum(up.cpu_s for up in ups),
            is_counted=False,
            settings=settings,
        )

    def stop(self, arm: str) -> None:
        """Stop an arm's servers, the front first."""
        for host in reversed(self._where.pop(arm, [])):
            self._acting[host].do("stop", arm)

    def check_alive(self, arm: str) -> None:
        """Raise StackDied where a service of an arm has ended."""
        for host in self._where.get(arm, []):
            self._acting[host].do("check_alive", arm)

    def waits_for_rest(self, most_s: float) -> bool:
        """Wait until all servers rest."""
        return all(all_do(self._all(), "waits_for_rest", most_s))

    def slot_begins(self, arm: str, look: Look | None) -> None:
        """Read the counters of an arm's hosts."""
        self._loaded = self._where[arm]
        all_do([self._acting[host] for host in self._loaded], "slot_begins", arm, look)

    def slot_ends(self) -> Used:
        """Read them again; the front's host is told of where only one can be."""
        loaded, self._loaded = self._loaded, []
        used: list[Used] = all_do([self._acting[host] for host in loaded], "slot_ends")
        return used[0] if len(used) == 1 else joined_servers(used)

    def slot_fails(self) -> None:
        """Read nothing more of the slot."""
        loaded, self._loaded = self._loaded, []
        for host in loaded:
            with suppress(Mistake, Trouble):
                self._acting[host].do("slot_fails")

    def sampling_begins(self, arm: str, every_s: float) -> None:
        """Begin to read an arm's CPU time often, where it is on one host."""
        self._loaded = self._where[arm]
        self._acting[self._loaded[-1]].do("sampling_begins", arm, every_s)

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        """End it; give what was read."""
        loaded, self._loaded = self._loaded, []
        sampled: Sequence[tuple[float, float]] = self._acting[loaded[-1]].do("sampling_ends")
        return sampled

    def end(self) -> None:
        """Stop everything; bring here what servers were started with, and said."""
        where, self._where = self._where, {}
        hosts = dict.fromkeys(host for each in where.values() for host in each)
        there = all_there_do([self._acting[host] for host in hosts], "end")
        for acting in there:
            for arm in (arm for arm, mine in where.items() if acting.name in mine):
                with suppress(HostLost):
                    keep_files(acting.do("files", arm), self._folders[arm])

    def _all(self) -> list[Acting]:
        hosts = dict.fromkeys(host for each in self._where.values() for host in each)
        return [self._acting[host] for host in hosts]

    def _go_to_point(self) -> None:
        if self._where:
            return
        names = {self._bench.hosts.servers, *(it.host for it in self._bench.services.values())}
        all_do([self._acting[it] for it in names if it], "at_point", self._plan.point.number)

    def _roles_by_host(self, arm: PlannedArm) -> dict[str, list[str]]:
        """Give the services of each host, in the order in which they start; the front's last."""
        resolved = resolve_stack(arm.stack, arm.site, arm.knobs, server_cpus=1)
        found: dict[str, list[str]] = {}
        for role in resolved.roles:
            found.setdefault(self._bench.host_of(role.name), []).append(role.name)
        front = self._bench.host_of(arm.stack.front)
        found[front] = found.pop(front)
        return found

    def _placement(
        self, arm: PlannedArm, by_host: Mapping[str, Sequence[str]]
    ) -> dict[str, Placement]:
        """Find where each service listens; give each host its view of that."""
        addresses: dict[str, tuple[str, int]] = {}
        for host, roles in by_host.items():
            ports = self._acting[host].do("ports_for", arm.name, roles)
            addresses |= {
                role: (self._addresses[host], port) for role, port in zip(roles, ports, strict=True)
            }
        seed, name = secrets.token_bytes(32), secrets.token_hex(8)
        return {
            host: Placement(frozenset(roles), addresses, seed, name)
            for host, roles in by_host.items()
        }


class Clients:
    """The hosts that make load, and share it."""

    def __init__(self, acting: Mapping[str, Acting], names: Sequence[str], plan: PointPlan) -> None:
        """Use the agents of these hosts; who is named may change from block to block."""
        self._acting, self._names, self._plan = acting, names, plan
        self._ready: tuple[str, ...] = ()

    def ask(self, arm: PlannedArm, url: str, ignored: Sequence[str]) -> list[Answer]:
        """Ask an arm what the certificate asks for, from the first of them."""
        self._go_to_point()
        answers: list[Answer] = self._all()[0].do("ask", arm.name, url, ignored)
        return answers

    def get_ready(self, arm: str) -> None:
        """Start what makes an arm's load."""
        self._go_to_point()
        all_do(self._all(), "get_ready", arm)

    def load(self, arm: str, order: LoadOrder) -> Loaded:
        """Load an arm, each of them with its share of timetable and connections."""
        clients = self._all()
        parts = [replace(part, elsewhere=True) for part in shares(order, len(clients))]
        loaded: list[Loaded] = _at_once(
            [
                partial(client.do, "load", arm, part)
                for client, part in zip(clients, parts, strict=True)
            ]
        )
        uses = [it.use for it in loaded if it.use is not None]
        return Loaded(joined([it.result for it in loaded]), joined_uses(uses))

    def end(self) -> None:
        """End what makes load."""
        ready, self._ready = self._ready, ()
        all_there_do([it for it in self._acting.values() if it.name in ready], "end")

    def _all(self) -> list[Acting]:
        return [self._acting[name] for name in self._names]

    def _go_to_point(self) -> None:
        if self._ready != tuple(self._names):
            self._ready = tuple(self._names)
            all_do(self._all(), "at_point", self._plan.point.number)
