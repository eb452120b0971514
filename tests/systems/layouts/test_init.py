"""What `webdyno init` finds out from a folder's files."""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.own import make_repository
from systems.layouts.laid_out import Files, laid_out
from webdyno.core.errors import Exit
from webdyno.core.tables import ReadingLimit
from webdyno.interfaces.cli import run_command_line
from webdyno.launch.first_try import FirstTry, PageResponse
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FoundApp, project_text


def test_a_file_s_name_writes_no_keys() -> None:
    doubt = 'a\nbuild_variables = ["TOKEN"]\r\n#.js listens on 3000\u2028x = 1'
    found = FoundApp("Procfile", "./server", doubts=(doubt,))
    assert tomllib.loads(project_text(found, {})) == {"app": {"start": "./server"}}


GO = 'package main\nfunc main() { http.HandleFunc("GET /{$}", f); os.Getenv("PORT") }\n'


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
    assert found is None or tomllib.loads(project_text(found, {}))


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
    for in_containers in (False, True):
        found = find_app(folder, in_containers=in_containers)
        assert found is None or tomllib.loads(project_text(found, {}))


def test_a_file_s_name_is_shown_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = 'a\nbuild_variables = ["TOKEN"]\nenvironment.A = "${env:TOKEN}"\n#\x1b.js'
    folder = laid_out(
        tmp_path, {"Procfile": "web: ./server\n", "server": "", name: "app.listen(3000)\n"}
    )
    assert run_command_line(["init", "--no-try", str(folder)]) == Exit.OK
    app = tomllib.loads((folder / "webdyno.toml").read_text())["app"]
    assert app == {"start": "./server"}
    shown = capsys.readouterr().err
    assert "␛.js" in shown
    assert "\nbuild_variables" not in shown


def test_init_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = laid_out(tmp_path, {"go.mod": "module m\n", "main.go": GO})
    assert run_command_line(["init", str(folder)]) == Exit.OK
    data = tomllib.loads((folder / "webdyno.toml").read_text())
    assert data == {
        "app": {"build": "go build -o server .", "start": "./server"},
        "requests": [{"path": "/"}],
    }
    assert run_command_line(["init", str(folder)]) == Exit.USER_ERROR
    assert "is there already; --force writes over it" in capsys.readouterr().err


def test_init_that_cannot_report_says_how_to_say_it(
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
        {"image": "compose.yaml#b", "ready_within": 120},
        "b",
    ),
    "programs": (
        {"go.mod": "module m\n", "cmd/second/main.go": GO, "cmd/first/main.go": GO},
        "go.mod has several programs: cmd/first, cmd/second",
        {"build": "go build -o server ./cmd/second", "start": "./server"},
        "cmd/second",
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
    laid_out(tmp_path, files)
    responses = iter(["nothing", response])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: next(responses))
    assert run_command_line(["init", str(tmp_path)]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text())["app"] == app
    reported = capsys.readouterr().err
    assert question in reported
    assert "none of them is called nothing" in reported


