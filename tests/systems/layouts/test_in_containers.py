"""Applications that a container describes better than their language's layout does."""

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.core.errors import Exit
from webdyno.interfaces.cli import run_command_line
from webdyno.systems.layouts import find_app

SERVES = "app.listen(process.env.PORT)\n"
NODE: Files = {"package.json": {"scripts": {"start": "node s.js"}}, "s.js": SERVES}
IMAGE = "FROM node\nEXPOSE 3000\nCMD node s.js\n"
WEB = "web: {build: ., ports: ['3000:3000'], depends_on: [db]"
DB = "db: {image: 'postgres:17'}"
COMPOSE = f"services: {{{WEB}}}, {DB}}}\n"
NEEDS_MONGO: Files = {
    "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"mongodb": "6"}},
    "s.js": SERVES,
    "Dockerfile": IMAGE,
}


class Better(NamedTuple):
    """A container that is taken."""

    files: Files
    image: str
    says: str = ""
    environment: dict[str, str] = {}


BETTER = {
    "a Compose file that builds it": Better(
        {
            **NODE,
            "Dockerfile": IMAGE,
            "compose.yaml": f"services: {{{WEB}}}, {DB}, proxy: {{image: nginx, ports: ['80:80'], "
            "depends_on: [web]}}\n",
        },
        "compose.yaml#web",
        "taken is compose.yaml, which builds the application with db; as a program: webdyno init "
        "--program",
    ),
    "one for production next to that with which people develop": Better(
        {
            **NODE,
            "Dockerfile": IMAGE,
            "compose.yaml": f"services: {{{WEB}, volumes: ['.:/app'], command: vite}}, {DB}}}",
            "compose.prod.yaml": COMPOSE,
        },
        "compose.prod.yaml#web",
    ),
    "one for production that adds to another": Better(
        {
            **NODE,
            "Dockerfile": f"{IMAGE}FROM node AS dev\nCMD nodemon s.js\n",
            "docker-compose.yml": f"services: {{{WEB}}}, {DB}}}",
            "docker-compose.prod.yml": "services: {web: {command: node s.js}}",
        },
        "docker-compose.yml,docker-compose.prod.yml#web",
    ),
    "one in a folder": Better(
        {
            **NODE,
            "Dockerfile": IMAGE,
            "deploy/compose.yml": f"services: {{{WEB.replace('build: .', 'build: ..')}}}, {DB}}}",
        },
        "deploy/compose.yml#web",
    ),
    "the example of a file of variables": Better(
        {
            **NODE,
            "Dockerfile": IMAGE,
            "compose.yaml": f"services: {{{WEB}, env_file: .env}}, {DB}}}",
            ".env.example": "MODE=fast\n",
        },
        "compose.yaml#web",
        ".env.example stands in the place of a file of variables that isn't there",
    ),
    "secrets that it doesn't say": Better(
        {
            **NODE,
            "s.js": f"{SERVES}process.env.JWT_SECRET\n",
            "Dockerfile": IMAGE,
            "compose.yaml": COMPOSE,
        },
        "compose.yaml#web",
        environment={"JWT_SECRET": "onlyformeasuring" * 6},
    ),
    "a port and a database by variables": Better(
        {
            **NODE,
            "s.js": f"{SERVES}process.env.DATABASE_URL",
            "Dockerfile": IMAGE,
            "compose.yaml": f"services: {{{WEB}, environment: "
            f"{{PORT: 3000, DATABASE_URL: 'postgres://a:b@db:5432/c'}}}}, {DB}}}",
        },
        "compose.yaml#web",
    ),
    "what webdyno doesn't start is in it": Better(
        {
            **NEEDS_MONGO,
            "compose.yaml": f"services: {{{WEB}}}, db: {{image: mongo}}}}\n",
        },
        "compose.yaml#web",
    ),
    "migrations are in what it starts": Better(
        {
            "requirements.txt": "django\npsycopg2\n",
            "manage.py": "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')",
            "shop/settings.py": "DATABASES = {'default': env.db()}\nALLOWED_HOSTS = ['*']\n",
            "shop/wsgi.py": "",
            "Dockerfile": 'FROM python\nENTRYPOINT ["./entrypoint.sh"]\n',
            "entrypoint.sh": "python manage.py migrate\nexec gunicorn shop.wsgi\n",
            "compose.yaml": COMPOSE,
        },
        "compose.yaml#web",
    ),
    "a port that is fixed": Better(
        {**NODE, "s.js": "app.listen(3000)\n", "Dockerfile": IMAGE},
        ".",
        "taken is Dockerfile: its container has the port",
    ),
}


