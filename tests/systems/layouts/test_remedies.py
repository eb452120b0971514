"""Which programs an application takes, and what to change where it doesn't start."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import laid_out
from webdyno.systems.layouts import missing_tools
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.remedies import remedies
from webdyno.systems.layouts.variables import fixed_address, given_port

LINES = {
    "cd a && exec env A=b C=$((PORT + 1)) node x; POETRY=1 .tools/bin/uv sync": ["node"],
    "export MIX_ENV=prod && mix release | cat": ["mix", "cat"],
    "A=$(nproc) php -S $PORT": ["php"],
    "./server": [],
    "(cd src && ../.venv/bin/alembic upgrade head >/dev/null) && psql": ["psql"],
    "sed '/(CREATE|DROP) x; y/d' a.sql | psql": ["sed", "psql"],
    "python3 -m venv .venv && .venv/bin/pip install x": ["python3"],
}


def test_several_variables_are_named_once_each(tmp_path: Path) -> None:
    said = 'required variable "APP_NAME" is not set; required variable "LOG_LEVEL" is not set'
    found = list(remedies(f"{said}\n{said}", FoundApp("x"), tmp_path))
    assert found == [
        "it wants a variable: --env APP_NAME=VALUE",
        "it wants a variable: --env LOG_LEVEL=VALUE",
    ]


@pytest.mark.parametrize("line", LINES)
def test_programs_that_are_not_here_are_named(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert missing_tools(FoundApp("x", line)) == LINES[line]


SAID = {
    "ModuleNotFoundError: No module named 'yaml'": "yaml is in no file of requirements",
    "Error: Cannot find module 'express'": "express isn't there",
    "KeyError: 'DATABASE_URL'": "--env DATABASE_URL=VALUE",
    "django.core.exceptions.ImproperlyConfigured: Set the SECRET_KEY environment variable": (
        "--env SECRET_KEY=VALUE"
    ),
    "You can't seed. Set `CAN_SEED_DATABASE=1` to allow that": "--env CAN_SEED_DATABASE=1",
    "Error: The server does not support SSL connections": "its database speaks no TLS here",
    '{\n  "DATABASE_AUTH_TOKEN": [\n    "Must be set when NODE_ENV is production"\n': (
        "--env DATABASE_AUTH_TOKEN=VALUE"
    ),
    "panic: JWT_SECRET is not set": "--env JWT_SECRET=VALUE",
    "ImportError: cannot import name 'Iterator' from 'collections' (x.py)": "for an older Python",
    "error: the following required arguments were not provided:\n  --cors-origin <CORS_ORIGIN>": (
        "--env CORS_ORIGIN=VALUE"
    ),
    "Error: connect ECONNREFUSED 127.0.0.1:1025": "nobody listens on 127.0.0.1:1025, which it asks",
    "dial tcp 127.0.0.1:5432: connect: connection refused": "a database perhaps",
    "/bin/sh: 1: tsc: not found": "tsc isn't installed here",
    "/bin/sh: 1: ./server: not found": "./server isn't there: --build says how it is made",
    "it listens on 0.0.0.0:3000 and not on 127.0.0.1:1": (
        'in the place of 0.0.0.0:3000 in m.go:1: http.ListenAndServe("127.0.0.1:"'
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_what_to_change_is_said(tmp_path: Path, said: str) -> None:
    laid_out(tmp_path, {"m.go": 'http.ListenAndServe("0.0.0.0:3000", nil)\n', "Dockerfile": ""})
    found = list(remedies(said, FoundApp("go.mod", "./server"), tmp_path))
    assert any(SAID[said] in it for it in found), found
    assert ("a container has its ports to itself: --image ." in found) == ("listens on" in said)


@pytest.mark.parametrize(("given_s", "next_s"), [(None, 60), (90, 270)])
def test_what_starts_late_is_given_longer_than_it_had(
    tmp_path: Path, given_s: int | None, next_s: int
) -> None:
    app = FoundApp("pom.xml", "java -jar shop.jar", ready_within_s=given_s)
    said = next(iter(remedies("where it takes longer, give --ready-within 5s", app, tmp_path)))
    assert said.startswith(f"ready_within = {next_s} below [app]")


@pytest.mark.parametrize(
    ("line", "given"),
    {
        "rails server -p 3000 -b 0.0.0.0": "rails server -p $PORT -b 0.0.0.0",
        "gunicorn a:b --bind 0.0.0.0:8000": "gunicorn a:b --bind 0.0.0.0:$PORT",
        "puma -b tcp://0.0.0.0:9292": "puma -b tcp://0.0.0.0:$PORT",
        "PORT=3000 node x": "PORT=$PORT node x",
        "java -jar x.jar --server.port=8080": "java -jar x.jar --server.port=$PORT",
        "serve --workers 2 --port ${PORT:-80}": "serve --workers 2 --port ${PORT:-80}",
        "sleep 80": "sleep 80",
    }.items(),
)
def test_a_fixed_port_on_a_command_line_gives_way(line: str, given: str) -> None:
    assert given_port(line) == given


def test_a_line_that_listens_is_the_frameworks_own(tmp_path: Path) -> None:
    text = 'import { serve } from "@hono/node-server"\nserve({ fetch: app.fetch, port: 3000 })\n'
    laid_out(tmp_path, {"src/index.ts": text})
    app = FoundApp("package.json", "node dist/index.js")
    assert list(remedies("it listens on 0.0.0.0:3000", app, tmp_path)) == [
        (
            "have it listen on $PORT in the place of port 3000 in src/index.ts:2: "
            "serve({ fetch: app.fetch, port: Number(process.env.PORT) })"
        )
    ]


def test_a_port_of_what_is_asked_is_none_that_it_listens_on(tmp_path: Path) -> None:
    """As in pgAdmin's list of servers."""
    laid_out(tmp_path, {"a.js": "const port = 3306;\n", "servers.json": '{\n  "Port": 5432\n}'})
    assert fixed_address(tmp_path) is None
    laid_out(tmp_path, {"b.js": "const port = 3000;\n"})
    assert fixed_address(tmp_path) == "port 3000 in b.js:1"
