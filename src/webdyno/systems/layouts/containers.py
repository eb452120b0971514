"""Containers in the place of a program, where they describe an application better.

Compose files that build it themselves and run it as in production have its databases, ports and
variables right, where they need nothing that isn't there.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.registry import command
from webdyno.core.tables import as_list, as_table, json_table, long_form, read_text, several, table
from webdyno.systems.containers.compose import ComposeService, compose_files, compose_services
from webdyno.systems.containers.compose_file import SEVERAL, USUAL_FILES, read_compose
from webdyno.systems.env_files import example_file
from webdyno.systems.layouts.app import FoundApp, Hindrance, first_of, sources
from webdyno.systems.layouts.compose import (
    COMPOSE_READY_WITHIN_S,
    context_of,
    fronts_of,
    images_behind,
    is_of_others,
)
from webdyno.systems.layouts.remedies import AS_PROGRAM, missing_tools
from webdyno.systems.layouts.settings import IS_GIVEN, PLAIN_VALUE, example_of
from webdyno.systems.layouts.start_scripts import (
    SCRIPT,
    SCRIPT_FOLDERS,
    SHELL_COMMENT,
    image_command,
)
from webdyno.systems.layouts.variables import (
    OF_HTTP_PORT,
    with_no_rate_limit,
    with_values_for_secrets,
)
from webdyno.systems.layouts.wanted import wanted_variables, with_wanted_variables
from webdyno.systems.repository import top_around

FILLS = re.compile(
    r"migrat|\bupgrade\b|\bdb:(?:prepare|push|seed)|\bdb push\b|\bseed|\bloaddata\b|initdb\.d"
    r"|flyway|liquibase|dbmate|(?:create|init)_(?:tables|db)\b"
)
"""What says that tables are made."""
EXPOSES = re.compile(r"^[ \t]*EXPOSE[ \t]+\d", re.MULTILINE | re.IGNORECASE)
NOT_SO = f"as a program: {command('init', AS_PROGRAM)}"


class _Composition(NamedTuple):
    """Compose files that build an application themselves, and need nothing that isn't there."""

    app: FoundApp
    front: ComposeService
    is_front_built: bool
    """Whether what is asked is the application, and nothing before it."""
    others: tuple[str, ...]
    """The services behind it, which start with it."""
    says: str
    """What its services run and are made of, as text."""


def in_container(program: FoundApp | None, folder: Path) -> FoundApp | None:
    """Return the container that an application is better started as; None where that is none.

    Compose files that build it come first. A Dockerfile alone has its port to itself, and its
    interpreter, which helps a program that lacks nothing else.
    """
    hindrances = _hindrances(program)
    composition = _find_composition(folder, inside=program is None or not program.start)
    if composition and _has_tables(program, composition):
        composed = _completed(composition, folder)
        if composed and (hindrances or not composed.hindrances):
            return _instead(composed, program, composition.others)
    if program and program.start and not program.services and hindrances == {Hindrance.HERE}:
        return _image_alone(program, folder)
    text, mark, _ = (program.image or "").partition("#") if program else ("", "", "")
    if program and mark and (why := _why_none(folder, text)):
        return program.hindered(Hindrance.BEHIND, why)
    return None


def _hindrances(program: FoundApp | None) -> frozenset[Hindrance]:
    if program is None or not program.is_whole:
        return frozenset(Hindrance)
    steps = replace(program, setup=None, prepare=None, image=None)  # services bring what those need
    return program.hindrances | ({Hindrance.HERE} if missing_tools(steps) else frozenset())


def _has_tables(program: FoundApp | None, composition: _Composition) -> bool:
    """Whether something in it fills what the program would have to fill."""
    steps = f"{program.prepare or ''} {program.setup or ''}" if program else ""
    return not steps.strip() or FILLS.search(composition.says) is not None


def _completed(composition: _Composition, folder: Path) -> FoundApp | None:
    """Give it what its program reads and it doesn't say, as a program would get it."""
    app = composition.app
    if not composition.is_front_built:
        return app
    said = {name: value for name, value in composition.front.environment.items() if value}
    shown = {match["name"]: match["value"] for match in PLAIN_VALUE.finditer(example_of(folder))}
    lacking = wanted_variables(folder) - said.keys() - {"HOST"}
    values = {name: shown[name].strip("\"'") for name in sorted(lacking & shown.keys())}
    addresses = (name for name in values if IS_GIVEN.fullmatch(name) and name != "PORT")
    if any(addresses) or any(map(IN_ITSELF.search, values.values())):
        return None
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
    if program is None or not program.start:
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
    app = FoundApp(
        name,
        ".",
        image=".",
        environment=program.environment,
        headers=program.headers,
        paths=program.paths,
        notes=(note,),
    )
    return replace(with_wanted_variables(app, folder), start=None)


