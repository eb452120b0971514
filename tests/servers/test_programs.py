"""Programs that are built: once, where servers can read them, by what they are made of."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.commands import webdyno_here
from webdyno.config import Catalogue
from webdyno.core.errors import Exit, OperationError
from webdyno.core.service import Service
from webdyno.core.stack import Stack
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, server_user, uid_of
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.consent import provide
from webdyno.servers import needs
from webdyno.servers.needs import (
    _environment,
    build_program,
    built_program,
    folder_of_program,
    unbuilt,
)
from webdyno.servers.starting import ask_versions, open_stack

SERVICE = """
title = "Mine"
protocol = "http"
start = ["{{ needs.python }}", "{{ build.folder }}/server.py", "{{ server.port }}"]
needs.python = { command = ["python3"], apt = "python3" }

[build]
packages = ["mine"]
commands = [
    ["{{ needs.python }}", "-c", "import os; print(os.getuid(), file=open('uid', 'w'))"],
    ["sh", "-c", 'echo kept >"$HOME/kept"; pwd >made; test "$PWD" = "{{ build.folder }}"'],
    ["./own.sh"],
]
"""
SERVER = """
import http.server, os, pathlib, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = pathlib.Path(__file__).with_name("made").read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def cache(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kept programs of tests lie apart from those that people have."""
    monkeypatch.setattr(needs, "SYSTEM_CACHE", open_folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_folder))
    return open_folder / "webdyno" / "programs"


@pytest.fixture
def catalogue(tmp_path: Path, cache: Path) -> Callable[[], Catalogue]:  # noqa: ARG001
    mine = tmp_path / "services" / "mine"
    (mine / "program").mkdir(parents=True)
    (mine / "service.toml").write_text(SERVICE)
    (mine / "program" / "server.py").write_text(SERVER)
    (mine / "program" / "requirements.txt").write_text("mine==1.2.3\n")
    (mine / "program" / "own.sh").write_text("#!/bin/sh\ntest -f made\n")
    (mine / "program" / "own.sh").chmod(0o755)
    for kind, text in (
        ("stacks", 'serves = ["it"]\nfront = "mine"\n[services.mine]\nservice = "mine"\n'),
        ("sites", 'needs = ["it"]\n[paths."/"]\nbody_contains = "/files"\n'),
    ):
        (tmp_path / kind / "it").mkdir(parents=True)
        (tmp_path / kind / "it" / f"{kind[:-1]}.toml").write_text(f'title = "t"\n{text}')
    return lambda: Catalogue.load([tmp_path])


def built(catalogue: Catalogue) -> tuple[Service, Path, list[str]]:
    reported: list[str] = []
    service = catalogue.services["mine"]
    build_program(service, reported.append)
    return service, folder_of_program(service), reported


def test_it_is_built_once_as_the_servers_user_and_can_not_be_changed(
    catalogue: Callable[[], Catalogue], cache: Path
) -> None:
    service, program, reported = built(catalogue())
    assert [it.partition(" in ")[0] for it in reported] == ["building Mine …", "built Mine"]
    assert program.parent.parent == cache
    assert (program / "made").read_text().strip() == str(program)
    assert int((program / "uid").read_text()) == uid_of(server_user())
    for path in (program, program / "made", program.parent):
        assert path.stat().st_uid == os.geteuid()
        assert not path.stat().st_mode & 0o022
    kept_out = ServerUser("another", 12345, 12345).kept_out_by(program)
    assert kept_out == (None if server_user() else program.parent)
    assert {path.name for path in program.parent.iterdir()} == {"files", "built", "build.log"}
    assert built(catalogue())[1:] == (program, [])
    assert built_program(service) == program


def test_it_runs_and_has_its_version_from_the_lock_file(
    catalogue: Callable[[], Catalogue], tmp_path: Path
) -> None:
    known = catalogue()
    _, program, _ = built(known)
    stack, site = known.stack("it"), known.site("it")
    assert ask_versions(stack, {}, site, Testbed()) == {"mine": "1.2.3"}
    with open_stack(stack, {}, site, folder=tmp_path / "kept", testbed=Testbed()) as running:
        assert running.url
    assert (program / "made").exists()


@pytest.mark.parametrize("change", ["source", "command", "tool"])
def test_it_is_built_again_when_something_changed(
    change: str,
    catalogue: Callable[[], Catalogue],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, program, _ = built(catalogue())
    mine = tmp_path / "services" / "mine"
    if change == "source":
        (mine / "program" / "more.py").write_text("")
    elif change == "command":
        (mine / "service.toml").write_text(SERVICE.replace("pwd >made", "pwd >made; true"))
    else:
        monkeypatch.setattr(needs, "_needs", lambda _: {"python": "/usr/bin/env"})
        assert unbuilt([catalogue().stack("it")])
        return
    service, other, reported = built(catalogue())
    assert other != program
    assert reported
    assert not unbuilt([catalogue().stack("it")])
    assert built_program(service) == other


def test_a_copy_elsewhere_is_the_same_program(
    catalogue: Callable[[], Catalogue], tmp_path: Path
) -> None:
    _, program, _ = built(catalogue())
    shutil.copytree(tmp_path / "services", tmp_path / "copy" / "services")
    assert folder_of_program(Catalogue.load([tmp_path / "copy"]).services["mine"]) == program


def test_what_fails_is_reported_with_its_last_words_and_its_log(
    catalogue: Callable[[], Catalogue], tmp_path: Path
) -> None:
    script = "#!/bin/sh\necho this is why >&2\nexit 7\n"
    (tmp_path / "services" / "mine" / "program" / "own.sh").write_text(script)
    with pytest.raises(OperationError) as failure:
        built(catalogue())
    message = str(failure.value)
    assert message.startswith("the build of Mine failed with exit code 7: ")
    log = Path(message.partition("(")[2].partition(")")[0])
    assert "this is why" in message
    assert "this is why" in log.read_text()
    assert unbuilt([catalogue().stack("it")])


def test_what_is_not_built_does_not_start_and_says_what_to_do(
    catalogue: Callable[[], Catalogue], tmp_path: Path
) -> None:
    known = catalogue()
    with (
        pytest.raises(OperationError, match=r"Mine isn't built here.*doctor --install builds it"),
        open_stack(known.stack("it"), {}, known.site("it"), folder=tmp_path, testbed=Testbed()),
    ):
        pass


def stacks(catalogue: Catalogue) -> list[Stack]:
    return [catalogue.stack("it")]


def test_it_is_asked_for_and_yes_is_an_answer(catalogue: Callable[[], Catalogue]) -> None:
    known = catalogue()
    with pytest.raises(OperationError, match=r"not built: Mine; add --yes"):
        provide(stacks(known), [], [], at_terminal(RunFlags()))
    provide(stacks(known), [], [], at_terminal(RunFlags(yes=True)))
    assert not unbuilt(stacks(known))


def test_long_unused_ones_are_removed(
    catalogue: Callable[[], Catalogue], tmp_path: Path, cache: Path
) -> None:
    _, program, _ = built(catalogue())
    os.utime(program.parent, (0, 0))
    (tmp_path / "services" / "mine" / "program" / "more.py").write_text("")
    _, other, _ = built(catalogue())
    assert [it.name for it in cache.iterdir()] == [other.parent.name]


@pytest.mark.parametrize("user", [None, ServerUser("other", 33, 33)])
def test_accounts_of_registries_are_no_other_user_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: ServerUser | None
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://root:pa55@registry.corp/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://a@b/x  https://c:d@e/y@z")
    monkeypatch.setenv("https_proxy", "http://me:pr0xy@proxy:3128")
    monkeypatch.setattr("webdyno.servers.needs.server_user", lambda: user)
    environment = _environment({}, tmp_path)
    shown = " ".join(environment[name] for name in ("PIP_INDEX_URL", "https_proxy"))
    assert ("pa55" in shown) is ("pr0xy" in shown) is (user is None)
    if user:
        assert environment["PIP_EXTRA_INDEX_URL"] == "https://b/x  https://e/y@z"


def test_those_that_are_not_built_are_left_out_of_all(catalogue: Callable[[], Catalogue]) -> None:
    folder = catalogue().services["mine"].folder.parents[1]
    words = ("compare", "--all", "--site", "it", "--catalog", str(folder))
    done = webdyno_here(*words, folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert "--all: excluded, because they aren't built: it; " in done.stderr
    assert "doctor --install it builds them" in done.stderr
