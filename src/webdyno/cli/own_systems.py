"""Systems of the user's own, on the command line and among the arms of experiments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.agreement import agree_to_own, provide_packages
from webdyno.cli.console import tell
from webdyno.definitions import Catalogue, CommandLine, Draft
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Mistake
from webdyno.model.point import plan_points
from webdyno.model.service import Need
from webdyno.model.stack import Stack


@Parameter(name="*")
@dataclass(frozen=True)
class OwnFlags:
    """What is said of systems of the user's own: of both sides, if both are."""

    dir: Annotated[
        Path | None,
        Parameter(help="Where the commands of a system of your own run; else here."),
    ] = None
    env: Annotated[
        Sequence[str],
        Parameter(
            help="NAME=VALUE: a variable for its commands; may be given again.",
            negative=(),
            show_default=False,
        ),
    ] = ()
    service: Annotated[
        Sequence[str],
        Parameter(
            help="ROLE=NAME, such as db=mariadb: a service of the catalogue behind a command or "
            "revision, which finds it by $DB_HOST, $DB_PORT and so on; may be given again.",
            negative=(),
            show_default=False,
        ),
    ] = ()
    prepare: Annotated[
        str | None, Parameter(help="A line of shell that fills those services before each start.")
    ] = None
    ready: Annotated[
        str | None,
        Parameter(help="The path that it answers with 2xx or 3xx once it is ready."),
    ] = None
    ready_within: Annotated[
        str | None, Parameter(help="How long it has until then, such as 60s; 20s unless given.")
    ] = None
    root: Annotated[
        Path | None, Parameter(help="With conf: the document root, instead of the file's.")
    ] = None

    host: Annotated[
        str | None,
        Parameter(help="The host that is asked for, such as example.com (Host header, TLS's SNI)."),
    ] = None

    @property
    def load(self) -> dict[str, object]:
        """What they say of the load."""
        return {"headers": {"Host": self.host}} if self.host else {}

    def keys(self) -> dict[str, object]:
        """Give the flags as keys of an arm."""
        keys = {
            "dir": self.dir and str(self.dir),
            "environment": dict(_pair("--env", "NAME=VALUE", text) for text in self.env),
            "services": dict(_pair("--service", "ROLE=NAME", text) for text in self.service),
            "prepare": self.prepare,
            "ready": self.ready,
            "ready_within": self.ready_within,
            "root": self.root and str(self.root),
        }
        return {key: value for key, value in keys.items() if value}


NO_FLAGS = OwnFlags()


def checked_with_own(
    draft: Draft, catalogue: Catalogue, folder: Path, *, yes: bool
) -> tuple[Experiment, Catalogue]:
    """Give an experiment, checked, and the catalogue that all of its arms are in.

    `folder` is where relative paths begin. What you wrote yourself needs no other yes. What has to
    be installed for it does, and so does what a run kept, which may be somebody else's.
    """
    from webdyno.own import resolve
    from webdyno.run.repeat import is_kept

    resolved, joined = resolve(draft, catalogue, folder, tell, _provide(yes=yes))
    experiment = resolved.checked(joined)
    if not is_kept(folder):
        new = joined.stacks.keys() - catalogue.stacks.keys()
        states = [point.experiment.state for point in plan_points(experiment)]
        agree_to_own([joined.stacks[name] for name in new], states)
    return experiment, joined


def stack_of(
    name: str, own: OwnFlags, catalogue: Catalogue, *, yes: bool
) -> tuple[Stack, Catalogue]:
    """Give one stack, perhaps a system of the user's own, and the catalogue that it is in."""
    from webdyno.own import resolve

    arms = {name: {"stack": name, **own.keys()}}
    draft = Draft.of(CommandLine({"arms": arms, "load": own.load}, {}), [])
    resolved, joined = resolve(draft, catalogue, Path.cwd(), tell, _provide(yes=yes))
    stack = joined.stack(resolved.data["arms"][name]["stack"])
    agree_to_own([stack])
    return stack, joined


def _provide(*, yes: bool) -> Callable[[Iterable[Need]], None]:
    return lambda needs: provide_packages([], [], needs, yes=yes)


def flag_of(key: str) -> str:
    """Name the flag of an arm's key."""
    short = {"environment": "env", "services": "service"}
    return f"--{short.get(key, key.replace('_', '-'))}"


def _pair(flag: str, form: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Mistake(f"{flag} {text}: should look like {form}")
    return name, value
