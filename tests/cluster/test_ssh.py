"""What is refused of hosts before anything is started on them; with a stand-in for `ssh`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.commands import webdyno_here
from webdyno.cluster.node import NodeAnswer
from webdyno.cluster.ssh import addresses_of, ssh_hosts, start_cluster
from webdyno.core.errors import UserError

Ssh = Callable[[str], Path]
TOKEN = "t" * 32


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Make what is called as `ssh`: it says what it was called with, and does what a script says.

    Asked for the settings of a host it gives that as the address.
    """

    def made(script: str) -> Path:
        called = tmp_path / "called"
        program = tmp_path / "bin/ssh"
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\necho "$*" >>{called}\n'
            'for last; do :; done\n[ "$5" = -G ] && echo "hostname ${last#*@}" && exit\n'
            f"cat >>{tmp_path}/heard; {script}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return called

    return made


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ((), "cluster up takes the hosts"),
        (("10.0.0.1", "10.0.0.1"), "named twice"),
        (("a@10.0.0.1", "b@10.0.0.1"), "have one address"),
        (("10.0.0.1; reboot",), "is no host"),
        (("--", "-oProxyCommand=reboot"), "is no host"),
        (("8.8.8.8",), "8.8.8.8 is a public address"),
        (("10.0.0.1", "user@127.0.0.1"), "127.0.0.1 is its own address"),
    ],
)
def test_what_is_no_host_of_a_cluster_is_refused(
    words: tuple[str, ...], wrong: str, ssh: Ssh, tmp_path: Path
) -> None:
    called = ssh("exit 1")
    done = webdyno_here("cluster", "up", *words, folder=tmp_path)
    assert (done.returncode, wrong in done.stderr) == (2, True), done.stderr
    assert not called.exists() or "webdyno.cluster.node" not in called.read_text()


def test_the_token_is_on_no_command_line(ssh: Ssh, tmp_path: Path) -> None:
    called = ssh("echo 'Welcome!'; echo '{}'")
    addresses = addresses_of(ssh_hosts(["me@10.0.0.1", "10.0.0.2"], "/a python"))
    started = list(start_cluster(addresses, 6379, TOKEN))
    assert [it.answer for it in started] == [NodeAnswer()] * 2
    assert "me@10.0.0.1 '/a python' -P -m webdyno.cluster.node" in called.read_text()
    assert TOKEN not in called.read_text()
    heard = (tmp_path / "heard").read_text()
    assert heard.count(TOKEN) == 2
    assert heard.count('"head":"10.0.0.1"') == 1


def test_without_a_head_no_node_is_started(ssh: Ssh) -> None:
    called = ssh("echo 'Permission denied (publickey).' >&2; exit 255")
    addresses = addresses_of(ssh_hosts(["me@10.0.0.1", "10.0.0.2"], "python"))
    (only,) = start_cluster(addresses, 6379, TOKEN)
    assert "me@10.0.0.1 isn't reached by SSH: Permission denied" in str(only.failure)
    assert called.read_text().count("webdyno.cluster.node") == 1


def test_a_host_that_fails_is_passed_over(ssh: Ssh) -> None:
    ssh("""case "$*" in *0.2*) echo '{"wrong": "no Ray"}';; *) echo '{}';; esac""")
    addresses = addresses_of(ssh_hosts(["10.0.0.1", "10.0.0.2", "10.0.0.3"], "python"))
    started = list(start_cluster(addresses, 6379, TOKEN))
    assert [it.failure for it in started] == [None, "10.0.0.2: no Ray", None]


def test_without_ssh_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Exception, match="no ssh on the PATH"):
        addresses_of(ssh_hosts(["10.0.0.1"], "python"))
    with pytest.raises(UserError, match="named twice"):
        ssh_hosts(["10.0.0.1"] * 2, "python")
