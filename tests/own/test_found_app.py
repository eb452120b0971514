"""What `webdyno init` finds out from a folder's files."""

import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.cli import run_command_line
from webdyno.cli.init import app_toml
from webdyno.model.exit_codes import Exit
from webdyno.own.found import FoundApp
from webdyno.own.found_app import find_app

FLASK = "from flask import Flask\nshop = Flask(__name__)\n@shop.get('/items')\ndef f(): pass\n"
FASTAPI = 'from fastapi import FastAPI\napp = FastAPI()\n@app.get("/")\nasync def f(): ...\n'
EXPRESS = (
    "const app = express()\napp.get('/a', f)\napp.get('/b/:id', f)\nlisten(process.env.PORT)\n"
)
GO = 'package main\nfunc main() { http.HandleFunc("GET /{$}", f); os.Getenv("PORT") }\n'
VENV = "python3 -m venv .venv && .venv/bin/pip install --quiet"


def folder_of(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


CASES = {
    "Procfile": (
        {"Procfile": "worker: x\nweb: gunicorn a:b\n", "requirements.txt": "gunicorn\n"},
        FoundApp("Procfile", ".venv/bin/gunicorn a:b", f"{VENV} -r requirements.txt"),
    ),
    "Flask": (
        {"requirements.txt": "Flask==3\ngunicorn>=20\n", "shop/web.py": FLASK},
        FoundApp(
            "requirements.txt",
            ".venv/bin/gunicorn shop.web:shop --bind 127.0.0.1:$PORT",
            f"{VENV} -r requirements.txt",
            ("/items",),
        ),
    ),
    "FastAPI without a server": (
        {"pyproject.toml": '[project]\ndependencies = ["fastapi>0.1"]\n', "main.py": FASTAPI},
        FoundApp(
            "pyproject.toml",
            ".venv/bin/uvicorn main:app --host 127.0.0.1 --port $PORT",
            f"{VENV} . uvicorn",
        ),
    ),
    "Express": (
        {
            "package.json": json.dumps(
                {"scripts": {"start": "node s.js"}, "dependencies": {"express": "4"}}
            ),
            "s.js": EXPRESS,
        },
        FoundApp("package.json", "node s.js", "npm install --silent", ("/a",)),
    ),
    "Go": (
        {"go.mod": "module m\n", "cmd/web/main.go": GO},
        FoundApp("go.mod", "./server", "go build -o server ./cmd/web"),
    ),
    "Rack": (
        {"config.ru": "case x\nwhen '/items' then 1\nend\n"},
        FoundApp("config.ru", "puma --bind tcp://127.0.0.1:$PORT config.ru", paths=("/items",)),
    ),
    "Next in a pnpm workspace": (
        {
            "package.json": json.dumps(
                {
                    "packageManager": "pnpm@10.18.0",
                    "scripts": {"build": "turbo run build", "start": "pnpm --filter web start"},
                    "devDependencies": {"turbo": "2"},
                }
            ),
            "pnpm-workspace.yaml": 'packages:\n  - "apps/*"\n',
            "apps/web/package.json": '{"name": "web", "scripts": {"start": "next start"}}',
            "apps/web/app/page.tsx": "",
            "apps/web/app/(shop)/items/route.ts": "",
            "apps/web/app/items/[id]/page.tsx": "",
        },
        FoundApp(
            "package.json",
            "pnpm --filter web start",
            "pnpm install --prefer-frozen-lockfile && pnpm run build",
            ("/", "/items"),
            heeds_port=True,
        ),
    ),
    "a yarn workspace with one package that starts": (
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "yarn.lock": "",
            "packages/api/package.json": '{"name": "api", "scripts": {"start": "node ."}}',
            "packages/lib/package.json": '{"name": "lib"}',
        },
        FoundApp("package.json", "yarn workspace api start", "yarn install"),
    ),
    "a script that needs the PATH of scripts": (
        {
            "package.json": '{"scripts": {"start": "tsx x.ts"}, "devDependencies": {"tsx": "4"}}',
            "bun.lock": "",
        },
        FoundApp("package.json", "bun start", "bun install"),
    ),
    "Go with several programs": (
        {
            "go.mod": "module m\n",
            "cmd/migrate/main.go": "package main\nfunc main() {}\n",
            "cmd/api/main.go": 'package main\nvar a = flag.String("admin", ":9090", "x")\n'
            'var l = flag.String("listen", ":8080", "x")\nfunc main() { s.ListenAndServe() }\n',
            "web/routes.go": 'HandleFunc("GET /v1", f)\nHandleFunc("POST /v1", f)\n'
            'HandleFunc("GET /up", func() { w.WriteHeader(http.StatusNoContent) })\n',
        },
        FoundApp(
            "go.mod",
            "./server -listen 127.0.0.1:$PORT -admin 127.0.0.1:0",
            "go build -o server ./cmd/api",
            ("/v1", "/up"),
            statuses={"/up": 204},
        ),
    ),
    "a Cargo workspace": (
        {
            "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
            "Cargo.lock": "",
            "crates/api/Cargo.toml": '[package]\nname = "a"\n[[bin]]\nname = "shopd"\n',
            "crates/api/src/main.rs": 'let l = TcpListener::bind("0.0.0.0:3000");\n',
            "crates/tool/Cargo.toml": '[package]\nname = "tool"\n',
            "crates/tool/src/main.rs": "fn main() {}\n",
        },
        FoundApp(
            "Cargo.toml",
            "./target/release/shopd",
            "cargo build --release --locked --bin shopd",
        ),
    ),
    "Spring Boot with Maven's wrapper": (
        {
            "mvnw": "",
            "pom.xml": "<project><parent><artifactId>x</artifactId><version>3</version></parent>"
            "<groupId>org.springframework.boot</groupId>"
            "<artifactId>shop</artifactId><version>1.0</version></project>",
        },
        FoundApp(
            "pom.xml",
            "java -jar target/shop-1.0.jar --server.address=127.0.0.1 --server.port=$PORT",
            "./mvnw --quiet -DskipTests package",
        ),
    ),
    "Quarkus with Gradle": (
        {"build.gradle.kts": 'plugins { id("io.quarkus") }\n'},
        FoundApp(
            "build.gradle.kts",
            "java -Dquarkus.http.port=$PORT -jar build/quarkus-app/quarkus-run.jar",
            "gradle --quiet --no-daemon quarkusBuild",
        ),
    ),
    "Django with uv": (
        {
            "uv.lock": "",
            "pyproject.toml": '[project]\ndependencies = ["django", "gunicorn"]\n',
            "manage.py": 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n',
            "shop/settings.py": "DEBUG = True\nALLOWED_HOSTS = []\n",
            "shop/urls.py": '    path("admin/", admin.site.urls),\n    path("", v),\n'
            '    path("items/", v),\n    path("items/<int:id>/", v),\n',
        },
        FoundApp(
            "uv.lock",
            ".venv/bin/gunicorn shop.wsgi --bind 127.0.0.1:$PORT",
            "uv sync --quiet --frozen",
            ("/", "/items/"),
        ),
    ),
    "FastAPI with Poetry": (
        {
            "poetry.lock": "",
            "pyproject.toml": '[tool.poetry.dependencies]\nfastapi = "*"\n',
            "main.py": FASTAPI,
        },
        FoundApp(
            "poetry.lock",
            ".venv/bin/uvicorn main:app --host 127.0.0.1 --port $PORT",
            "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --quiet --no-interaction --no-root"
            " && .venv/bin/python -m pip install --quiet uvicorn",
        ),
    ),
    "Rails with Thruster": (
        {
            "Procfile": "release: bin/rails db:migrate\nweb: bundle exec thrust bin/rails server\n",
            "Gemfile": 'gem "rails"\n',
            "config.ru": "run Rails.application\n",
        },
        FoundApp(
            "Procfile",
            "HTTP_PORT=$PORT TARGET_PORT=$((PORT + 32768)) bundle exec thrust bin/rails server",
            "bundle config set --local path .bundle && bundle install --quiet",
        ),
    ),
    "a library with a Dockerfile": (
        {"go.mod": "module m\n", "Dockerfile": "FROM x\nCMD serve\n"},
        FoundApp("Dockerfile", image=".", command="serve"),
    ),
    "Dockerfile": (
        {"Dockerfile": 'FROM x\nCMD ["./server", "$PORT"]\n'},
        FoundApp("Dockerfile", image=".", command="./server $PORT"),
    ),
    "Dockerfile of several stages": (
        {
            "Containerfile": 'FROM a AS built\nCMD make\nfrom b\nCMD ["x"]\n'
            'entrypoint ["./server", \\\n "--port"]\nCMD ["80"]\n'
        },
        FoundApp("Containerfile", image=".", command="./server --port 80"),
    ),
    "Dockerfile with a line of shell": (
        {"Dockerfile": 'FROM x\nENTRYPOINT exec ./server\nCMD ["80"]\n'},
        FoundApp("Dockerfile", image=".", command="exec ./server"),
    ),
    "Compose file with one open service": (
        {"compose.yml": 'services: {data: {image: x}, web: {build: ., ports: ["80:80"]}}'},
        FoundApp("compose.yml", image="compose.yml#web"),
    ),
    "nginx.conf": ({"nginx.conf": "events {}"}, FoundApp("nginx.conf", conf="nginx.conf")),
    "nginx.conf beside pages": (
        {"nginx.conf": "events {}", "html/index.html": ""},
        FoundApp("nginx.conf", conf="nginx.conf", root="html"),
    ),
    "pages": (
        {"public/index.html": "", "public/about.html": ""},
        FoundApp(
            "public/index.html",
            "python3 -m http.server $PORT --bind 127.0.0.1 --directory public",
            paths=("/", "/about.html"),
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_application_is_known(tmp_path: Path, name: str) -> None:
    files, expected = CASES[name]
    found = find_app(folder_of(tmp_path, files))
    assert found
    assert found == replace(expected, doubts=found.doubts, connections=found.connections)


def test_nothing_known_is_nothing_found(tmp_path: Path) -> None:
    assert find_app(tmp_path) is None
    compose = find_app(folder_of(tmp_path, {"compose.yaml": "services: {}\n"}))
    assert compose
    assert compose.start is None


def test_a_port_that_nobody_heeds_is_a_doubt(tmp_path: Path) -> None:
    found = find_app(folder_of(tmp_path, {"package.json": '{"scripts": {"start": "node x"}}'}))
    assert found
    assert any("nothing here mentions PORT" in it for it in found.doubts)


DOUBTS = {
    "Next in a pnpm workspace": ["Next writes an id of the build into its pages"],
    "a yarn workspace with one package that starts": ["nothing here mentions PORT"],
    "Express": ["NODE_ENV isn't set to production"],
    "Go with several programs": [
        "of 2 programs (cmd/api, cmd/migrate) only cmd/api listens",
        "-admin is another listener, on :9090 unless set",
    ],
    "a Cargo workspace": ["it binds 0.0.0.0:3000 in crates/api/src/main.rs:1"],
    "Spring Boot with Maven's wrapper": ["a JVM gets faster for many seconds"],
    "Django with uv": ["DEBUG is True in shop.settings", "ALLOWED_HOSTS lacks 127.0.0.1"],
    "FastAPI with Poetry": ["poetry.lock names no uvicorn"],
    "Rails with Thruster": [
        "RAILS_ENV is development unless set",
        'prepare = "bin/rails db:migrate"',
        "Thruster listens on HTTP_PORT",
    ],
}


@pytest.mark.parametrize("name", DOUBTS)
def test_what_may_be_wrong_is_told(tmp_path: Path, name: str) -> None:
    found = find_app(folder_of(tmp_path, CASES[name][0]))
    assert found
    for doubt in DOUBTS[name]:
        assert any(doubt in it for it in found.doubts), found.doubts


def test_compose_files_beside_a_dockerfile_are_named(tmp_path: Path) -> None:
    files = dict.fromkeys(["compose.yaml", "compose.prod.yaml"], "services: {}\n")
    found = find_app(folder_of(tmp_path, {"Dockerfile": "FROM x\n", **files}))
    assert found
    assert "compose.prod.yaml, compose.yaml aren't read" in found.doubts[0]


@given(
    st.sampled_from(
        [*("Cargo.toml", "pom.xml", "go.mod", "main.go", "manage.py", "urls.py", "build.gradle")]
    ),
    st.text(),
)
def test_any_text_of_other_languages_is_read_without_a_fault(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    folder = tmp_path_factory.mktemp("other")
    (folder / name).write_bytes(text.encode(errors="replace"))
    found = find_app(folder)
    assert found is None or tomllib.loads(app_toml(found))


@given(
    st.sampled_from(
        [*("Procfile", "package.json", "pyproject.toml", "x.py"), "Dockerfile", "compose.yaml"]
    ),
    st.text(),
)
def test_any_text_is_read_without_a_fault(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / name).write_bytes(text.encode(errors="replace"))
    found = find_app(folder)
    assert found is None or tomllib.loads(app_toml(found))


def test_init_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(tmp_path, {"go.mod": "module m\n", "main.go": GO})
    assert run_command_line(["init", str(folder)]) == Exit.OK
    data = tomllib.loads((folder / "webdyno.toml").read_text())
    assert data == {
        "app": {"build": "go build -o server .", "start": "./server"},
        "requests": [{"path": "/"}],
    }
    assert run_command_line(["init", str(folder)]) == Exit.USER_ERROR
    assert "is there already; --force writes over it" in capsys.readouterr().err


def test_init_that_cannot_tell_says_how_to_say_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["init", str(tmp_path)]) == Exit.USER_ERROR
    assert "say it with --start" in capsys.readouterr().err
    assert run_command_line(["init", str(tmp_path), "--start", "./s $PORT"]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text())["app"] == {"start": "./s $PORT"}


SEVERAL = {
    "services": (
        {"compose.yaml": 'services: {a: {image: x, ports: ["1"]}, b: {image: x, ports: ["2"]}}'},
        "compose.yaml has several services that could be asked: a, b",
        {"image": "compose.yaml#b"},
        "b",
    ),
    "programs": (
        {"go.mod": "module m\n", "cmd/web/main.go": GO, "cmd/tool/main.go": GO},
        "go.mod has several programs: cmd/tool, cmd/web",
        {"build": "go build -o server ./cmd/web", "start": "./server"},
        "cmd/web",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_which_of_several_is_asked_of_people(
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files, question, app, response = SEVERAL[name]
    folder_of(tmp_path, files)
    responses = iter(["nothing", response])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: next(responses))
    assert run_command_line(["init", str(tmp_path)]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text())["app"] == app
    told = capsys.readouterr().err
    assert question in told
    assert "none of them is called nothing" in told


def test_where_nobody_can_be_asked_it_is_said_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "services").mkdir()
    folder = folder_of(tmp_path / "services", SEVERAL["services"][0])
    assert run_command_line(["init", str(folder)]) == Exit.USER_ERROR
    assert "--image 'compose.yaml#a'" in capsys.readouterr().err
    assert run_command_line(["init", str(folder), "--image=compose.yaml#b"]) == Exit.OK
    (tmp_path / "programs").mkdir()
    folder = folder_of(tmp_path / "programs", SEVERAL["programs"][0])
    assert run_command_line(["init", str(folder)]) == Exit.OK
    assert "there are 2 programs: cmd/tool, cmd/web" in capsys.readouterr().err


def test_nobody_is_asked_after_a_yes_and_the_build_may_be_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SEVERAL["services"][0])
    assert run_command_line(["init", str(folder), "--yes", "--build=make"]) == Exit.OK
    app = tomllib.loads((folder / "webdyno.toml").read_text())["app"]
    assert app == {"build": "make", "image": "compose.yaml#a"}


def test_a_status_is_written_where_the_sources_tell_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASES["Go with several programs"][0])
    assert run_command_line(["init", str(folder)]) == Exit.OK
    requests = tomllib.loads((folder / "webdyno.toml").read_text())["requests"]
    assert requests == [{"path": "/v1"}, {"path": "/up", "status": 204}]


def test_where_nothing_is_found_it_says_what_was_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["init", str(tmp_path)]) == Exit.USER_ERROR
    told = capsys.readouterr().err
    assert "looked for: Procfile" in told
    assert '[app]\nbuild = "make"\nstart = "./server --port $PORT"' in told


def test_a_configuration_alone_makes_a_file(tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path, {"nginx.conf": "events {}"}))
    assert run_command_line(["init", folder]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text()) == {
        "app": {"conf": "nginx.conf"},
        "requests": [{"path": "/"}],
    }


@pytest.mark.parametrize("words", [["--start="], ["--image= "], ["--start=a", "--image=b"]])
def test_a_flag_that_says_nothing_is_refused(tmp_path: Path, words: list[str]) -> None:
    assert run_command_line(["init", str(tmp_path), *words]) == Exit.USER_ERROR
    assert not (tmp_path / "webdyno.toml").exists()
