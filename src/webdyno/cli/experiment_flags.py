"""What of an experiment can be said on the command line: its testbed, its traffic, its settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from webdyno.cli.console import tell
from webdyno.cli.flags import (
    NOTHING_OF_OWN,
    USUAL_TIME,
    BudgetFlag,
    Ignore,
    Overrides,
    OwnFlags,
    SameBodies,
    compared_bodies,
)
from webdyno.definitions import Override, factors, read_overrides
from webdyno.definitions.validation import build, written_value
from webdyno.generator.interface import programs
from webdyno.lab.systems import AskedSystems
from webdyno.lab.traffic import AskedTraffic
from webdyno.model.errors import UserError
from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.testbed import TestbedSettings


@Parameter(name="*")
@dataclass(frozen=True)
class TestbedFlags:
    """Where an experiment runs."""

    testbed: Annotated[
        Literal["this-machine", "netns", "cluster"] | None,
        Parameter(
            help="netns: client and servers in network namespaces, joined by a link. cluster: on "
            "hosts of a Ray cluster."
        ),
    ] = None
    server_cores: Annotated[
        str | None,
        Parameter(help="Cores for the servers; the client has the others. Half unless given."),
    ] = None
    link: Annotated[
        str | None, Parameter(help="With --testbed netns: what the link carries, such as 100mbit.")
    ] = None
    delay: Annotated[
        str | None, Parameter(help="With --testbed netns: added to a round trip, such as 20ms.")
    ] = None
    loss: Annotated[
        str | None, Parameter(help="With --testbed netns: packets lost each way, such as 0.1%.")
    ] = None

    def overrides(self) -> list[Override]:
        """Give the flags as settings of the experiment."""
        return [
            Override(("testbed", key), value, self._flag(key))
            for key, value in self._given().items()
        ]

    def settings(self) -> TestbedSettings:
        """Give the settings of a testbed on this machine; raise UserError, naming the flag."""
        if self.testbed == "cluster":
            raise UserError("--testbed cluster: that is for runs; this one is about this machine")
        return build(TestbedSettings, self._given(), lambda where: self._flag(*where))

    def _given(self) -> dict[str, object]:
        cores = self.server_cores
        flags: dict[str, object] = {
            "kind": self.testbed,
            "server_cores": cores and written_value(cores, f"--server-cores {cores}"),
            "link": self.link,
            "delay": self.delay,
            "loss": self.loss,
        }
        return {key: value for key, value in flags.items() if value is not None}

    def _flag(self, key: str | int = "kind") -> str:
        name = "testbed" if key == "kind" else str(key).replace("_", "-")
        return f"--{name} {self._given().get(str(key), 'this-machine')}"


THIS_TESTBED = TestbedFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class TrafficFlags:
    """What is requested, instead of what the experiment says: docs/requests.md."""

    curl: Annotated[
        Sequence[str],
        Parameter(
            help="A curl command, as browsers copy it: what is requested, instead of paths; may be "
            "given again."
        ),
    ] = ()
    har: Annotated[
        Path | None, Parameter(help="A HAR file that a browser saved: what is requested.")
    ] = None
    requests: Annotated[
        Path | None,
        Parameter(
            help="A .http file, one with a JSON object a line, or what `webdyno workload` wrote: "
            "what is requested."
        ),
    ] = None

    def read(self) -> AskedTraffic:
        """Give what they say."""
        return AskedTraffic(self.curl, self.har, self.requests)


NO_TRAFFIC = TrafficFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class SetupFlags:
    """Where something is measured, what is requested, how responses are compared, what is set."""

    testbed: TestbedFlags = THIS_TESTBED
    traffic: TrafficFlags = NO_TRAFFIC
    set_: Overrides = ()
    ignore: Ignore = ()
    same_bodies: SameBodies = False

    def overrides(self, more: Sequence[Override] = ()) -> list[Override]:
        """Give the flags as settings of the experiment; raise UserError where one is none.

        Those that are given as `more` count before what a file of traffic says.
        """
        own = [*read_overrides(self.set_), *more]
        return [
            *self.testbed.overrides(),
            *self.traffic.read().overrides(own, tell),
            *compared_bodies(self.ignore, same=self.same_bodies),
            *own,
        ]


AS_SET_UP = SetupFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class ExperimentFlags:
    """What of an experiment can be said on the command line."""

    budget: BudgetFlag = USUAL_TIME
    precision: Annotated[
        str | None,
        Parameter(help="Stop when the ratio is known this well, such as 2% (or 0.02) either way."),
    ] = None
    soak: Annotated[
        str | None,
        Parameter(
            help="Load each variant for so long without a break afterwards, such as 10m: stalls, "
            "drifts and leaks show."
        ),
    ] = None
    question: Annotated[
        str | None,
        Parameter(
            help="Ask one thing of each variant, and stop when it is answered: 'faster', or "
            "'not-slower-by 5%'."
        ),
    ] = None
    generator: Annotated[
        str | None,
        Parameter(
            help="What makes the load: webdyno's own loadgen, or an instrument of older studies: "
            + ", ".join(name for name in programs() if name != OWN_GENERATOR)
            + "."
        ),
    ] = None
    setup: SetupFlags = AS_SET_UP
    vary: Annotated[
        Sequence[str],
        Parameter(
            help="KEY=LEVEL,LEVEL…: compare at each of these levels of a setting; with several, "
            "at every combination."
        ),
    ] = ()

    def overrides(self) -> list[Override]:
        """Give the flags as settings of the experiment; raise UserError where one is none."""
        return [
            *self.budget.overrides(),
            *self._measuring(),
            *self.setup.overrides(factors(self.vary)),
        ]

    def _measuring(self) -> Iterator[Override]:
        if self.generator is not None:
            yield Override(("generator",), self.generator, f"--generator {self.generator}")
        if self.precision is not None:
            given = f"--precision {self.precision}"
            yield Override(("measure", "precision"), self.precision, given)
        if self.soak is not None:
            yield Override(("measure", "soak_s"), self.soak, f"--soak {self.soak}")
        if self.question is not None:
            given = f"--question {self.question}"
            yield Override(("measure", "question"), self.question, given)


AS_WRITTEN = ExperimentFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class AskedFlags:
    """What systems that are named on the command line serve, and what they are asked for."""

    site: Annotated[
        str | None, Parameter(help="What all of them serve; else the first that all can serve.")
    ] = None
    path: Annotated[
        str | None, Parameter(help="The path that is requested; else the site's first.")
    ] = None
    own: OwnFlags = NOTHING_OF_OWN
    flags: ExperimentFlags = AS_WRITTEN

    def read(self) -> AskedSystems:
        """Read the flags; raise UserError where one is none."""
        return AskedSystems(
            site=self.site,
            path=self.path,
            own=self.own.keys(),
            load=self.own.load,
            traffic=self.flags.setup.traffic.read().words,
            overrides=self.flags.overrides(),
        )


NOTHING_SAID = AskedFlags()
