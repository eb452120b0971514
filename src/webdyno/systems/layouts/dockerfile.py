"""Applications that containers run: Compose files, and Dockerfiles with the command they start.

That command, and the scripts that it leads to, say what runs before and around a server where
package files don't: migrations, seeds, and numbers of workers.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from webdyno.core.errors import UserError
from webdyno.core.tables import Table, as_list, as_table, long_form, read_text, table
from webdyno.systems.containers.compose_file import (
    USUAL_FILES,
    askable,
    plain_values,
    read_compose,
)
from webdyno.systems.layouts.app import FoundApp, first_of, sources
from webdyno.systems.layouts.python_tools import makes_venv
from webdyno.systems.layouts.settings import IS_GIVEN, example_file
from webdyno.systems.layouts.variables import given_port

INSTRUCTION = re.compile(
    r"^[ \t]*(FROM|ENTRYPOINT|CMD)[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE | re.IGNORECASE
)


OF_SHELL = {("sh", "-c"), ("bash", "-c"), ("bash", "-lc")}


def image_command(text: str) -> str | None:
    """Return what an image starts by its Dockerfile: the ENTRYPOINT and CMD of its last stage."""
    instructions: dict[str, str] = {}
    for match in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = match[1].upper()
        instructions = {} if word == "FROM" else {**instructions, word: match[2]}
    entry, command = (
        _command_words(instructions.get(instruction, "[]")) for instruction in ("ENTRYPOINT", "CMD")
    )
    if isinstance(entry, str):  # a line of shell, which takes no CMD
        return entry
    parts = [*entry, *([command] if isinstance(command, str) else command)]
    if len(parts) > 2 and (parts[0].rpartition("/")[2], parts[1]) in OF_SHELL:
        return parts[2]
    return " ".join(parts) or None


def _command_words(command: str) -> str | list[str]:
    try:
        words = json.loads(command)
    except (ValueError, RecursionError):
        return command
    return list(map(str, words)) if isinstance(words, list) else command


OF_OTHERS = re.compile(
    r"^(?:postgres\w*|postgis|timescaledb\S*|mysql\S*|mariadb|percona\S*|mongo\w*|redis\S*|valkey|keydb"
    r"|memcached|rabbitmq|(?>\S*?(?:kafka|zookeeper))\S*+|nats|eclipse-mosquitto|pgbouncer"
    r"|elasticsearch|opensearch|qdrant|minio|localstack|keycloak|adminer|pgadmin4|phpmyadmin|mongo-express"
    r"|redis-?commander|redisinsight|mailhog|mailpit|maildev|prometheus|grafana|jaeger\S*"
    r"|portainer\S*)"
)
"""Images that applications need, or that look into those."""
PORTS_OF_OTHERS = {
    *("3306", "5432", "6379", "27017", "11211", "5672", "9092", "2181", "1883", "1433", "4222"),
}
COMPOSE_READY_WITHIN_S = 120
"""An image's database is set up before what is asked starts."""
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


def find_compose(folder: Path) -> FoundApp | None:
    """Take the service that clients ask, where there is only one that it can be."""
    name = first_of(folder, *USUAL_FILES)
    if name is None:
        return None
    try:
        project = read_compose([folder / name], name)
    except UserError as error:
        return FoundApp(name, doubts=(str(error),))
    app = FoundApp(name, doubts=tuple(project.notes))
    services = project.services()
    own = {service: keys for service, keys in services.items() if not _is_of_others(keys)}
    if services and not own:
        only = f"{name} has only what applications need: {', '.join(services)}"
        return FoundApp(name, doubts=(*project.notes, only))
    if len(services) > 1:
        app = replace(app, ready_within_s=COMPOSE_READY_WITHIN_S)
    choices = {service: replace(app, image=f"{name}#{service}") for service in askable(own)}
    if len(choices) == 1:
        return next(iter(choices.values()))
    several = f"{name} has several services that could be asked" if choices else ""
    return FoundApp(name, several=several, choices=choices)


def _is_of_others(service: object) -> bool:
    """Whether it is a database, a queue, or a tool for one, by its image or its ports."""
    keys = as_table(service)
    name, _, _ = str(keys.get("image", "")).rpartition("/")[2].partition(":")
    if OF_OTHERS.fullmatch(name):
        return True
    published = (long_form(port, "target").get("target") for port in as_list(keys.get("ports")))
    # `8080:80/tcp` is port 80 inside.
    ports = {str(port).partition("/")[0].rpartition(":")[2] for port in published}
    return bool(ports) and ports <= PORTS_OF_OTHERS


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
    keys = service.get("build")
    form = long_form(keys, "context")
    context = (file.parent / str(form.get("context") or ".")).resolve()
    return bool(keys) and context / str(form.get("dockerfile", "Dockerfile")) == file.resolve()


