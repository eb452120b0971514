"""Docker's daemon: who may use it, what it is kept from, and the build cache that it has."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.commands import (
    PATIENCE_S,
    QUICK,
    left_behind,
    left_now,
    scratch,
    started_webdyno,
    webdyno,
)
from e2e.engines import (
    DOCKERFILE,
    address_of,
    docker,
    kept_by_docker,
    left_by_docker,
    rootless_daemon,
    slots_without_root,
    static_server,
)
from ordinary_user import needs_ordinary_user
from webdyno.host.this_machine import Testbed

FEW = ("--set=load.connections=1", "--set=load.keepalive=never", *QUICK)
CONNECTS = """
import errno, socket
with socket.socket() as connection:
    connection.settimeout(9)
    print(errno.errorcode.get(connection.connect_ex(("203.0.113.1", 80))))
"""
"""To an address that is nobody's (RFC 5737)."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return static_server(tmp_path_factory.mktemp("program"))


@pytest.fixture
def home(tmp_path: Path, program: Path, daemon: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Dockerfile, for a daemon."""
    monkeypatch.setenv("DOCKER_HOST", address_of(daemon))
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "docker")
    shutil.copy2(program, tmp_path / "server")
    (tmp_path / "Dockerfile").write_text(DOCKERFILE.format(port=81, more=""))
    return tmp_path


def test_a_container_of_docker_leads_nowhere_and_has_the_servers_cpus(home: Path) -> None:
    """What is left where all that looked after it is killed at once, the next run removes."""
    address = os.environ["DOCKER_HOST"]
    with started_webdyno("up", "image:.", "--env=PORT=81", folder=home) as process:
        assert process.stdout
        assert any("http://" in line for line in process.stdout)
        (listed,) = scratch(home).glob("webdyno-*/live/*/web/containers")
        root = Path("/proc", listed.read_text().strip())
        leads = ["nsenter", f"--net={root}/ns/net", sys.executable, "-c", CONNECTS]
        away = subprocess.run(leads, check=True, capture_output=True, text=True).stdout.strip()
        assert away in {"EHOSTUNREACH", "ENETUNREACH"}
        allowed = (root / "status").read_text().partition("Cpus_allowed_list:\t")[2].split()[0]
        assert allowed == ",".join(map(str, Testbed().split.servers))
        process.send_signal(signal.SIGSTOP)
        wardens = [line.split(":")[0] for line in left_now(home) if "warden.py" in line]
        for pid in (*wardens, str(process.pid)):
            os.kill(int(pid), signal.SIGKILL)
        process.wait(PATIENCE_S)
    assert len(kept_by_docker(address)) == 2
    done = webdyno("up", "image:none-like-that", folder=home)
    assert "there is no image none-like-that: Docker hasn't got it" in done.stderr
    assert kept_by_docker(address) == []
    assert left_behind(home) == []


@needs_ordinary_user
def test_who_is_in_dockers_group_needs_no_root(home: Path) -> None:
    docker(os.environ["DOCKER_HOST"], "build", "--quiet", "--tag=webdyno-test", str(home))
    mine = scratch(home) / "mine"
    mine.mkdir()
    slots = slots_without_root(home, mine, *["image:webdyno-test"] * 2, "--env=PORT=81", *FEW)
    assert {it.servers.means for it in slots} == {"cgroup-v2"}
    assert all(it.servers.cpu_s > 0 for it in slots)
    assert kept_by_docker(os.environ["DOCKER_HOST"]) == []


def test_a_build_is_the_daemons_own_with_its_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was built before is the same image; another builder would keep its image to itself."""
    monkeypatch.setenv("BUILDX_BUILDER", "nobody-has-that")
    address = os.environ["DOCKER_HOST"]
    named = ("--builder=default",) if "buildx" in docker(address, "--help") else ()
    built = docker(address, "build", "--quiet", *named, str(home)).strip()
    with started_webdyno("up", "image:.", "--env=PORT=81", folder=home) as process:
        assert process.stdout
        assert any("http://" in line for line in process.stdout)
        started = docker(address, "ps", "--no-trunc", "--format", "{{.Image}}").split()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    assert started == [built]
    assert left_by_docker(address) == []


@pytest.mark.long
def test_a_rootless_daemon_is_refused_with_a_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "docker")
    with rootless_daemon() as daemon:
        monkeypatch.setenv("DOCKER_HOST", address_of(daemon))
        done = webdyno("up", "image:x", folder=tmp_path)
    assert "rootless Docker has its containers in a network" in done.stderr
    assert "export DOCKER_HOST=unix:///var/run/docker.sock" in done.stderr
