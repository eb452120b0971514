"""Systems of the user's own, on the command line and among the arms of experiments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.agreement import agree_to_own, provide_packages
from webdyno.cli.console import tell
from webdyno.definitions import Catalogue, CommandLine, Draft, Override
from webdyno.definitions.validation import build
from webdyno.model.experiment import Experiment
from webdyno.model.load import Load
from webdyno.model.mistake import Mistake
from webdyno.model.point import plan_points
from webdyno.model.request import Request
from webdyno.model.service import Need
from webdyno.model.stack import Stack


@Parameter(name="*")
@dataclass(frozen=True)
class OwnFlags:
    """What is said of systems of the user's own: of both sides, if both are."""

    dir: Annotated[
        Path | None, Parameter(help="Where the commands of a system of your own run; else here.")
    ] = None
    env: Annotated[
        Sequence[str],
        Parameter(help="NAME=VALUE: a variable for its commands; may be given again."),
    ] = ()
    service: Annotated[
        Sequence[str],
        Parameter(
            help="ROLE=NAME, such as db=mariadb: a service of the catalogue behind a command or "
            "revision, which finds it by $DB_HOST, $DB_PORT and so on; may be given again."
        ),
    ] = ()
    prepare: Annotated[
        str | None, Parameter(help="A line of shell that fills those services before each start.")
    ] = None
    ready: Annotated[
        str | None, Parameter(help="The path that it answers with 2xx or 3xx once it is ready.")
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
    from webdyno.own.arms import resolve
    from webdyno.run.repeat import is_kept

    resolved, joined = resolve(draft, catalogue, folder, tell, _provide(yes=yes))
    experiment = resolved.checked(joined)
    if not is_kept(folder):
        new = joined.stacks.keys() - catalogue.stacks.keys()
        states = [point.experiment.state for point in plan_points(experiment)]
        agree_to_own([joined.stacks[name] for name in new], states)
    return experiment, joined


@dataclass(frozen=True)
class OneSystem:
    """A stack, perhaps a system of the user's own, and what it is asked for."""

    stack: Stack
    catalogue: Catalogue
    """The one that it is in."""
    load: Load
    requests: Sequence[Request]
    """None where nothing is known of what it serves."""


def one_system(
    name: str,
    own: OwnFlags,
    catalogue: Catalogue,
    load: Sequence[Override],
    paths: Sequence[str],
    *,
    yes: bool,
) -> OneSystem:
    """Look one system up; what is asked of a revision stands in its `webdyno.toml`, unless said."""
    from webdyno.own.arms import is_revision, resolve
    from webdyno.own.project import Project, ProjectSource

    arms = {name: {"stack": name, **own.keys()}}
    asked = {**own.load, **({"paths": list(paths)} if paths else {})}
    spoken = CommandLine({"arms": arms, "load": asked}, {("arms", name): name})
    folder = (own.dir or Path.cwd()).absolute()
    project = Project.around(folder) if is_revision(name) else None
    source = ProjectSource(spoken, project) if project else spoken
    draft = Draft.of(source, load)
    resolved, joined = resolve(draft, catalogue, Path.cwd(), tell, _provide(yes=yes))
    stack = joined.stack(resolved.data["arms"][name]["stack"])
    agree_to_own([stack])
    made = build(Load, resolved.data.get("load", {}), lambda where: draft.place(("load", *where)))
    return OneSystem(stack, joined, made, _requests(resolved, made, said=bool(paths)))


def _requests(draft: Draft, load: Load, *, said: bool) -> list[Request]:
    """Give what is asked for: the paths that were said, else requests, else all paths."""
    written = draft.data.get("requests")
    if said or not isinstance(written, list) or not written:
        return [Request(path=path) for path in load.paths]
    return [
        build(Request, table, lambda where, at=at: draft.place(("requests", at, *where)))  # type: ignore[misc]
        for at, table in enumerate(written)
    ]


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
