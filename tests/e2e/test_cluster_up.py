"""`webdyno cluster up` and `down`, over real SSH, on hosts with a network of their own."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, WEBDYNO
from e2e.hosts import ON_HOSTS, SHARED, TestHost, hosts_on_a_switch

SSHD = "/usr/sbin/sshd"
pytestmark = [
    *ON_HOSTS,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="the package openssh-server isn't there"),
]
SERVER = f"""
HostKey {SHARED}/host-key
AuthorizedKeysFile {SHARED}/key.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile none
"""
CLIENT = f"""
IdentityFile {SHARED}/key
StrictHostKeyChecking accept-new
UserKnownHostsFile /tmp/known-hosts
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys, and an `ssh` whose settings are the test's, not the user's."""
    folder = tmp_path_factory.mktemp("up")
    for name in ("key", "host-key"):
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
        subprocess.run(words, check=True)
    (folder / "server").write_text(SERVER)
    (folder / "client").write_text(CLIENT)
    ssh = folder / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {SHARED}/client "$@"\n')
    ssh.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def hosts(shared: Path) -> Iterator[list[TestHost]]:
    with hosts_on_a_switch(3, shared) as made:
        for host in made:
            host.do("mkdir -p /run/sshd")
            words = (SSHD, "-D", "-e", "-f", f"{SHARED}/server")
            host.popen(*words, log=shared / f"sshd-{host.name}.log")
        yield made


def call(host: TestHost, shared: Path, *words: str, **variables: str) -> tuple[int, str]:
    """Call webdyno on a host; give its exit code and what it prints."""
    said = shared / f"said-{len(list(shared.glob('said-*')))}"
    set_here = {"PATH": f"{SHARED}/bin:{os.environ['PATH']}", **variables}
    process = host.popen("env", *_words(set_here), WEBDYNO, *words, log=said)
    return process.wait(PATIENCE_S * 2), said.read_text()


def _words(variables: Mapping[str, str]) -> list[str]:
    unset = [] if "RAY_AUTH_TOKEN" in variables else ["-u", "RAY_AUTH_TOKEN"]
    return [*unset, *(f"{name}={value}" for name, value in variables.items())]


def of_ray(host: TestHost) -> list[str]:
    return [it for it in host.processes().values() if "ray" in it.lower()]


def named(hosts: Sequence[TestHost]) -> list[str]:
    return [f"root@{host.address}" for host in hosts]


def test_a_cluster_comes_up_is_used_and_goes_without_a_trace(
    hosts: list[TestHost], shared: Path
) -> None:
    code, reported = call(hosts[0], shared, "cluster", "up", *named(hosts))
    assert code == 0, reported
    head, *others = named(hosts)
    assert reported.startswith(f"{head}: head up\n" + "".join(f"{it}: node up\n" for it in others))
    found = re.search("RAY_AUTH_MODE=token RAY_AUTH_TOKEN=([0-9a-f]{64})\n", reported)
    assert found
    for host in hosts:
        assert of_ray(host)
        assert not any(found[1] in it for it in host.processes().values())
    check = ("cluster", "check", f"{hosts[0].address}:6379")
    assert " ".join(check) in reported
    code, reported = call(hosts[1], shared, *check, RAY_AUTH_TOKEN=found[1])
    assert code == 0, reported
    assert "3 hosts can measure" in reported

    code, reported = call(hosts[0], shared, "cluster", "up", head)
    assert code == 3
    assert "runs there already" in reported

    code, reported = call(hosts[0], shared, "cluster", "down", *named(hosts))
    assert code == 0, reported
    assert reported.count("down; all") == len(hosts)
    for host in hosts:
        assert of_ray(host) == []

    code, reported = call(hosts[0], shared, "cluster", "down", *named(hosts))
    assert (code, reported.count("nothing that")) == (0, len(hosts))


def test_a_node_whose_ray_was_killed_is_swept(hosts: list[TestHost], shared: Path) -> None:
    code, reported = call(
        hosts[0], shared, "cluster", "up", *named(hosts[:1]), RAY_AUTH_TOKEN="t" * 32
    )
    assert code == 0, reported
    assert "t" * 32 not in reported
    for pid, words in hosts[0].processes().items():
        if "ray.scripts.scripts" in words:
            os.kill(pid, 9)
    time.sleep(1)
    assert of_ray(hosts[0])
    code, reported = call(hosts[0], shared, "cluster", "down", *named(hosts[:1]))
    assert code == 0, reported
    assert of_ray(hosts[0]) == []


def test_who_cannot_be_a_node_is_named(hosts: list[TestHost], shared: Path) -> None:
    code, reported = call(hosts[0], shared, "cluster", "up", "root@10.77.0.77")
    assert code == 3
    assert "root@10.77.0.77 isn't reached by SSH" in reported
    code, reported = call(
        hosts[0], shared, "cluster", "up", *named(hosts), "--python=/usr/bin/false"
    )
    assert code == 3
    assert "name its Python with --python" in reported
    assert of_ray(hosts[0]) == []