SCRIPT_FOLDERS = ("", "scripts/", "docker/", "bin/", "deploy/", "compose/")
USUAL_SCRIPTS = (
    *("prestart.sh", "docker-entrypoint.sh", "entrypoint.sh", "start.sh", "docker-entrypoint"),
    *("start-prod.sh", "run.sh", "boot.sh"),
)
SCRIPT = re.compile(r"(?<![\w-])(?P<name>[\w-]++\.sh)\b")
MOST_SCRIPTS = 8
SEPARATORS = re.compile(r"&&|\|\||[;\n]")
MIGRATES = re.compile(
    r"\balembic\b.*\bupgrade\b|\bdb upgrade\b|manage\.py migrate\b|\baerich upgrade\b"
    r"|\bprisma (?:migrate deploy|db push)\b|\bknex\b.*\bmigrate:latest\b"
    r"|\bsequelize\b.*\bdb:migrate$|\btypeorm\b.*\bmigration:run\b|\bdrizzle-kit (?:migrate|push)\b"
    r"|\b(?:rails|rake) db:(?:migrate|prepare)\b"
    r"|\bartisan migrate\b|\bdiesel migration run\b|\bsqlx migrate run\b"
    r"|\bdoctrine:migrations:migrate\b"
    r"|\b(?:npm|pnpm|yarn|bun) (?:run )?(?:db:)?migrat\w*(?::\w+)*"
)
SEEDS = re.compile(
    r"\bseed\w*|\binitial_data\b|\bloaddata\b|\bpopulate\w*|\bload_fixtures?\b|\b(?:create|init)_(?:tables|db)\b"
    r"|\bfixtures:load\b|\bdb:seed\b"
)
THROUGH = re.compile(r"^(?:exec\s+)?(?:(?:uv|poetry|pipenv|pdm) run\s+(?:--\S+\s+)*)?")
OF_VENV = re.compile(r"^(?:python3?|alembic|flask|aerich|[\w-]+)(?=\s)")
PROGRAMS_OF_SYSTEM = re.compile(r"^(?:sh|bash|npm|npx|pnpm|yarn|bun|php|bundle|bin/)\b")
SHELL_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
PATH_OF_CONTAINER = re.compile(r"\s(?:/|\.\./)")
"""A path that is one in a container alone."""
IS_OF_SHELL = re.compile(
    r"^(?:if|then|else|elif|fi|for|while|do|done|echo|printf|set)\b|[`|<>(){}]|\$"
)
"""Lines that stand in a condition, or need what the script has made before."""
STARTS_SERVER = re.compile(
    r"\b(?:gunicorn|uvicorn|fastapi|hypercorn|granian)\b"
    r"(?:.*?(?:\s-w|--workers)[ =](?P<number>\d+)\b|.*)"
)
"""Where none are given the line's rest is matched, which isn't searched again then."""
TAKES_WORKERS = re.compile(r"/(?:gunicorn|uvicorn|hypercorn|granian) ")


def with_start_scripts(app: FoundApp, folder: Path) -> FoundApp:
    """Take over how a container's command fills databases, and how many workers it starts."""
    by, texts = _read_scripts(folder)
    if not texts:
        return app
    if (start := app.start) is None:
        fills = ", ".join(dict.fromkeys(_steps("\n".join(texts), "")))
        note = f"{by} runs in its container at each start: {fills}"
        return replace(app, notes=(*app.notes, note)) if app.image and fills else app
    text = "\n".join(texts)
    known = f"{app.prepare or ''} && {app.setup or ''}"
    steps = list(dict.fromkeys(_steps(text, app.build or "")))
    migrations = [step for step in steps if MIGRATES.search(step)]
    seeds = [step for step in steps if not MIGRATES.search(step) and SEEDS.search(step)]
    notes = []
    if migrations and not app.prepare and not MIGRATES.search(known):
        app = replace(app, prepare=" && ".join(migrations))
        notes.append(f"{by} migrates by {', '.join(migrations)}")
    if seeds and not SEEDS.search(known):
        app = replace(app, setup=" && ".join(filter(None, (app.setup, *seeds))))
        notes.append(f"{by} fills its tables by {', '.join(seeds)}")
    given = (match["number"] for match in STARTS_SERVER.finditer(text))
    workers = next(filter(None, given), None)
    if workers and TAKES_WORKERS.search(start) and "workers" not in start:
        app = replace(app, start=f"{start} --workers {workers}")
        notes.append(f"{by} starts {workers} workers")
    return replace(app, notes=(*app.notes, *notes))


def _read_scripts(folder: Path) -> tuple[str, list[str]]:
    """Return the file that the rest is found by, and the texts of commands and scripts."""
    name = first_of(folder, "Containerfile", "Dockerfile")
    command = image_command(read_text(folder / name) or "") if name else None
    texts = [command] if command else []
    named = [match["name"] for match in SCRIPT.finditer(command or "")]
    names = [*named, *USUAL_SCRIPTS]
    seen: list[str] = []
    while names and len(seen) < MOST_SCRIPTS:
        place = first_of(folder, *(f"{where}{names[0]}" for where in SCRIPT_FOLDERS))
        names = names[1:]
        if place and place not in seen:
            seen.append(place)
            text = SHELL_COMMENT.sub("", read_text(folder / place) or "")
            texts.append(text)
            names += [match["name"] for match in SCRIPT.finditer(text)]
    return (seen[0] if seen else name or ""), texts


def _steps(text: str, build: str) -> Iterator[str]:
    for part in SEPARATORS.split(text):
        step = THROUGH.sub("", part.strip())
        is_of_development = "fixtures:load" in step and "--no-dev" in build
        fills = not is_of_development and (MIGRATES.search(step) or SEEDS.search(step))
        if (
            fills
            and not IS_OF_SHELL.search(step)
            and not SCRIPT.search(step)
            and not PATH_OF_CONTAINER.search(step)
        ):
            is_of_venv = makes_venv(build) and not PROGRAMS_OF_SYSTEM.match(step)
            yield OF_VENV.sub(r".venv/bin/\g<0>", step) if is_of_venv else step


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
    try:  # as it stands there: what others set, or keep in a file of their own, isn't written
        written = as_table(plain_values(read_text(folder / name) or ""))
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}
    for service in map(as_table, table(written, "services").values()):
        build = long_form(service.get("build"), "context") if service.get("build") else {}
        if build and (folder / str(build.get("context") or ".")).resolve() == folder.resolve():
            said = service.get("environment")
            pairs = (str(each).partition("=")[::2] for each in as_list(said))
            return {str(key): str(value) for key, value in (as_table(said) or dict(pairs)).items()}
    return {}