@pytest.mark.parametrize(
    ("words", "responses", "app"),
    [
        ([], ["./s $PORT", "make -j2"], {"build": "make -j2", "start": "./s $PORT"}),
        ([], ["./s $PORT", ""], {"start": "./s $PORT"}),
        (["--build=make"], ["./s $PORT"], {"build": "make", "start": "./s $PORT"}),
    ],
)
def test_people_are_asked_how_it_starts_and_is_built(
    tmp_path: Path,
    words: list[str],
    responses: list[str],
    app: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = iter(responses)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    assert run_command_line(["init", str(tmp_path), *words]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text())["app"] == app
    assert not [*given]


WANTS: Files = {
    "requirements.txt": "fastapi\nuvicorn\npydantic-settings\n",
    "main.py": "app = FastAPI()\nclass Settings(BaseSettings):\n    region: str\n"
    "    api_token: str\n    store_url: str\n",
}


def test_people_are_asked_for_values_that_only_they_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = iter(["eu", "redis://me:secret@here/1"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    monkeypatch.setattr("webdyno.interfaces.cli.init_questions.getpass", lambda _: "t0ken")
    for name in ("API_TOKEN", "STORE_URL"):
        monkeypatch.setenv(name, "")  # it is put back afterwards
    folder = laid_out(tmp_path, WANTS)
    assert run_command_line(["init", "--no-try", str(folder)]) == Exit.OK
    text = (folder / "webdyno.toml").read_text()
    assert tomllib.loads(text)["app"]["environment"] == {
        "API_TOKEN": "${env:API_TOKEN}",
        "REGION": "eu",
        "STORE_URL": "${env:STORE_URL}",
    }
    assert "want" not in text
    assert os.environ["STORE_URL"] == "redis://me:secret@here/1"
    said = capsys.readouterr().err
    assert "REGION, read in main.py:3: its value? (Enter: none)" in said
    assert "export API_TOKEN=…" in said
    assert "secret@" not in text + said


def test_people_are_asked_for_a_path_where_none_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(*words: Any) -> FirstTry:  # noqa: ANN401 (as it is called)
        paths = words[3]
        valid = [PageResponse(path, 200, 9, 0.1, "text/html", "", "", b"x") for path in paths]
        return FirstTry(1.0, valid=valid)

    monkeypatch.setattr("webdyno.launch.first_try.try_out", tried)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    answers = iter(["/items"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    make_repository(laid_out(tmp_path, {"go.mod": "module m\n", "main.go": GO}))
    assert run_command_line(["init", str(tmp_path)]) == Exit.OK
    written = tomllib.loads((tmp_path / "webdyno.toml").read_text())
    assert written["requests"] == [{"path": "/items"}]


def test_without_a_value_it_is_said_what_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "")
    monkeypatch.setattr("webdyno.interfaces.cli.init_questions.getpass", lambda _: "")
    folder = laid_out(tmp_path, WANTS)
    words = ["init", "--no-try", "--env", "REGION=eu", str(folder)]
    assert run_command_line(words) == Exit.OK
    text = (folder / "webdyno.toml").read_text()
    assert "# its settings want API_TOKEN, REGION, STORE_URL" in text


def test_where_nobody_can_be_asked_it_is_said_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "services").mkdir()
    folder = laid_out(tmp_path / "services", SEVERAL["services"][0])
    assert run_command_line(["init", str(folder)]) == Exit.USER_ERROR
    assert "compose.yaml#a" in capsys.readouterr().err
    assert run_command_line(["init", str(folder), "--image=compose.yaml#b"]) == Exit.OK
    (tmp_path / "programs").mkdir()
    folder = laid_out(tmp_path / "programs", SEVERAL["programs"][0])
    assert run_command_line(["init", str(folder)]) == Exit.USER_ERROR
    how = "init --start ./server --build 'go build -o server ./cmd/first'"
    assert how in " ".join(capsys.readouterr().err.split())


def test_nobody_is_asked_after_a_yes_and_the_build_may_be_said(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, SEVERAL["services"][0])
    assert run_command_line(["init", str(folder), "--yes", "--build=make"]) == Exit.OK
    app = tomllib.loads((folder / "webdyno.toml").read_text())["app"]
    assert app == {"build": "make", "image": "compose.yaml#a", "ready_within": 120}


def test_flags_give_variables_and_paths(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, {"go.mod": "module m\n", "main.go": GO})
    words = ["--env", "MODE=a=b", "--path", "/items", "--path", "/up", "--no-try"]
    assert run_command_line(["init", str(folder), *words]) == Exit.OK
    written = tomllib.loads((folder / "webdyno.toml").read_text())
    assert written["app"]["environment"] == {"MODE": "a=b"}
    assert written["requests"] == [{"path": "/items"}, {"path": "/up"}]


def test_paths_of_the_sources_are_written_where_it_is_not_tried(tmp_path: Path) -> None:
    routes = "".join(
        f'http.HandleFunc("{each}", f)\n' for each in ("GET /v1", "POST /v2", "/v1/{id}", "/v3")
    )
    folder = laid_out(tmp_path, {"go.mod": "module m\n", "main.go": GO + routes})
    assert run_command_line(["init", str(folder)]) == Exit.OK
    requests = tomllib.loads((folder / "webdyno.toml").read_text())["requests"]
    assert requests == [{"path": "/"}, {"path": "/v1"}, {"path": "/v3"}]


def test_where_nothing_is_found_it_says_what_was_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["init", str(tmp_path)]) == Exit.USER_ERROR
    reported = capsys.readouterr().err
    assert "looked for: Procfile" in reported
    assert '[app]\nbuild = "make"\nstart = "./server --port $PORT"' in reported


def test_a_configuration_alone_makes_a_file(tmp_path: Path) -> None:
    folder = str(laid_out(tmp_path, {"nginx.conf": "events {}"}))
    assert run_command_line(["init", folder]) == Exit.OK
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text()) == {
        "app": {"conf": "nginx.conf"},
        "requests": [{"path": "/"}],
    }


@pytest.mark.parametrize("words", [["--start="], ["--image= "], ["--start=a", "--image=b"]])
def test_a_flag_that_says_nothing_is_refused(tmp_path: Path, words: list[str]) -> None:
    assert run_command_line(["init", str(tmp_path), *words]) == Exit.USER_ERROR
    assert not (tmp_path / "webdyno.toml").exists()


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    """Whoever wrote the folder may have put some there, or links to such."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("Procfile", "package.json", "composer.json", "mix.exs", "Gemfile", ".env.example"):
        (tmp_path / name).symlink_to("pipe")
    assert find_app(tmp_path) is None


def test_a_folder_of_more_files_than_are_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(50):
        (tmp_path / f"{number}.js").write_text("app.listen(1)\n")
    (tmp_path / "package.json").write_text('{"scripts": {"start": "node 0.js"}}')
    words = ["init", str(tmp_path), "--no-try", "--yes", "--force"]
    assert run_command_line(words) == Exit.OK
    assert "not all files were looked at" not in capsys.readouterr().err
    monkeypatch.setattr("webdyno.core.tables.ReadingLimit", lambda: ReadingLimit(files=20))
    assert run_command_line(words) == Exit.OK
    assert "not all files were looked at" in capsys.readouterr().err
