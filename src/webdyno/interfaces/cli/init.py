"""`webdyno init`: a webdyno.toml for the application in a folder."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.registry import command
from webdyno.core.text import in_one_line
from webdyno.interfaces.cli.flags import VARIABLE, RunFlags, Variables, flag, read_pairs
from webdyno.interfaces.cli.init_questions import (
    FILE,
    asked_path,
    completed_by_person,
    is_anybody_there,
    started_by,
    with_asked_values,
)
from webdyno.media.console import notify

if TYPE_CHECKING:
    from webdyno.launch.first_try import FirstTry
    from webdyno.systems.layouts.app import FoundApp
    from webdyno.systems.repository import Repository

UNTRIED = "--no-try"
UNASKED = "nobody asked for these paths: what isn't there, or needs a login, stops a comparison"
BRANCHES = ("main", "master", "develop", "trunk")
MOST_SHOWN = 3
RATE_LIMITED = "answers 429"


def init(
    folder: Annotated[Path, flag("DIR: folder of the application.")] = Path(),
    *,
    start: Annotated[
        str | None, flag("COMMAND: how it starts, such as './server --port $PORT'.")
    ] = None,
    image: Annotated[
        str | None, flag("IMAGE: its container: '.' (a Dockerfile), 'compose.yaml#web', a name.")
    ] = None,
    program: Annotated[
        bool,
        flag("Start it as a program, though a container describes it.", "--program"),
    ] = False,
    build: Annotated[str | None, flag("COMMAND: how it is built, such as 'make release'.")] = None,
    env: Variables = (),
    path: Annotated[
        Sequence[str], flag("PATH: what is requested [default: what is found]", "--path")
    ] = (),
    try_: Annotated[
        bool,
        Parameter(
            name="--try",
            negative=UNTRIED,
            help="Build and start it once before the file is written.",
        ),
    ] = True,
    yes: Annotated[
        bool, flag("Answer yes to all prompts; of several take the first.", "--yes")
    ] = False,
    force: Annotated[bool, flag(f"Write over a {FILE} that is there.")] = False,
) -> Exit:
    """Write a webdyno.toml that says how the application in a folder starts.

    It looks at Procfile, pyproject.toml, requirements.txt, package.json, go.mod, Cargo.toml,
    pom.xml, build.gradle, config.ru, composer.json, mix.exs, *.csproj, CMakeLists.txt,
    deno.json, Dockerfile, Compose files, nginx.conf and HTML pages, and asks where they don't say.
    Then it builds and starts the application once, and asks for the paths that it can find.

    For example

        webdyno init

        webdyno init --start './server --port $PORT' --build 'make release'

        webdyno init --image compose.yaml#web --path /items
    """
    from webdyno.core.files import write_whole
    from webdyno.core.tables import limited_reading
    from webdyno.systems.containers.choice import engine_answers
    from webdyno.systems.layouts import find_app, untried_paths
    from webdyno.systems.layouts.app import project_text
    from webdyno.systems.layouts.logins import NAME, PASSWORD
    from webdyno.systems.layouts.settings import with_env_file
    from webdyno.systems.repository import repository_of

    target = folder / FILE
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    if (target.exists() or target.is_symlink()) and not force:
        raise UserError(f"{target} is there already; --force writes over it")
    way = _given_way(start, image)
    with limited_reading() as limit:
        in_containers = not (program or start or image) and engine_answers()
        detected = find_app(folder, in_containers=in_containers)
        if not way and (folder / "nginx.conf").is_file() and not (detected and detected.conf):
            compare = command("compare", "conf:nginx.conf", "conf:OTHER.conf")
            notify(f"nginx.conf is compared without a file: {compare}")
        if way:
            app = started_by(detected, *way)
        else:
            app = completed_by_person(folder, detected, yes, build is not None)
        app = replace(app, environment={**app.environment, **read_pairs("--env", VARIABLE, env)})
        repository = repository_of(folder)
        if build is not None:
            app = replace(app, build=build or None)
        elif repository:
            app = with_env_file(app, folder, repository)
        if is_anybody_there(yes):
            app = with_asked_values(app, folder)
        _show(app)
        trial = _try_app(app, folder, repository, path, yes) if try_ else None
        if trial:
            app = replace(app, headers={**app.headers, **trial.headers})
            requests = trial.requests
        else:
            requests = dict.fromkeys(path or untried_paths(app, folder / app.dir))
            if not path:
                notify(f"    check: {UNASKED}")
                app = replace(app, doubts=(*app.doubts, UNASKED))
        login = trial.login if trial else None
    if limit.is_reached:
        notify("    check: not all files were looked at, which are many: see what is missing")
    write_whole(target, project_text(app, requests, login))
    notify(f"{target} written")
    if login and not (trial and trial.has_logged_in):
        notify(f"    export {NAME}=… {PASSWORD}=…, or write them into [[login]]")
        notify(f"    {command('up', 'rev:.')} logs in to check")
    _show_next(folder, repository)
    return Exit.OK


def _show_next(folder: Path, repository: "Repository | None") -> None:
    """Show the command that compares; before a change there is nothing to compare."""
    from webdyno.systems.changes import nothing_between

    branches = repository.branches() if repository else BRANCHES
    against = next((branch for branch in BRANCHES if branch in branches), "HEAD")
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    systems = ("rev:.", f"rev:{against}")
    if repository and nothing_between(systems, folder.resolve()):
        notify(f"    {there}{command('capacity', 'rev:.')}")
        notify(f"    after a change of what {against} has:")
    notify(f"    {there}{command('compare', *systems)}")


def _show(app: "FoundApp") -> None:
    inside = "" if app.dir == "." else f", in {app.dir}"
    notify(f"by {app.by}{inside}")
    for key in ("build", "setup", "prepare", "start", "image", "conf"):
        if value := getattr(app, key):
            notify(f"    {key + ':':<9}{value}")
    for role, name in app.services.items():
        notify(f"    {name} stands behind it, as {role}")
    for note in app.notes:
        notify(f"    {in_one_line(note)}")
    for doubt in app.doubts:
        notify(f"    check: {in_one_line(doubt)}")


def _try_app(
    app: "FoundApp", folder: Path, repository: "Repository | None", paths: Sequence[str], yes: bool
) -> "FirstTry | None":
    """Start it once; None where that can't be done here. Raise OperationError if it fails."""
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.launch.first_try import try_out
    from webdyno.systems.layouts import missing_tools, remedies

    if missing := missing_tools(app):
        notify(f"    not tried: {', '.join(missing)} isn't installed here")
        return None
    if repository is None:
        notify("    not tried: revisions need a Git repository with a commit, and this is none")
        return None
    try:
        trial = try_out(app, folder, repository, paths, at_terminal(RunFlags(yes=yes)))
    except (OperationError, UserError) as error:
        what = "".join(f"\n→ {remedy}" for remedy in remedies(str(error), app, folder))
        raise OperationError(
            f"{error}\nit doesn't start as found; nothing was written.{what}\n→ --start, --build "
            f"and --env correct it; {command('init', UNTRIED)} writes {FILE} as it is, to be edited"
        ) from None
    for line in _trial_lines(trial):
        notify(f"    {line}")
    if not trial.requests and is_anybody_there(yes) and (answer := asked_path()):
        return _try_app(app, folder, repository, [answer], yes)
    if not trial.requests:
        raise OperationError(
            "it starts, but nothing that was asked for can be measured; nothing was written. "
            f"Name a path that answers 200: {command('init', '--path', '/PATH')}"
        )
    return trial