PRODUCTION = re.compile(r"(?:docker-)?compose[.-]prod(?:uction)?\.ya?ml")
FOLDERS = ("", "docker/", "deploy/", "infra/", "containers/", "deployment/", ".docker/")
"""Where Compose files stand that build what is around them."""
DEVELOPS = re.compile(
    r"--reload\b|--watch\b|--hot\b|\bnodemon\b|\bts-node-dev\b|\btsx watch\b|\b(?:next|nuxt) dev\b"
    r"|\bflask (?:--\S+ )*run\b|manage\.py runserver|runserver_plus"
    r"|(?:^|[\s/\"'])air(?:$|[\s\"'])|\breflex\b|\bCompileDaemon\b|\bgo run\b"
    r"|\bcargo[- ]watch\b|\bcargo run\b(?![^\n]{0,200}--release)"
    r"|\bmix phx\.server\b|\bdotnet watch\b"
    r"|\bspring-boot:run\b|\bbootRun\b|\bquarkus:?[dD]ev\b|\bvite\b(?! (?:preview|build))"
    r"|\b(?:npm|pnpm|yarn|bun) (?:run )?(?:\w+:)?(?:dev|develop|watch|serve:dev|debug)\b"
    r"|\b(?:npm|npx|yarn|pnpm) (?:install|ci|i)\b|^yarn$",
    re.MULTILINE,
)
"""Commands with which people develop; a container that installs first has no sources in it."""
IN_ITSELF = re.compile(
    r"(?:^|//|@)(?:localhost|127\.0\.0\.1):(?:5432|3306|6379|27017|5672|9092|1433|11211|9200)\b"
    r"|^(?:jdbc:)?(?:postgres|mysql|mariadb|mongodb|redis|amqp)[^\n]{0,200}?(?:@|//)localhost\b"
)
ASKED = re.compile(
    r"(?:DB|DATABASE|PG|POSTGRES|MYSQL|MONGO|REDIS|CACHE|RABBITMQ)_{0,2}HOST\w{0,20}="
    r"(?P<bare>127\.0\.0\.1$|[A-Za-z][\w-]{0,60}$)"
    r"|=(?:jdbc:)?(?:postgres|mysql|mariadb|mongodb|redis|amqp)[a-z]{0,9}(?:\+\w{1,20})?://"
    r"(?:[^\s/@]{0,200}@)?(?P<host>[A-Za-z][\w-]{0,60})(?=[:/?]|$)"
)
"""Variables that say where another service is, with its name: of this machine, or of a network."""
LISTENS_BY = re.compile(rf"PORT|{OF_HTTP_PORT.pattern}")
OF_TLS = {443, 8443}
RUN_BY_NAME = re.compile(r"\b(?:npm|pnpm|yarn|bun) (?:run )?(?P<name>[\w:-]+)")


def _find_composition(folder: Path, *, inside: bool) -> _Composition | None:
    """Return the files that build the application in a folder and run it as in production.

    `inside`: whether what is built of folders in it counts, as where it has no program itself.
    """
    for text in _files(folder):
        with suppress(UserError, OSError):  # such as a name that is too long for one
            if composition := _composition(folder, text, inside):
                return composition
    return None


def _why_none(folder: Path, text: str) -> str:
    """Return why files don't describe the applications of a folder; empty where they do."""
    try:
        _composition(folder, text, inside=True)
    except (UserError, OSError) as error:
        return str(error)
    return ""


def _files(folder: Path) -> Iterator[str]:
    """Yield what `image` may name, that of production first."""
    for place in filter(lambda place: (folder / place).is_dir(), FOLDERS):
        inside = folder / place
        base = first_of(inside, *USUAL_FILES)
        for name in sorted(path.name for path in inside.iterdir()):
            if PRODUCTION.fullmatch(name):
                yield place + name
                if base:
                    yield SEVERAL.join((place + base, place + name))
        if base:
            yield place + base


