"""Container engines of tests: Podman, and a daemon of Docker's that lives as long as they do."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.systems.containers.podman import podman

STARTS_WITHIN_S = 30
ENDS_WITHIN_S = 30


def why_no_podman() -> str | None:
    """Say why Podman can't be used here, for the report of the tests."""
    if shutil.which("podman") is None:
        return "Podman isn't installed (scripts/test_packages.py does that)"
    try:
        podman(lambda _: None, lambda _: None)
    except OperationError as error:
        return str(error)
    return None


@contextmanager
def docker_daemon() -> Iterator[str]:
    """Start a daemon with a folder of its own; give its address, or else why it isn't there.

    It touches neither the network nor the firewall of this machine.
    """
    if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
        yield "a daemon takes root, dockerd and docker (scripts/test_packages.py installs them)"
        return
    # Not in pytest's folders, which other users can't enter once another pytest has begun.
    folder = Path(tempfile.mkdtemp(prefix="wd-docker-", dir="/tmp"))
    folder.chmod(0o755)
    address = f"unix://{folder}/docker.sock"
    words = [
        *("dockerd", "--host", address, "--data-root", f"{folder}/data"),
        *("--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid", "--group", "root"),
        *("--bridge=none", "--iptables=false", "--ip-masq=false", "--ip-forward=false"),
        *("--storage-driver", "vfs"),
    ]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        yield address if _answers(address, daemon) else f"dockerd doesn't start: {_end_of(folder)}"
    finally:
        daemon.terminate()
        try:
            daemon.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(address: str, daemon: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and daemon.poll() is None:
        asked = subprocess.run(
            ["docker", "--host", address, "version"], check=False, capture_output=True
        )
        if not asked.returncode:
            return True
        time.sleep(0.2)
    return False


def _end_of(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-300:]


def docker(address: str, *words: str, given: bytes = b"") -> str:
    """Ask a daemon; give what it prints."""
    done = subprocess.run(
        ["docker", "--host", address, *words], check=True, capture_output=True, input=given
    )
    return done.stdout.decode()


def kept_by_docker(address: str) -> list[str]:
    """Name the containers, networks and volumes of a daemon that are webdyno's."""
    of_webdyno = ("--filter", "name=webdyno")
    forms = {"container": "{{.Names}}", "network": "{{.Name}}", "volume": "{{.Name}}"}
    return [
        name
        for kind, form in forms.items()
        for name in docker(
            address,
            *(kind, "ls", *(["--all"] if kind == "container" else []), *of_webdyno),
            *("--format", form),
        ).split()
    ]
