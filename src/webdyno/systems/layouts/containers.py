"""The container in the place of a program, where it describes an application better."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.core.registry import command
from webdyno.core.tables import read_text
from webdyno.systems.env_files import example_file
from webdyno.systems.layouts.app import FoundApp, Hindrance, first_of
from webdyno.systems.layouts.compose import images_behind
from webdyno.systems.layouts.composition import DEVELOPS, Composition, find_composition, why_none
from webdyno.systems.layouts.remedies import AS_PROGRAM, missing_tools
from webdyno.systems.layouts.settings import IS_GIVEN, PLAIN_VALUE, example_of
from webdyno.systems.layouts.start_scripts import image_command
from webdyno.systems.layouts.variables import (
    wanted_variables,
    with_no_rate_limit,
    with_values_for_secrets,
    with_wanted_variables,
)

FILLS = re.compile(
    r"migrat|\bupgrade\b|\bdb:(?:prepare|push|seed)|\bdb push\b|\bseed|\bloaddata\b|initdb\.d"
    r"|flyway|liquibase|dbmate|(?:create|init)_(?:tables|db)\b"
)
"""What says that tables are made."""
EXPOSES = re.compile(r"^[ \t]*EXPOSE[ \t]+\d", re.MULTILINE | re.IGNORECASE)
NOT_SO = f"as a program: {command('init', AS_PROGRAM)}"


def in_container(program: FoundApp | None, folder: Path) -> FoundApp | None:
    """Return the container that an application is better started as; None where that is none.

    Compose files that build it come first. A Dockerfile alone has its port to itself, and its
    interpreter, which helps a program that lacks nothing else.
    """
    hindrances = _hindrances(program)
    composition = find_composition(folder, inside=program is None or not program.start)
    if composition and _has_tables(program, composition):
        composed = _completed(composition, folder)
        if composed and (hindrances or not composed.hindrances):
            return _instead(composed, program, composition.others)
    if program and program.start and not program.services and hindrances == {Hindrance.HERE}:
        return _image_alone(program, folder)
    text, mark, _ = (program.image or "").partition("#") if program else ("", "", "")
    if program and mark and (why := why_none(folder, text)):
        return program.hindered(Hindrance.BEHIND, why)
    return None


def _hindrances(program: FoundApp | None) -> frozenset[Hindrance]:
    if program is None or not program.is_whole:
        return frozenset(Hindrance)
    steps = replace(program, setup=None, prepare=None, image=None)  # services bring what those need
    return program.hindrances | ({Hindrance.HERE} if missing_tools(steps) else frozenset())


def _has_tables(program: FoundApp | None, composition: Composition) -> bool:
    """Whether something in it fills what the program would have to fill."""
    steps = f"{program.prepare or ''} {program.setup or ''}" if program else ""
    return not steps.strip() or FILLS.search(composition.says) is not None


def _completed(composition: Composition, folder: Path) -> FoundApp | None:
    """Give it what its program reads and it doesn't say, as a program would get it."""
    app = composition.app
    if not composition.is_front_built:
        return app
    said = {name: value for name, value in composition.front.environment.items() if value}
    shown = {match["name"]: match["value"] for match in PLAIN_VALUE.finditer(example_of(folder))}
    lacking = wanted_variables(folder) - said.keys()
    if any(IS_GIVEN.fullmatch(name) for name in lacking & shown.keys() - {"PORT", "HOST"}):
        return None
    values = {name: shown[name].strip("\"'") for name in sorted(lacking & shown.keys())}
    if values:
        note = f"its variables have the values of {example_file(folder)}"
        app = replace(app, notes=(*app.notes, note))
    started = replace(app, start=".", environment={**said, **values})
    whole = with_no_rate_limit(with_values_for_secrets(started, folder), folder)
    whole = with_wanted_variables(whole, folder)
    environment = {name: value for name, value in whole.environment.items() if name not in said}
    return replace(whole, start=None, environment=environment)


def _instead(app: FoundApp, program: FoundApp | None, others: Sequence[str]) -> FoundApp:
    behind = f" with {', '.join(others)}" if others else ""
    note = f"taken is {app.by}, which builds the application{behind}"
    if program is None or not program.is_whole:
        return replace(app, notes=(note, *app.notes))
    return replace(
        app,
        notes=(f"{note}; {NOT_SO}", *app.notes),
        paths=program.paths,
        headers=program.headers,
    )


def _image_alone(program: FoundApp, folder: Path) -> FoundApp | None:
    name = first_of(folder, "Containerfile", "Dockerfile")
    text = read_text(folder / name) or "" if name else ""
    develops = DEVELOPS.search(image_command(text) or "")
    if name is None or not EXPOSES.search(text) or develops or images_behind(folder):
        return None
    note = f"taken is {name}: its container has the port, the tools and the versions; {NOT_SO}"
    return FoundApp(
        name,
        image=".",
        environment=program.environment,
        headers=program.headers,
        paths=program.paths,
        notes=(note,),
    )
