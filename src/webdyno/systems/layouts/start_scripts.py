"""The command that an image starts, and the scripts that it leads to.

They say what runs before and around a server where package files don't: migrations, seeds, and
numbers of workers.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, first_of
from webdyno.systems.layouts.python_tools import makes_venv

INSTRUCTION = re.compile(
    r"^[ \t]*(FROM|ENTRYPOINT|CMD)[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE | re.IGNORECASE
)


OF_SHELL = {("sh", "-c"), ("bash", "-c"), ("bash", "-lc")}


def command_of_image(folder: Path) -> tuple[str, str]:
    """Return the file that a folder's image is made by, and what that starts; empty for none."""
    name = first_of(folder, "Containerfile", "Dockerfile") or ""
    return name, image_command(read_text(folder / name) or "") or "" if name else ""


def image_command(text: str, target: str = "") -> str | None:
    """Return what an image starts by its Dockerfile: the ENTRYPOINT and CMD of its last stage.

    `target`: the stage that is built in the place of the last.
    """
    instructions: dict[str, str] = {}
    stage = ""
    for match in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = match[1].upper()
        if word == "FROM" and target and stage == target:
            break
        stage = match[2].rpartition(" ")[2] if word == "FROM" else stage
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
    name, command = command_of_image(folder)
    texts = [command] if command else []
    named = [match["name"] for match in SCRIPT.finditer(command)]
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
    return (seen[0] if seen else name), texts


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
