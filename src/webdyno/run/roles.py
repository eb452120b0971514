"""The hosts of a block by their roles, and a slot on them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from webdyno.definitions import Catalogue
from webdyno.generator import GeneratorError, LoadOrder
from webdyno.model.experiment import Experiment
from webdyno.model.load_result import LoadResult
from webdyno.model.machine import Machine
from webdyno.model.point import PointPlan
from webdyno.model.readings import Readings, StoppedUse
from webdyno.run.folder import RunFolder
from webdyno.run.host import ClientsHost, ClientUse, HostLost, Loaded, Look, ServersHost, Used
from webdyno.run.planned import PlannedArm


class Slot(NamedTuple):
    """What was measured in a slot, by those who load and those who serve."""

    load: LoadResult
    used: Used


@dataclass(frozen=True)
class Roles:
    """Who serves and who loads; both may be one."""

    servers: ServersHost
    clients: ClientsHost

    def load(self, arm: str, order: LoadOrder) -> LoadResult:
        """Load an arm without reading anything. Raises GeneratorError, StackDied."""
        self.clients.get_ready(arm)
        return self._load(arm, order).result

    def slot(self, arm: str, order: LoadOrder, look: Look | None) -> Slot:
        """Load an arm for a slot. Raises GeneratorError, StackDied.

        The host that serves reads its own counters, around all of the load; the one that loads
        times itself.
        """
        self.clients.get_ready(arm)
        self.servers.slot_begins(arm, look)
        try:
            loaded = self._load(arm, order)
            used = self.servers.slot_ends()
        finally:
            self.servers.slot_fails()
        return Slot(loaded.result, used._replace(readings=with_client(used.readings, loaded.use)))

    def end(self) -> None:
        """Let nothing of the block go on."""
        try:
            self.clients.end()
        finally:
            self.servers.end()

    def _load(self, arm: str, order: LoadOrder) -> Loaded:
        """Load an arm; the death of its servers explains a failure, and is raised instead."""
        try:
            return self.clients.load(arm, order)
        except GeneratorError:
            self.servers.check_alive(arm)
            raise


RolesOf = Callable[[PointPlan, Sequence[PlannedArm]], Roles]
"""Gives the hosts of a point, for its arms."""


def with_client(readings: Readings, use: ClientUse | None) -> Readings:
    """Give what the servers' host read, with what a host that only makes load read of itself."""
    if use is None:
        return readings
    stopped = readings.stopped or StoppedUse()
    return readings.replace(
        host=readings.host.replace(client=use.cpu),
        client_waiting=use.waiting,
        stopped=stopped.replace(client_s=use.stopped_s),
        silent_s=use.silent_s,
    )


class Surroundings(NamedTuple):
    """What can change a result and isn't part of the experiment."""

    machine: Machine
    """The one with the servers."""
    versions: dict[str, dict[str, str]]
    """By arm, by service: what the server says its version is."""
    load_generator: str
    hosts: dict[str, Machine]
    """By name, where there are several."""


class Place(Protocol):
    """Where a run takes place: this machine, or hosts of a cluster."""

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at everything that can change a result and isn't part of the experiment.

        Raises Mistake or Trouble where the experiment can't be run there.
        """

    def open(self, folder: RunFolder, exits: ExitStack) -> RolesOf:
        """Set up what a run needs, until `exits` closes; give what gives the roles of a point."""

    def mends(self, lost: HostLost) -> str | None:
        """Put another host in the place of a lost one, and say so; None where that can't be."""
