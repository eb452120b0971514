"""Stacks that can't start, or not as they should: one clear message each."""

import errno
import os
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.test_stacks import get
from waiting import wait_until
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.core.files import writing
from webdyno.core.setting import SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.host.server_process import ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.servers import layout
from webdyno.servers.service import StackDied
from webdyno.servers.starting import open_stack


def test_a_port_in_use_is_one_clear_message(
    catalogue: Catalogue, testbed: Testbed, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            OperationError, match=f"port {port} is in use by .* choose another --port"
        ):
            try_to_start(
                catalogue.stack("nginx"),
                {},
                catalogue.site("static"),
                folder=tmp_path,
                testbed=testbed,
                port=port,
            )


def try_to_start(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    *,
    folder: Path,
    testbed: Testbed,
    port: int | None = None,
) -> None:
    """Start a stack that is refused."""
    with open_stack(stack, settings, site, folder=folder, testbed=testbed, port=port):
        pass


def own_service(folder: Path, stack: str, service: str, **replacements: str) -> Catalogue:
    """A catalogue in which one service of a stack differs from webdyno's own."""
    catalogue = Catalogue.load()
    copy = folder / "services" / service
    shutil.copytree(catalogue.services[service].folder, copy)
    shutil.copytree(catalogue.stack(stack).folder, folder / "stacks" / stack)
    for path in copy.iterdir():
        text = path.read_text()
        for old, new in replacements.items():
            text = text.replace(old, new)
        path.write_text(text)
    return Catalogue.load([folder])


def own_nginx(folder: Path, **replacements: str) -> Catalogue:
    """A catalogue whose nginx differs from webdyno's own."""
    return own_service(folder, "nginx", "nginx", **replacements)


def test_a_missing_program_is_named_with_its_package(testbed: Testbed, tmp_path: Path) -> None:
    own = own_nginx(tmp_path / "own", **{'command = ["nginx"]': 'command = ["nginx-of-mine"]'})
    with pytest.raises(OperationError) as error:
        try_to_start(own.stack("nginx"), {}, own.site("static"), folder=tmp_path, testbed=testbed)
    assert str(error.value) == (
        "nginx isn't completely installed: there is no program nginx-of-mine; "
        "on Debian and Ubuntu: apt-get install nginx"
    )


def test_a_database_that_refuses_to_start_is_reported_with_its_log(
    testbed: Testbed, tmp_path: Path
) -> None:
    stack = "nginx-phpfpm"
    own = own_service(tmp_path / "own", stack, "mariadb", skip_name_resolve="no_such_option")
    site = tmp_path / "own" / "sites" / "frontpage"
    shutil.copytree(own.site("frontpage").folder, site)
    own = Catalogue.load([tmp_path / "own"])
    with pytest.raises(StackDied) as death:
        try_to_start(own.stack(stack), {}, own.site("frontpage"), folder=tmp_path, testbed=testbed)
    assert str(death.value).startswith("MariaDB ended by itself with exit code")
    assert any("no_such_option" in line for line in death.value.log_tail)


def test_a_full_disk_is_one_clear_message(
    catalogue: Catalogue, testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object, **__: object) -> None:
        with writing(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("webdyno.servers.layout.write_whole", full)
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with pytest.raises(
        OperationError, match=r"can't be written: No space left on device; make room"
    ):
        try_to_start(stack, {}, site, folder=tmp_path, testbed=testbed)


def test_a_configuration_that_nginx_rejects_is_reported_in_its_own_words(
    testbed: Testbed, tmp_path: Path
) -> None:
    catalogue = own_nginx(tmp_path / "own", keepalive_requests="keepalive_reqests")
    with pytest.raises(OperationError) as error:
        try_to_start(
            catalogue.stack("nginx"),
            {},
            catalogue.site("static"),
            folder=tmp_path / "kept",
            testbed=testbed,
        )
    assert 'unknown directive "keepalive_reqests"' in str(error.value)
    assert str(tmp_path / "kept" / "nginx") in str(error.value)
    assert (tmp_path / "kept" / "nginx" / "nginx.conf").exists()


def test_a_server_that_ends_at_once_is_reported_with_its_log(
    testbed: Testbed, tmp_path: Path
) -> None:
    own = own_nginx(tmp_path / "own", check="check = [] #", daemon="daemon_ ")
    stack, site = own.stack("nginx"), own.site("static")
    with pytest.raises(StackDied) as death:
        try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)
    assert "nginx ended by itself with exit code 1; the end of its log" in str(death.value)
    assert any("unknown directive" in line for line in death.value.log_tail)
    assert death.value.service == "nginx"