@pytest.mark.parametrize("name", BETTER)
def test_a_container_is_taken(tmp_path: Path, name: str) -> None:
    better = BETTER[name]
    folder = laid_out(tmp_path, better.files)
    found = find_app(folder, in_containers=True)
    assert found
    assert found.image == better.image
    assert found.start is None
    assert better.says in " ".join(found.notes)
    assert better.environment == found.environment
    without = find_app(folder)
    assert without
    assert without.start


OVERLAID = f"services: {{{WEB}, volumes: ['.:/app']}}, {DB}}}"
PROGRAM: dict[str, Files] = {
    "people develop with it": {
        **NODE,
        "Dockerfile": "FROM node\nCMD npm run dev\n",
        "compose.yaml": COMPOSE,
    },
    "a script of the package develops": {
        "package.json": {"scripts": {"start": "nodemon s.js", "start:prod": "node s.js"}},
        "s.js": SERVES,
        "Dockerfile": "FROM node\nCMD npm start\n",
        "compose.yaml": COMPOSE,
    },
    "sources lie over its image": {**NODE, "Dockerfile": IMAGE, "compose.yaml": OVERLAID},
    "a variable that nobody sets": {
        **NODE,
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, environment: ['A=${{NOWHERE}}']}}, {DB}}}",
    },
    "a file of variables that isn't there": {
        **NODE,
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, env_file: .env}}, {DB}}}",
    },
    "a database at localhost": {
        **NODE,
        "s.js": f"{SERVES}process.env.REDIS_HOST",
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, environment: [REDIS_HOST=localhost]}}, {DB}}}",
    },
    "a database by a name that no service has": {
        **NODE,
        "s.js": f"{SERVES}process.env.DATABASE_URL",
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, environment: "
        f"['DATABASE_URL=postgres://a:b@postgres:5432/c']}}, {DB}}}",
    },
    "a port of its example that isn't the published one": {
        **NODE,
        "s.js": "app.listen(process.env.APP_PORT)\n",
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, env_file: .env}}, {DB}}}",
        ".env.example": "APP_PORT=8080\n",
    },
    "an address of its example that is in the container itself": {
        **NODE,
        "s.js": f"{SERVES}if (!process.env.CACHE_AT) throw new Error('none')\n",
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}}}, {DB}}}",
        ".env.example": "CACHE_AT=redis://localhost:6379\n",
    },
    "a front with TLS": {
        **NODE,
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB.replace('3000:3000', '443:443')}}}, {DB}}}",
    },
    "rights on this machine": {
        **NODE,
        "Dockerfile": IMAGE,
        "compose.yaml": f"services: {{{WEB}, privileged: true}}, {DB}}}",
    },
    "nothing in it makes tables": {
        "requirements.txt": "django\npsycopg2\n",
        "manage.py": "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')",
        "shop/settings.py": "DATABASES = {'default': env.db()}\nALLOWED_HOSTS = ['*']\n",
        "shop/wsgi.py": "",
        "Dockerfile": "FROM python\n# to migrate, run it\nCMD gunicorn shop.wsgi\n",
        "compose.yaml": COMPOSE,
    },
    "a Dockerfile alone of what needs more": NEEDS_MONGO,
    "a Dockerfile without a port": {
        **NODE,
        "s.js": "app.listen(3000)\n",
        "Dockerfile": "FROM node\nCMD node s.js\n",
    },
    "another application is built": {
        **NODE,
        "compose.yaml": "services: {web: {build: ./other, ports: ['80:80']}}",
        "other/Dockerfile": IMAGE,
    },
}


@pytest.mark.parametrize("name", PROGRAM)
def test_a_program_stays_one(tmp_path: Path, name: str) -> None:
    folder = laid_out(tmp_path, PROGRAM[name])
    found = find_app(folder, in_containers=True)
    assert found
    assert found.start
    assert found == find_app(folder)


def test_a_container_lacks_the_variables_that_its_program_would(tmp_path: Path) -> None:
    sources = "app.listen(3000)\nmail(process.env.MAIL_KEY)\n"
    folder = laid_out(tmp_path, {**NODE, "s.js": sources, "Dockerfile": IMAGE})
    found = find_app(folder, in_containers=True)
    assert found
    assert (found.image, found.start) == (".", None)
    assert "its sources read MAIL_KEY, and nothing gives them" in found.doubts[0]


