"""What `webdyno init` asks people: what files don't say, and what nobody else knows."""

import os
import re
import sys
from dataclasses import replace
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdyno.core.errors import UserError
from webdyno.core.registry import command
from webdyno.core.text import in_one_line
from webdyno.media.console import notify

if TYPE_CHECKING:
    from webdyno.systems.layouts.app import FoundApp

FILE = "webdyno.toml"
MOST_NAMED, MOST_ASKED = 12, 8
HAS_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
"""Of an address."""


def started_by(app: "FoundApp | None", key: str, value: str, by: str) -> "FoundApp":
    """Keep of what was found how it is built and asked."""
    from webdyno.systems.layouts.app import FoundApp

    kept = app or FoundApp(by)
    if key == "start":
        others: dict[str, Any] = {"image": None, "conf": None, "root": None, "choices": {}}
        return replace(kept, by=by, start=value, notes=(), doubts=(), **others)
    return FoundApp(by, image=value, paths=kept.paths)


def completed_by_person(
    folder: Path, app: "FoundApp | None", yes: bool, build_is_said: bool
) -> "FoundApp":
    """Ask for what was not found; raise UserError where nobody is there."""
    from webdyno.systems.layouts import looked_for
    from webdyno.systems.project import LEAST

    is_there = is_anybody_there(yes)
    if app and app.is_whole:
        return app
    if app and app.choices:
        if is_there:
            return _choose(app)
        if not yes:
            raise UserError(_which(app))
        name, first = next(iter(app.choices.items()))
        note = f"{app.several}: {', '.join(app.choices)}; {name} was taken"
        return replace(first, notes=(note, *first.notes))
    why = f"{app.by} doesn't say" if app else f"nothing in {folder.resolve()} says"
    reasons = "".join(f"\n{in_one_line(doubt)}" for doubt in app.doubts) if app else ""
    if not is_there:
        looked = "" if app else f" (looked for: {looked_for()})"
        raise UserError(
            f"{why} how the application starts{looked}; say it with --start, such as "
            f"--start './server --port $PORT' --build make, or write {folder / FILE}:\n\n"
            f"{LEAST}{reasons and chr(10)}{reasons}"
        )
    notify(f"{why} how the application starts.{reasons}\nWith which command, listening on $PORT?")
    answer = input("> ").strip()
    if not answer:
        raise UserError("without a command there is nothing to start; nothing was written")
    started = started_by(app, "start", answer, "your answer")
    if started.build is not None or build_is_said:
        return started
    notify("Which command builds it? (Enter: none)")
    return replace(started, build=input("> ").strip() or None)


def _which(app: "FoundApp") -> str:
    """Return what there is to choose from, and how to choose without a terminal."""
    from webdyno.core.format import listed_to

    names, example = list(app.choices), next(iter(app.choices.values()))
    if example.dir != ".":
        how = command("init", example.dir)
    elif example.image:
        how = command("init", "--image", example.image)
    else:
        build = ("--build", example.build) if example.build else ()
        how = command("init", "--start", example.start or "", *build)
    return f"{app.several}: {listed_to(MOST_NAMED, names)}; say which, such as {how}"


def _choose(app: "FoundApp") -> "FoundApp":
    notify(f"{app.several}: {', '.join(app.choices)}. Which?")
    while (answer := input("> ").strip()) not in app.choices:
        if not answer:
            raise UserError("none was chosen; nothing was written")
        notify(f"none of them is called {answer}")
    return replace(app.choices[answer], by=f"{app.by} and your answer")


def is_anybody_there(yes: bool) -> bool:
    """Whether somebody is at the terminal who wants to be asked."""
    return sys.stdin.isatty() and not yes


def with_asked_values(app: "FoundApp", folder: Path) -> "FoundApp":
    """Ask for the values of variables that only people know; secrets stay in the environment."""
    from webdyno.systems.layouts.variables import place_of

    for doubt, names in app.wanted.items():
        lacking = [name for name in names if name not in app.environment]
        if len(lacking) > MOST_ASKED:
            continue
        if lacking:
            notify(in_one_line(doubt))
        given = {name: _value_of(name, place_of(name, folder / app.dir)) for name in lacking}
        values = {name: value for name, value in given.items() if value}
        app = replace(app, environment={**app.environment, **values})
        if len(values) == len(lacking):
            app = replace(app, doubts=tuple(each for each in app.doubts if each != doubt))
    return app


def _value_of(name: str, place: str) -> str:
    """Return what the file is to have as a variable's value; empty for none."""
    from webdyno.config.columns import PASSWORDS

    hidden = PASSWORDS.search(name)
    notify(f"{name}{place and f', read in {place}'}: its value? (Enter: none)")
    value = (getpass("> ") if hidden else input("> ")).strip()
    if not value or not (hidden or HAS_PASSWORD.search(value)):
        return value
    os.environ[name] = value  # for the first try
    notify(f"    {FILE} has no secrets: before webdyno is called, export {name}=…")
    return f"${{env:{name}}}"


def asked_path() -> str:
    """Ask for a path that can be measured; empty for none."""
    notify("Nothing that was asked for can be measured. Which path answers 200? (Enter: none)")
    return input("> ").strip()
