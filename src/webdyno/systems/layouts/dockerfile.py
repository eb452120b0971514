"""Applications with a Dockerfile, and what Compose's files say of the image that it builds."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import Table, as_list, as_table, long_form, read_text
from webdyno.systems.containers.compose_file import USUAL_FILES, read_compose
from webdyno.systems.env_files import example_file
from webdyno.systems.layouts.app import FoundApp, first_of, sources
from webdyno.systems.layouts.compose import (
    COMPOSE_READY_WITHIN_S,
    context_of,
    find_compose,
    services_as_written,
)
from webdyno.systems.layouts.settings import IS_GIVEN
from webdyno.systems.layouts.start_scripts import image_command
from webdyno.systems.layouts.variables import given_port

COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")


def find_dockerfile(folder: Path) -> FoundApp | None:
    """Take the image, whose building says what the application needs.

    Where a Compose file builds it as one of its services, that says what runs next to it.
    """
    name = first_of(folder, "Containerfile", "Dockerfile")
    if name is None:
        return None
    command = given_port(image_command(read_text(folder / name) or "") or "")
    alone = f"without a container, where all that it needs is here: --start {shlex.quote(command)}"
    app = FoundApp(name, image=".", notes=(alone,) if command else ())
    if (composed := find_compose(folder)) and (image := _composed(composed, folder / name)):
        of_name = f"{composed.by} says what runs next to the image of {name}: --image . is without"
        return replace(
            app,
            image=image,
            ready_within_s=COMPOSE_READY_WITHIN_S,
            doubts=composed.doubts,
            notes=(of_name, *app.notes),
        )
    files = sorted(path.name for path in folder.iterdir() if COMPOSE_NAME.fullmatch(path.name))
    if not files:
        return app
    doubt = (
        f"taken is the image of {name} alone; services and variables of {', '.join(files)} "
        f'aren\'t read: image = "{files[0]}#SERVICE" takes them (between several files a comma)'
    )
    return replace(app, doubts=(doubt,))


def _composed(composed: FoundApp, file: Path) -> str | None:
    """Return the service that is asked: the one that a Dockerfile makes, or what is in front."""
    images = [app.image for app in (composed, *composed.choices.values()) if app.image]
    if not images:
        return None
    services = read_compose([file.parent / composed.by], composed.by).services()
    built = {name for name, service in services.items() if _builds(as_table(service), file)}
    own = [image for image in images if image.partition("#")[2] in built]
    return own[0] if len(own) == 1 else composed.image if built else None


def _builds(service: Table, file: Path) -> bool:
    context = context_of(service, file.parent)
    name = str(long_form(service.get("build"), "context").get("dockerfile", "Dockerfile"))
    return context is not None and context / name == file.resolve()


READ_BARE = re.compile(
    r"""\bprocess\.env\.(?P<name>[A-Z][A-Z0-9_]*)\b(?!\s{0,9}(?:\|\||\?\?|\?))"""
    r"""|\bos\.environ\[["'](?P<key>[A-Z][A-Z0-9_]*)["']\](?!\s{0,9}=)"""
)
"""A variable that is read without a value in its place."""
OF_DEVELOPMENT = re.compile(
    r"\w*(?:DEBUG|LOG|VERBOSE|WATCH|POLLING)\w*|(?:NODE_|FLASK_|APP_)?ENV|PORT"
)


def with_values_of_compose(app: FoundApp, folder: Path) -> FoundApp:
    """Give a program what its service in Compose's file gets, where nothing else says it."""
    name = first_of(folder, *USUAL_FILES)
    if not app.start or name is None or example_file(folder):
        return app
    texts = (read_text(path) or "" for path in sources(folder))
    read = {match["name"] or match["key"] for text in texts for match in READ_BARE.finditer(text)}
    known = f"{app.start} {app.setup}"
    given = {
        key: value
        for key, value in _values_of_service(folder, name).items()
        if key in read - app.environment.keys() and f"{key}=" not in known and "$" not in value
        if not (IS_GIVEN.fullmatch(key) or OF_DEVELOPMENT.fullmatch(key))
    }
    if not given:
        return app
    note = f"its variables have the values of {name}"
    return replace(app, environment={**given, **app.environment}, notes=(*app.notes, note))


def _values_of_service(folder: Path, name: str) -> dict[str, str]:
    """Return the environment of the service that a folder's image is built for."""
    for service in map(as_table, services_as_written(folder / name).values()):
        if context_of(service, folder) == folder.resolve():
            said = service.get("environment")
            pairs = (str(each).partition("=")[::2] for each in as_list(said))
            return {str(key): str(value) for key, value in (as_table(said) or dict(pairs)).items()}
    return {}