def _trial_lines(trial: "FirstTry") -> Iterator[str]:
    from webdyno.core.format import count, duration, latency, listed_to

    asked = f"; routes found in {trial.by}" if trial.by else ""
    yield f"up after {duration(trial.up_after_s)}{asked}"
    for name, value in trial.headers.items():
        yield f"asked with {name}: {value}, since it leads to https without"
    for response in trial.valid:
        size, took = count(response.size_bytes, "byte"), latency(response.took_s * 1e6)
        words = [f"{response.path}: {response.status}", size, took, response.content_type]
        yield ", ".join(filter(None, words))
    if empty := [response.path for response in trial.valid if response.is_empty]:
        yield (
            f"check: {listed_to(MOST_SHOWN, empty)}: a list without entries; a command that fills "
            "the database belongs below [app], as setup"
        )
    if trial.login:
        check = f": check {trial.login.doubt}" if trial.login.doubt else ""
        done = ", as one did now" if trial.has_logged_in else check
        yield f"behind a login: {listed_to(MOST_SHOWN, trial.behind)}"
        yield f"users get in by {trial.login.by}{done}"
    for why, what in trial.excluded.items():
        yield f"excluded ({why}): {listed_to(MOST_SHOWN, what)}"
    if RATE_LIMITED in trial.excluded:
        yield "check: 429 is its limit of requests: raise it for measuring, such as by --env"


def _given_way(start: str | None, image: str | None) -> tuple[str, str, str] | None:
    """Return what a flag says: the key in the file, its value, and the flag."""
    if start is not None and image is not None:
        raise UserError("--start and --image: it starts in one way; omit one of them")
    key, value = ("image", image) if start is None else ("start", start)
    if value is None:
        return None
    if not value.strip():
        raise UserError(f"--{key} '': nothing stands there; say how it starts, or omit it")
    return key, value, f"--{key}"
