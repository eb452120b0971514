"""What of an experiment can be said on the command line: its testbed, its traffic, its settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from webdyno.core.errors import UserError
from webdyno.interfaces.cli.flags import (
    NOTHING_OF_OWN,
    USUAL_TIME,
    Overrides,
    OwnFlags,
    Paths,
    TimeFlag,
    flag,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Override
    from webdyno.config.traffic import AskedTraffic
    from webdyno.core.testbed import TestbedSettings
    from webdyno.launch.arrangement import AskedSystems

Objectives = Annotated[
    Sequence[str],
    flag("OBJECTIVE: what has to hold: a latency percentile, or 'failures<0.1%'.", "--slo"),
]


@Parameter(name="*")
@dataclass(frozen=True)
class TestbedFlags:
    """Where an experiment runs."""

    testbed: Annotated[
        Literal["this-machine", "netns", "cluster"] | None,
        flag("KIND: this-machine, netns (with a link) or cluster."),
    ] = None
    server_cores: Annotated[
        str | None, flag("NUMBER: cores for the servers [default: half of them]")
    ] = None
    link: Annotated[str | None, flag("RATE: bandwidth of the link in netns, such as 100mbit.")] = (
        None
    )
    delay: Annotated[
        str | None, flag("DURATION: added to a round trip in netns, such as 20ms.")
    ] = None
    loss: Annotated[str | None, flag("PERCENT: packets lost each way in netns, such as 0.1%.")] = (
        None
    )

    def overrides(self) -> "list[Override]":
        """Return the flags as settings of the experiment."""
        from webdyno.config import Override

        given = self._given().items()
        return [Override(("testbed", key), value, self._flag(key)) for key, value in given]

    def settings(self) -> "TestbedSettings":
        """Return the settings of a testbed on this machine; raise UserError, naming the flag."""
        from webdyno.config.reading import build
        from webdyno.core.testbed import TestbedSettings

        if self.testbed == "cluster":
            raise UserError("--testbed cluster: that is for runs; this one is about this machine")
        return build(TestbedSettings, self._given(), lambda where: self._flag(*where))

    def _given(self) -> dict[str, object]:
        from webdyno.config.reading import written_value

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
    """What is requested, instead of what the experiment says, and how responses are compared."""

    traffic: Annotated[
        Sequence[str], flag("FILE: HAR, .http, JSON lines, curl, `webdyno traffic`.")
    ] = ()
    connections: Annotated[
        str | None, flag("COUNT: connections of the load [default: 64]", "-c", "--connections")
    ] = None
    ignore: Annotated[
        Sequence[str], flag("PATTERN: what may differ in bodies: regex, '$.items[*].id'.")
    ] = ()
    same_bodies: Annotated[bool, flag("Refuse revisions whose responses have other bodies.")] = (
        False
    )

    def read(self) -> "AskedTraffic":
        """Read the files that they name."""
        from webdyno.config.traffic import AskedTraffic

        return AskedTraffic(self.traffic)

    def of_load(self) -> "Iterator[Override]":
        """Return what they set of the load, and of how bodies are compared."""
        from webdyno.config import Override
        from webdyno.config.reading import written_value

        if self.connections is not None:
            flag = f"-c {self.connections}"
            yield Override(("load", "connections"), written_value(self.connections, flag), flag)
        if self.ignore:
            said = " ".join(f"--ignore {each}" for each in self.ignore)
            yield Override(("ignore",), list(self.ignore), said)
        if self.same_bodies:
            yield Override(("same_bodies",), True, "--same-bodies")


NO_TRAFFIC = TrafficFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class SetupFlags:
    """Where something is measured, what is requested, what is set."""

    testbed: TestbedFlags = THIS_TESTBED
    traffic: TrafficFlags = NO_TRAFFIC
    set_: Overrides = ()

    def overrides(self, more: "Sequence[Override]" = ()) -> "list[Override]":
        """Return the flags as settings of the experiment; `more` count before a file of traffic.

        Raise UserError where one is none.
        """
        from webdyno.config import read_overrides
        from webdyno.media.console import notify

        own = [*read_overrides(self.set_), *self.traffic.of_load(), *more]
        return [*self.testbed.overrides(), *self.traffic.read().overrides(own, notify), *own]


AS_SET_UP = SetupFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class ExperimentFlags:
    """What of an experiment can be said on the command line."""

    time: TimeFlag = USUAL_TIME
    precision: Annotated[
        str | None, flag("PERCENT: stop at this half-width of the CI [default: 2%]")
    ] = None
    soak: Annotated[
        str | None, flag("DURATION: then load each without a break: stalls, leaks.")
    ] = None
    question: Annotated[
        str | None, flag("QUESTION: one-sided: 'faster' or 'not-slower-by 5%'.")
    ] = None
    generator: Annotated[str | None, flag("NAME: ab, httperf or wrk instead of webdyno's own.")] = (
        None
    )
    setup: SetupFlags = AS_SET_UP
    vary: Annotated[
        Sequence[str], flag("KEY=A,B: measure at each value; all combinations of several.")
    ] = ()

    def overrides(self, more: "Sequence[Override]" = ()) -> "list[Override]":
        """Return the flags as settings of the experiment; `more` count before a file of traffic.

        Raise UserError where one is none.
        """
        from webdyno.config import factors

        return [
            *self.time.overrides(),
            *self._measuring(),
            *self.setup.overrides([*factors(self.vary), *more]),
        ]

    def _measuring(self) -> "Iterator[Override]":
        from webdyno.config import Override

        given = {
            ("generator",): ("--generator", self.generator),
            ("measure", "precision"): ("--precision", self.precision),
            ("measure", "soak_s"): ("--soak", self.soak),
            ("one_sided", "claim"): ("--question", self.question),
        }
        for key, (name, value) in given.items():
            if value is not None:
                yield Override(key, value, f"{name} {value}")


AS_WRITTEN = ExperimentFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class AskedFlags:
    """What systems that are named on the command line serve, and what is requested of them."""

    site: Annotated[str | None, flag("NAME: what all serve [default: the first that all can]")] = (
        None
    )
    path: Paths = ()
    own: OwnFlags = NOTHING_OF_OWN
    flags: ExperimentFlags = AS_WRITTEN

    def read(self, more: "Sequence[Override]" = ()) -> "AskedSystems":
        """Read the flags, with `more` settings of a command's own; raise UserError for bad ones."""
        from webdyno.launch.arrangement import AskedSystems

        return AskedSystems(
            site=self.site,
            paths=self.path,
            own=self.own.keys(),
            load=self.own.load,
            traffic=self.flags.setup.traffic.read().words,
            overrides=self.flags.overrides(more),
        )


NOTHING_SAID = AskedFlags()


def refuse_loop(given: Sequence[str]) -> None:
    """Raise UserError for a loop that is requested where the search brings its own."""
    from webdyno.config import read_overrides

    for setting in read_overrides(given):
        if setting.key == ("load", "loop"):
            raise UserError(
                f"{setting.flag}: the search for a capacity sets the rate of an open loop by "
                "itself; leave it out"
            )