def test_a_server_that_goes_into_the_background_is_reported_why_it_has_to_end(
    testbed: Testbed, tmp_path: Path
) -> None:
    own = own_nginx(tmp_path / "own", **{"daemon off;": ""})
    stack, site = own.stack("nginx"), own.site("static")
    with pytest.raises(StackDied, match=r"nginx went into the background: .*daemon off;"):
        try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)


def test_a_daemon_that_answers_before_its_start_command_ends(
    testbed: Testbed, tmp_path: Path
) -> None:
    script = "{{ needs.binary }} -e stderr -c {{ server.folder }}/nginx.conf; sleep 0.2"
    start = f'\nstart = ["/bin/sh", "-c", "{script}"]\n#'
    own = own_nginx(tmp_path / "own", **{"daemon off;": "", "\nstart =": start})
    stack, site = own.stack("nginx"), own.site("static")
    with pytest.raises(StackDied, match="nginx went into the background"):
        try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)


def test_an_answer_of_somebody_elses_server_is_no_start(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue.load()
    site = catalogue.site("static")
    own = own_nginx(tmp_path / "own", **{"\nstart =": '\nstart = ["sleep", "60"]\n#'})
    with open_stack(
        catalogue.stack("nginx"), {}, site, folder=tmp_path / "theirs", testbed=testbed
    ) as theirs:
        monkeypatch.setattr(layout, "free_port", lambda *_: theirs.port)
        monkeypatch.setattr("webdyno.servers.service.READY_WITHIN_S", 0.5)
        with pytest.raises(StackDied, match=r"has not answered .* within"):
            try_to_start(own.stack("nginx"), {}, site, folder=tmp_path / "kept", testbed=testbed)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("how", ["program", "interpreter"])
def test_a_program_that_the_servers_user_cannot_reach(
    testbed: Testbed, tmp_path: Path, open_folder: Path, how: str
) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    program = private / "gunicorn" if how == "program" else open_folder / "gunicorn"
    program.write_text(f"#!{private}/python\n" if how == "interpreter" else "#!/bin/sh\n")
    program.chmod(0o755)
    start = f'start = ["{program}"]\ncheck = []\n#'
    own = own_nginx(tmp_path / "own", **{"start =": start, "check =": "#"})
    stack, site = own.stack("nginx"), own.site("static")
    with pytest.raises(StackDied) as death:
        try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)
    assert f"may not enter the folder {private}" in str(death.value)
    assert testbed.user
    assert f"{testbed.user.name}, as whom servers run" in str(death.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_writes_no_logs_where_the_servers_user_could_lead_them_astray(
    catalogue: Catalogue, testbed: Testbed, open_folder: Path
) -> None:
    open_folder.chmod(0o777)
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with pytest.raises(OperationError, match=r"can change .*; root writes its logs .* --output"):
        try_to_start(stack, {}, site, folder=open_folder / "run", testbed=testbed)
    assert list(open_folder.iterdir()) == []


def test_what_says_itself_when_it_is_ready_has_the_time_that_it_was_given(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time it is asked it isn't, when the usual time is over."""
    monkeypatch.setattr("webdyno.servers.service.READY_WITHIN_S", -1.0)
    asked = 'ready = ["sh", "-c", "mkdir {{ server.folder }}/temp/asked && exit 1 || exit 0"]'
    own = own_nginx(tmp_path / "own", **{"\nstart =": f"\n{asked}\nready_within_s = 60\nstart ="})
    stack, site = own.stack("nginx"), own.site("static")
    try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)


def test_a_server_that_never_listens_is_stopped_and_reported(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.servers.service.READY_WITHIN_S", 0.3)
    catalogue = own_nginx(tmp_path / "own", **{"listen {{ server.host }}:": "listen 127.0.0.2:"})
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with pytest.raises(StackDied, match=r"has not answered http.*hello.txt within"):
        try_to_start(stack, {}, site, folder=tmp_path / "kept", testbed=testbed)


def test_a_server_that_dies_later_is_noticed(
    catalogue: Catalogue, testbed: Testbed, tmp_path: Path
) -> None:
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with open_stack(stack, {}, site, folder=tmp_path, testbed=testbed) as running:
        process = running.services()["nginx"].process
        assert isinstance(process, ServerProcess)
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: process.poll() is not None)
        with pytest.raises(StackDied, match="nginx ended by itself with signal 9"):
            running.check_alive()


def test_a_wrong_answer_counts_as_started(testbed: Testbed, tmp_path: Path) -> None:
    """The pre-flight check will say what is wrong with the response."""
    catalogue = own_nginx(tmp_path / "own", **{"root {{ site.root }}": "root /nowhere"})
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with open_stack(stack, {}, site, folder=tmp_path / "kept", testbed=testbed) as running:
        with pytest.raises(urllib.error.HTTPError) as refusal:
            get(running.url + "/hello.txt")
        assert refusal.value.code == 404
        refusal.value.close()