def test_what_a_compose_file_has_behind_it_is_named(tmp_path: Path) -> None:
    behind = "queue: {image: 'redpanda:4', depends_on: [store]}, store: {image: minio/minio}"
    web = "web: {build: ., depends_on: {queue: {condition: service_started}}}"
    files = {**NODE, "compose.dev.yml": f"services: {{{web}, {behind}, mail: {{image: mongo}}}}\n"}
    found = find_app(laid_out(tmp_path, files))
    assert found
    needed = [doubt.partition(",")[0] for doubt in found.doubts]
    assert needed == ["it needs Kafka", "it needs MinIO"]


def test_a_database_that_is_asked_over_https_is_named(tmp_path: Path) -> None:
    needs = {"@planetscale/database": "1", "mysql2": "3"}
    package = {"scripts": {"start": "node s.js"}, "dependencies": needs}
    found = find_app(laid_out(tmp_path, {"package.json": package, "s.js": SERVES}))
    assert found
    assert "its driver asks PlanetScale over HTTPS" in " ".join(found.doubts)


@pytest.mark.parametrize(
    ("reads", "passes"),
    [
        (
            "process.env.REDIS_HOST, process.env.REDIS_PORT, process.env.REDIS_PASSWORD",
            "REDIS_HOST=$CACHE_HOST REDIS_PASSWORD=$CACHE_PASSWORD REDIS_PORT=$CACHE_PORT ",
        ),
        ("process.env.APP_REDIS_HOST", "APP_REDIS_HOST=$CACHE_HOST:$CACHE_PORT "),
        ('readEnv("REDIS_ADDR")', "REDIS_ADDR=$CACHE_HOST:$CACHE_PORT "),
    ],
)
def test_redis_is_found_by_parts(tmp_path: Path, reads: str, passes: str) -> None:
    package = {"scripts": {"start": "node s.js"}, "dependencies": {"ioredis": "5"}}
    found = find_app(laid_out(tmp_path, {"package.json": package, "s.js": SERVES + reads}))
    assert found
    assert found.services == {"cache": "redis"}
    assert found.start == f"{passes}NODE_ENV=production node s.js"


def test_a_webpack_of_before_openssl_3_is_let_hash_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.systems.layouts.node_environment._node_here", lambda: 20)
    package = {
        "scripts": {"start": "node s.js", "build": "webpack"},
        "devDependencies": {"webpack": "^4.46.0"},
    }
    found = find_app(laid_out(tmp_path, {"package.json": package, "s.js": SERVES}))
    assert found
    assert found.build
    assert found.build.startswith("export NODE_OPTIONS=--openssl-legacy-provider && npm ")


def test_a_program_of_cloudflare_s_is_said_to_be_one(tmp_path: Path) -> None:
    found = find_app(laid_out(tmp_path, {"package.json": {"scripts": {"start": "wrangler dev"}}}))
    assert found
    assert not found.is_whole
    assert "Cloudflare's Workers" in found.doubts[0]


def test_a_program_is_written_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.systems.containers.choice.engine_answers", lambda: True)
    folder = laid_out(tmp_path, {**NODE, "Dockerfile": IMAGE, "compose.yaml": COMPOSE})
    assert run_command_line(["init", "--no-try", str(folder)]) == Exit.OK
    app = tomllib.loads((folder / "webdyno.toml").read_text())["app"]
    assert app == {"image": "compose.yaml#web", "ready_within": 120}
    words = ["init", "--no-try", "--force", "--program", str(folder)]
    assert run_command_line(words) == Exit.OK
    app = tomllib.loads((folder / "webdyno.toml").read_text())["app"]
    assert app["start"] == "NODE_ENV=production node s.js"


@pytest.mark.parametrize(
    "text",
    [
        "services: {web: {build: ., depends_on: 5}, db: []}",
        "services: {web: {build: {context: [1]}, ports: {a: b}, volumes: 7, command: {x: y}}}",
        f"services: {{web: {{build: ., env_file: {'e' * 5000}}}}}",
        f"services: {{web: {{build: ., ports: ['80'], volumes: ['./{'v' * 5000}:/x']}}}}",
        "services: {web: {build: [1, 2], env_file: {path: 3}, environment: 4}}",
        "services: {web: 3}\nname: {a: [b]}\n",
    ],
)
def test_compose_files_of_any_form_are_read_without_a_fault(tmp_path: Path, text: str) -> None:
    folder = laid_out(tmp_path, {**NODE, "Dockerfile": IMAGE, "compose.yaml": text})
    found = find_app(folder, in_containers=True)
    assert found
    assert found.start == "NODE_ENV=production node s.js"
