"""`webdyno init`: a webdyno.toml for the application in a folder."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tomli_w
from cyclopts import Parameter

from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.definitions.found_app import FoundApp, find_app
from webdyno.model.command import command
from webdyno.model.mistake import Mistake

FILE = "webdyno.toml"


def init(
    folder: Annotated[Path, Parameter(help="The folder of the application.")] = Path(),
    *,
    start: Annotated[
        str | None,
        Parameter(help="How it starts, such as './server --port $PORT'; found out unless given."),
    ] = None,
    force: Annotated[
        bool,
        Parameter(help=f"Write over a {FILE} that is there.", negative=(), show_default=False),
    ] = False,
) -> Exit:
    """Look at a folder and write a webdyno.toml that says how its application starts.

    It looks at Procfile, requirements.txt, pyproject.toml, package.json, go.mod, config.ru,
    Dockerfile, Compose files and HTML pages, and asks where they don't tell.

    For example

        webdyno init

        webdyno init --start './server --port $PORT'
    """
    target = folder / FILE
    if not folder.is_dir():
        raise Mistake(f"{folder}: there is no such folder")
    if target.exists() and not force:
        raise Mistake(f"{target} is there already; --force writes over it")
    if (folder / "nginx.conf").is_file() and start is None:
        duel = command("duel", "conf:nginx.conf", "conf:OTHER.conf")
        tell(f"nginx.conf is compared without a file: {duel}")
    found = find_app(folder)
    if start:
        found = _started_by(start, "--start", found)
    if found is None or found.start is None:
        found = _started_by(_asked(folder, found), "your answer", found)
    target.write_text(written(found), encoding="utf-8")
    tell(f"{target} says how to build, start and ask it, by {found.by}; look it over")
    for doubt in found.doubts:
        tell(f"    to be sure of: {doubt}")
    tell(
        f"    {command('gate', '--base', 'HEAD')}   holds the working tree against the last commit"
    )
    return Exit.OK


def _started_by(start: str, by: str, found: FoundApp | None) -> FoundApp:
    if found is None:
        return FoundApp(by, start)
    return replace(found, by=by, start=start, doubts=(), connections=None)


def _asked(folder: Path, found: FoundApp | None) -> str:
    """Ask how it starts; raise Mistake where nobody can be asked."""
    why = f"{found.by} doesn't tell" if found else f"nothing in {folder.resolve()} tells"
    if not sys.stdin.isatty():
        raise Mistake(
            f"{why} how the application starts; say it with --start, such as "
            "--start './server --port $PORT'"
        )
    tell(f"{why} how the application starts. With which command, listening on $PORT?")
    answer = input("> ").strip()
    if not answer:
        raise Mistake("without a command there is nothing to start; nothing was written")
    return answer


def written(found: FoundApp) -> str:
    """Give the file's text, with comments."""
    lines = [f"# How webdyno builds, starts and asks this application (by {found.by}).", "[app]"]
    if found.build:
        lines += [
            "# run once for each revision, outside of any timing",
            _pair("build", found.build),
        ]
    lines += ["# has to listen on 127.0.0.1, port $PORT", _pair("start", found.start or "")]
    lines += ['# environment = { LOG_LEVEL = "error" }', ""]
    if found.connections:
        lines += [
            "# Its server lets hardly more wait: others would try again after a second, and no",
            "# rate could be believed. Leave this out (64) for a server that is made for load.",
            "[load]",
            _pair("connections", found.connections),
            "",
        ]
    lines.append("# Endpoints; a gate measures each by itself.")
    for path in found.paths:
        lines += ["[[requests]]", _pair("path", path), ""]
    return "\n".join(lines[:-1]) + "\n"


def _pair(key: str, value: str | int) -> str:
    return tomli_w.dumps({key: value}).strip()
