"""`webdyno init`: a webdyno.toml for the application in a folder."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
from cyclopts import Parameter

from webdyno.model.command import command
from webdyno.model.errors import UserError
from webdyno.model.exit_codes import Exit
from webdyno.report.console import tell

if TYPE_CHECKING:
    from webdyno.own.found import FoundApp


FILE = "webdyno.toml"


def init(
    folder: Annotated[Path, Parameter(help="DIR: folder of the application.")] = Path(),
    *,
    start: Annotated[
        str | None,
        Parameter(help="COMMAND: how it starts, such as './server --port $PORT'."),
    ] = None,
    image: Annotated[
        str | None,
        Parameter(help="IMAGE: its container: '.' (a Dockerfile), 'compose.yaml#web', a name."),
    ] = None,
    build: Annotated[
        str | None,
        Parameter(help="COMMAND: how it is built, such as 'make release'."),
    ] = None,
    yes: Annotated[
        bool, Parameter(name="--yes", help="Answer yes to all prompts; of several take the first.")
    ] = False,
    force: Annotated[bool, Parameter(help=f"Write over a {FILE} that is there.")] = False,
) -> Exit:
    """Write a webdyno.toml that says how the application in a folder starts.

    It looks at Procfile, requirements.txt, pyproject.toml, package.json, go.mod, Cargo.toml,
    pom.xml, build.gradle, config.ru, Dockerfile, Compose files, nginx.conf and HTML pages, in this
    order, and asks where they don't say.

    For example

        webdyno init

        webdyno init --start './server --port $PORT' --build 'make release'

        webdyno init --image compose.yaml#web
    """
    from webdyno.own.found_app import find_app

    target = folder / FILE
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    if target.exists() and not force:
        raise UserError(f"{target} is there already; --force writes over it")
    told = _told(start, image)
    found = find_app(folder)
    if not told and (folder / "nginx.conf").is_file() and not (found and found.conf):
        compare = command("compare", "conf:nginx.conf", "conf:OTHER.conf")
        tell(f"nginx.conf is compared without a file: {compare}")
    app = _as_told(found, *told) if told else _asked(folder, found, yes)
    if build is not None:
        app = replace(app, build=build or None)
    target.write_text(app_toml(app), encoding="utf-8")
    tell(f"{target} says how to build, start and ask it, by {app.by}; look it over")
    for doubt in app.doubts:
        tell(f"    to be sure of: {doubt}")
    tell(
        f"    {command('gate', '--base', 'HEAD')}   holds the working tree against the last commit"
    )
    return Exit.OK


def _told(start: str | None, image: str | None) -> tuple[str, str, str] | None:
    """Give what a flag says: the key in the file, its value, and the flag."""
    given = {"start": start, "image": image}
    told = [(key, value, f"--{key}") for key, value in given.items() if value is not None]
    if len(told) > 1:
        raise UserError("--start and --image: it starts in one way; leave one of them out")
    for _, value, flag in told:
        if not value.strip():
            raise UserError(f"{flag} '': nothing stands there; say how it starts, or leave it out")
    return told[0] if told else None


def _as_told(found: "FoundApp | None", key: str, value: str, by: str) -> "FoundApp":
    """Keep of what was found how it is built and asked."""
    from webdyno.own.found import FoundApp

    kept = found or FoundApp(by)
    way: dict[str, Any] = {key: value}
    return FoundApp(by, build=kept.build, paths=kept.paths, statuses=kept.statuses, **way)


def _asked(folder: Path, found: "FoundApp | None", yes: bool) -> "FoundApp":
    """Have the user say what only he can.

    Raise UserError where that is needed and he isn't there.
    """
    from webdyno.own.found_app import LOOKED_FOR
    from webdyno.own.project import LEAST

    is_there = sys.stdin.isatty() and not yes
    if found and found.choices and is_there:
        return _chosen(found)
    if found and found.is_whole:
        return found
    if found and found.choices and yes:
        name, first = next(iter(found.choices.items()))
        doubt = f"{found.several}: {', '.join(found.choices)}; {name} was taken"
        return replace(first, doubts=(doubt, *first.doubts))
    why = f"{found.by} doesn't say" if found else f"nothing in {folder.resolve()} tells"
    if found and found.choices:
        names, example = ", ".join(found.choices), next(iter(found.choices.values()))
        flag = "--image" if example.image else "--start"
        raise UserError(
            f"{found.several}: {names}; say which, such as "
            f"{command('init', flag, example.image or example.start or '')}"
        )
    for doubt in found.doubts if found else ():
        tell(doubt)
    if not is_there:
        looked = "" if found else f" (looked for: {LOOKED_FOR})"
        raise UserError(
            f"{why} how the application starts{looked}; say it with --start, such as "
            f"--start './server --port $PORT' --build make, or write {folder / FILE}:\n\n{LEAST}"
        )
    tell(f"{why} how the application starts. With which command, listening on $PORT?")
    answer = input("> ").strip()
    if not answer:
        raise UserError("without a command there is nothing to start; nothing was written")
    return _as_told(found, "start", answer, "your answer")


def _chosen(found: "FoundApp") -> "FoundApp":
    """Ask which of several it is, until one of them is named."""
    tell(f"{found.several}: {', '.join(found.choices)}. Which?")
    while (answer := input("> ").strip()) not in found.choices:
        if not answer:
            raise UserError("none was chosen; nothing was written")
        tell(f"none of them is called {answer}")
    return replace(found.choices[answer], by=f"{found.by} and your answer")


def app_toml(found: "FoundApp") -> str:
    """Give the file's text, with comments."""
    lines = [f"# How webdyno builds, starts and asks this application (by {found.by}).", "[app]"]
    if found.build:
        lines += [
            "# run once for each revision, outside of any timing",
            _pair("build", found.build),
        ]
    lines += [*_way(found), '# environment = { LOG_LEVEL = "error" }', ""]
    if found.connections:
        lines += [
            "# Its server lets hardly more wait: others would try again after a second, and no",
            "# result could be valid. Leave this out (64) for a server that is made for load.",
            "[load]",
            _pair("connections", found.connections),
            "",
        ]
    lines.append("# Endpoints; a gate measures each by itself.")
    for path in found.paths:
        lines += ["[[requests]]", _pair("path", path)]
        if status := found.statuses.get(path):
            lines.append(_pair("status", status))
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _way(found: "FoundApp") -> list[str]:
    """Give the lines that say how it starts."""
    if found.image is not None:
        lines = ["# each revision's, run by Podman, as root (sudo)", _pair("image", found.image)]
        if found.command:
            instead = _commented(_pair("start", found.command))
            lines += [
                "# or in its place, without a container, where all it needs is there:",
                *instead,
            ]
        return lines
    if found.conf is not None:
        root = _pair("root", found.root or "public")
        return [
            "# run as an ordinary user, from a folder of the run's; what changes for that is shown",
            _pair("conf", found.conf),
            "# the document root, in the place of what it names",
            root if found.root else f"# {root}",
        ]
    return ["# has to listen on 127.0.0.1, port $PORT", _pair("start", found.start or "")]


def _commented(text: str) -> list[str]:
    return [f"# {line}" for line in text.splitlines()]


def _pair(key: str, value: str | int) -> str:
    return tomli_w.dumps({key: value}).strip()