def _composition(folder: Path, text: str, inside: bool) -> _Composition | None:
    """Read files; None where they describe something else, or want what nobody sets.

    Raise UserError, with the cause, where the application can't be measured as they describe it.
    """
    files, top = compose_files(text, folder), top_around(folder) or folder
    project = read_compose(files, text, top)
    services = project.services()
    own = {name: keys for name, keys in services.items() if not is_of_others(keys)}
    contexts = {name: context_of(keys, project.folder) for name, keys in own.items()}
    built = {
        name: own[name]
        for name, context in contexts.items()
        if context == folder.resolve()
        or (inside and context and context.is_relative_to(folder.resolve()))
    }
    fronts = fronts_of(own)
    if project.unset or not built or len(fronts) != 1:
        return None
    (name,) = fronts
    *behind, front = compose_services(files, name, text, lambda _: None, top)
    if OF_TLS & {*front.ports}:
        raise UserError(f"{text}: {name} speaks TLS, for which it needs a domain's certificate")
    starts = {each: _starts(keys, project.folder, folder) for each, keys in built.items()}
    for each, keys in built.items():
        if develops := DEVELOPS.search(starts[each]):
            raise UserError(f"{text} is for development: {each} runs {develops[0].strip()}")
        if _is_overlaid(keys, project.folder, folder):
            raise UserError(f"{text} is for development: sources lie over the image of {each}")
    if asked := _first_read(_misleading(front, behind), folder):
        raise UserError(f"{text}: {asked} leads {name} to where no other service is")
    if name in built and (port := _first_read(_unpublished(front), folder)):
        raise UserError(f"{text}: {port} has {name} listen on a port that it doesn't publish")
    others = tuple(each.name for each in behind)
    app = FoundApp(
        text,
        image=f"{text}#{name}",
        notes=tuple(project.notes),
        ready_within_s=COMPOSE_READY_WITHIN_S if others else None,
    )
    files_of_images = (_dockerfile(keys, project.folder)[0] for keys in built.values())
    images = (SHELL_COMMENT.sub("", read_text(file) or "") for file in files_of_images)
    next_to_it = {each: keys for each, keys in services.items() if each not in built}
    words = [each for keys in next_to_it.values() for each in _words(keys, "image", "volumes")]
    says = "\n".join([*starts.values(), *images, *next_to_it, *words])
    return _Composition(app, front, name in built, others, says)


def _first_read(names: Sequence[str], folder: Path) -> str:
    """Return the first of the variables that sources read; empty for none."""
    texts = [read_text(path) or "" for path in sources(folder)] if names else []
    return next((name for name in names if any(name in text for text in texts)), "")


def _misleading(front: ComposeService, behind: Sequence[ComposeService]) -> list[str]:
    """Return the variables by whose addresses a container reaches itself alone, or nobody."""
    known = {name for each in behind for name in (each.name, *each.names)}
    asked = {name: ASKED.search(f"{name}={value}") for name, value in front.environment.items()}
    lost = {name for name, match in asked.items() if match and {*match.groups()}.isdisjoint(known)}
    return [
        name for name, value in front.environment.items() if name in lost or IN_ITSELF.search(value)
    ]


def _unpublished(front: ComposeService) -> list[str]:
    """Return the variables for its port, where none has one that a container publishes."""
    ports = {
        name: value
        for name, value in front.environment.items()
        if LISTENS_BY.fullmatch(name) and value.isdecimal()
    }
    return [] if {*map(int, ports.values())} & {*front.ports} or not front.ports else [*ports]


def _dockerfile(service: Any, around: Path) -> tuple[Path, str]:  # noqa: ANN401 (YAML)
    """Return the file that a service's image is made by, and that one's stage."""
    form = long_form(as_table(service).get("build"), "context")
    context = around / str(form.get("context") or ".")
    return context / str(form.get("dockerfile", "Dockerfile")), str(form.get("target", ""))


def _is_overlaid(service: Any, around: Path, folder: Path) -> bool:  # noqa: ANN401 (YAML)
    """Whether sources of the folder lie over those that its image is made of."""
    for volume in as_list(as_table(service).get("volumes")):
        source = str(as_table(volume).get("source") or str(volume).partition(":")[0])
        inside = (around / source).resolve()
        is_own = source.startswith((".", "/")) and inside.is_relative_to(folder.resolve())
        if is_own and inside.is_dir() and (inside == folder.resolve() or sources(inside)):
            return True
    return False


def _words(service: Any, *names: str) -> list[str]:  # noqa: ANN401 (YAML)
    """Return what a service says by some of its keys, a line each."""
    said = filter(None, map(as_table(service).get, names))
    return [each if isinstance(each, str) else " ".join(several(each)) for each in said]


def _starts(service: Any, around: Path, folder: Path) -> str:  # noqa: ANN401 (YAML)
    """Return what a service runs: its command, or that of its image, and what that leads to."""
    file, target = _dockerfile(service, around)
    of_image = image_command(read_text(file) or "", target) or ""
    lines = _words(service, "entrypoint", "command")
    if not lines or ".sh" in of_image:  # its script runs what a service says
        lines.append(of_image)
    text = "\n".join(lines)
    scripts = table(json_table(read_text(folder / "package.json") or ""), "scripts")
    for name in {match["name"] for match in RUN_BY_NAME.finditer(text)}:
        text += f"\n{scripts.get(name, '')}"
    for name in {match["name"] for match in SCRIPT.finditer(text)}:
        place = first_of(folder, *(f"{where}{name}" for where in SCRIPT_FOLDERS))
        text += f"\n{read_text(folder / place) or ''}" if place else ""
    return text
