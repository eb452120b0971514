"""What of an experiment can be said on the command line: its testbed, its traffic, its settings."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from webdyno.core.errors import UserError
from webdyno.interfaces.cli.flags import (
    NOTHING_OF_OWN,
    USUAL_TIME,
    Overrides,
    OwnFlags,
    Paths,
    Sets,
    TimeFlag,
    flag,
    settings_of,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue, Override
    from webdyno.config.traffic import AskedTraffic
    from webdyno.core.testbed import TestbedSettings
    from webdyno.launch.arrangement import AskedSystems

Objectives = Annotated[
    Sequence[str],
    flag("OBJECTIVE: what has to hold: 'p99<50ms', 'ttft p99<1s', 'failures<0.1%'.", "--slo"),
]


@Parameter(name="*")
@dataclass(frozen=True)
class TestbedFlags:
    """Where an experiment runs."""

    testbed: Annotated[
        Literal["this-machine", "netns", "cluster"] | None,
        flag("KIND: this-machine, netns (with a link) or cluster."),
        Sets("testbed.kind"),
    ] = None
    server_cores: Annotated[
        str | None,
        flag("NUMBER: cores for the servers [default: half of them]"),
        Sets("testbed.server_cores", as_in_toml=True),
    ] = None
    link: Annotated[
        str | None,
        flag("RATE: bandwidth of the link in netns, such as 100mbit."),
        Sets("testbed.link"),
    ] = None
    delay: Annotated[
        str | None,
        flag("DURATION: added to a round trip in netns, such as 20ms."),
        Sets("testbed.delay"),
    ] = None
    loss: Annotated[
        str | None,
        flag("PERCENT: packets lost each way in netns, such as 0.1%."),
        Sets("testbed.loss"),
    ] = None

    def settings(self) -> "TestbedSettings":
        """Return the settings of a testbed on this machine; raise UserError, naming the flag."""
        from webdyno.config.reading import build
        from webdyno.core.testbed import TestbedSettings

        if self.testbed == "cluster":
            raise UserError("--testbed cluster: that is for runs; this one is about this machine")
        given = list(settings_of(self))
        flags = {each.key[1]: each.flag for each in given}
        whole = flags.get("kind", "--testbed this-machine")
        return build(
            TestbedSettings,
            {str(each.key[1]): each.value for each in given},
            lambda where: flags.get(where[0], whole) if where else whole,
        )


THIS_TESTBED = TestbedFlags()


def _whole_connections(text: str) -> None:
    if not text.strip().lstrip("-").isdecimal():
        raise UserError(f"-c takes a whole number, not {text!r}")


@Parameter(name="*")
@dataclass(frozen=True)
class TrafficFlags:
    """What is requested, instead of what the experiment says, and how responses are compared."""

    traffic: Annotated[
        Sequence[str], flag("FILE: HAR, .http, JSON lines, curl, `webdyno traffic`.")
    ] = ()
    connections: Annotated[
        str | None,
        flag("COUNT: connections of the load [default: 64]", "-c", "--connections"),
        Sets("load.connections", as_in_toml=True, name="-c", check=_whole_connections),
    ] = None
    ignore: Annotated[
        Sequence[str],
        flag("PATTERN: what may differ in bodies: regex, '$.items[*].id'."),
        Sets("ignore"),
    ] = ()
    same_bodies: Annotated[
        bool, flag("Refuse revisions whose responses have other bodies."), Sets("same_bodies")
    ] = False

    def read(self) -> "AskedTraffic":
        """Read the files that they name."""
        from webdyno.config.traffic import AskedTraffic

        return AskedTraffic(self.traffic)


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

        own = [*read_overrides(self.set_), *settings_of(self.traffic), *more]
        return [*settings_of(self.testbed), *self.traffic.read().overrides(own, notify), *own]


AS_SET_UP = SetupFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class RequestFlags:
    """What is sent with the paths that are requested."""

    method: Annotated[
        str | None, flag("NAME: method [default: GET; POST with --data]", "--method")
    ] = None
    header: Annotated[
        Sequence[str], flag("FIELD: a header, such as 'Accept: text/html'.", "--header")
    ] = ()
    data: Annotated[str | None, flag("TEXT: body of each request, or @FILE.", "--data")] = None

    def added_to(self, setup: SetupFlags, paths: Sequence[str]) -> SetupFlags:
        """Return flags that also ask for these requests; each path is one of them."""
        if self.method is None and self.data is None:
            return setup
        if setup.traffic.traffic:
            raise UserError("--method and --data: --traffic says what is requested; omit them")
        words = ["curl"]
        words += ["-X", self.method.upper()] if self.method else []
        words += [word for field in self.header for word in ("-H", field)]
        words += ["-d", self.data] if self.data is not None else []
        commands = [shlex.join([*words, f"http://localhost{path}"]) for path in paths or ["/"]]
        return replace(setup, traffic=replace(setup.traffic, traffic=commands))

    @property
    def gives_requests(self) -> bool:
        """Whether requests of its own stand for the paths."""
        return self.method is not None or self.data is not None

    def overrides(self) -> "Iterator[Override]":
        """Yield headers of the load, where no requests hold them; raise UserError for none."""
        from webdyno.config import Override

        for field in self.header:
            name, colon, value = field.partition(":")
            if not colon or not name.strip():
                raise UserError(f"--header {field!r}: should look like 'Accept: text/html'")
            if not self.gives_requests:
                yield Override(
                    ("load", "headers", name.strip()), value.strip(), f"--header {field}"
                )


PLAIN_REQUESTS = RequestFlags()


def _with_percent_sign(text: str) -> None:
    if text.isdecimal():
        raise UserError(f"--precision {text}: write {text}%")


@Parameter(name="*")
@dataclass(frozen=True)
class ExperimentFlags:
    """What of an experiment can be said on the command line."""

    time: TimeFlag = USUAL_TIME
    precision: Annotated[
        str | None,
        flag("PERCENT: stop at this half-width of the CI [default: 2%]"),
        Sets("measure.precision", check=_with_percent_sign),
    ] = None
    soak: Annotated[
        str | None,
        flag("DURATION: then load each without a break: stalls, leaks."),
        Sets("measure.soak_s"),
    ] = None
    question: Annotated[
        str | None,
        flag("QUESTION: one-sided: 'faster' or 'not-slower-by 5%'."),
        Sets("one_sided.claim"),
    ] = None
    generator: Annotated[
        str | None, flag("NAME: ab, httperf or wrk instead of webdyno's own."), Sets("generator")
    ] = None
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
            *settings_of(self),
            *self.setup.overrides([*factors(self.vary), *more]),
        ]


AS_WRITTEN = ExperimentFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class AskedFlags:
    """What systems that are named on the command line serve, and what is requested of them."""

    site: Annotated[str | None, flag("NAME: what all serve [default: the first that all can]")] = (
        None
    )
    path: Paths = ()
    request: RequestFlags = PLAIN_REQUESTS
    own: OwnFlags = NOTHING_OF_OWN
    flags: ExperimentFlags = AS_WRITTEN

    def read(self, more: "Sequence[Override]" = ()) -> "AskedSystems":
        """Read the flags, with `more` settings of a command's own; raise UserError for bad ones."""
        from webdyno.launch.arrangement import AskedSystems

        setup = self.request.added_to(self.flags.setup, self.path)
        flags = replace(self.flags, setup=setup)
        return AskedSystems(
            site=self.site,
            paths=() if self.request.gives_requests else self.path,
            own=self.own.keys(),
            load=self.own.load,
            traffic=setup.traffic.read().words,
            overrides=flags.overrides([*self.request.overrides(), *more]),
        )


NOTHING_SAID = AskedFlags()


def asked_systems(
    written: Sequence[str], known: "Catalogue", asked: AskedFlags
) -> tuple[list[str], AskedFlags]:
    """Return systems as webdyno names them, and what is asked of them with the path of URLs.

    Raise UserError for what is none.
    """
    from webdyno.systems.kinds import NamedSystem, guess_systems, is_own

    says = bool(asked.path or asked.flags.setup.traffic.traffic)
    guessed = guess_systems(written, known.stacks, has_path=says)
    for system in (NamedSystem.of(name).system for name in guessed.systems):
        if not is_own(system):
            known.stack(system)
    asked = replace(asked, path=[guessed.path]) if guessed.path else asked
    return list(guessed.systems), asked


def refuse_loop(given: Sequence[str]) -> None:
    """Raise UserError for a loop that is requested where the search brings its own."""
    from webdyno.config import read_overrides

    for setting in read_overrides(given):
        if setting.key == ("load", "loop"):
            raise UserError(
                f"{setting.flag}: the search for a capacity sets the rate of an open loop by "
                "itself; leave it out"
            )
