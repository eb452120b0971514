"""Container engines of tests: Podman, and a daemon of Docker's that lives as long as they do."""

import os
import pwd
import shlex
import shutil
import signal
import site
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import webdyno as webdyno_package
from e2e.commands import environment, scratch
from ordinary_user import NOBODY, SYSTEM_PYTHON
from waiting import what_stays
from webdyno.core.errors import OperationError
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder
from webdyno.systems.containers.podman import podman

SERVER = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
static void end(int n) { (void)n; _exit(0); }
static struct in_addr resolved(const char *name) {  /* by Docker's name server */
    unsigned char m[512] = {7, 7, 1, 0, 0, 1}, *at = m + 12;
    struct in_addr found = {0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_aton("127.0.0.11", &to.sin_addr);
    *at = strlen(name); memcpy(at + 1, name, *at); at += *at + 1;
    memcpy(at, "\\0\\0\\1\\0\\1", 5); at += 5;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {1, 0};  /* Docker's may say nothing */
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sendto(s, m, at - m, 0, (struct sockaddr *)&to, sizeof to);
    int n = recv(s, m, sizeof m, 0);
    close(s);
    if (n > 4 && m[7] == 1) memcpy(&found, m + n - 4, 4);
    return found;
}
static const char *told(struct in_addr who, int port, const char *what) {
    static char said[4096];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = who};
    for (int s;; close(s), usleep(20000)) {
        s = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(s, (struct sockaddr *)&to, sizeof to)) continue;
        if (write(s, what, strlen(what)) < 0) continue;
        if (read(s, said, sizeof said - 1) > 0) return said;
    }
}
static const char *asked(const char *name, int port) {  /* the end of what another one answers */
    struct in_addr who = resolved(name);
    if (!who.s_addr) { fprintf(stderr, "nobody is called %s\\n", name); _exit(6); }
    return strstr(told(who, port, "GET / HTTP/1.0\\r\\n\\r\\n"), "\\r\\n\\r\\n") + 4;
}
static const char *version(void) {  /* of the cache behind it */
    struct in_addr who;
    inet_aton(getenv("CACHE_HOST"), &who);
    return told(who, atoi(getenv("CACHE_PORT")), "version\\r\\n");
}
int main(int argc, char **argv) {
    char request[4096], answer[512];
    const char *port = getenv("PORT"), *says = getenv("SAYS");
    struct stat output;
    if (getpid() == 1 && (fstat(1, &output) || S_ISREG(output.st_mode))) {
        fprintf(stderr, "my output is a file of the machine\\n");
        return 7;
    }
    if (argc > 2) return access(argv[2], F_OK) ? 4 : 0;
    if (argc > 1 && !strcmp(argv[1], "once")) return creat("/shared/done", 0644) < 0;
    const char *needs = getenv("NEEDS");
    if (needs && access(needs, F_OK)) { fprintf(stderr, "nothing there\\n"); return 5; }
    if (argc > 1) port = argv[1];
    if (!atoi(port ? port : "8080")) { fprintf(stderr, "sorry, no database\\n"); return 3; }
    signal(SIGTERM, end);
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(port ? port : "8080"))};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (struct sockaddr *)&at, sizeof at)) { perror("bind"); return 1; }
    listen(s, 128);
    says = getenv("ASKS") ? asked(getenv("ASKS"), atoi(port)) : says ? says : "hello";
    if (getenv("CACHE_PORT")) says = version();
    int length = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n"
        "Content-Length: %zu\\r\\n\\r\\n%s", strlen(says), says);
    for (;;) {
        int c = accept(s, 0, 0);
        if (read(c, request, sizeof request) > 0) { if (write(c, answer, length) < 0) { } }
        close(c);
    }
}
"""
"""The program of all images: it serves HTTP, asks others, and ends as it is asked to.

In a container it is root, and could make a program with set-user-ID of a file of the machine.
"""
DOCKERFILE = 'FROM scratch\nCOPY server /server\nEXPOSE {port}\nCMD ["/server"{more}]\n'
STARTS_WITHIN_S = 30
ENDS_WITHIN_S = 30


def static_server(folder: Path) -> Path:
    """Compile the program; skip a test where that can't be done."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc for the container's program")
    (folder / "server.c").write_text(SERVER)
    words = ["gcc", "-O1", "-static", "-o", "server", "server.c"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "server"


def address_of(daemon: str) -> str:
    """Skip a test without a daemon."""
    if not daemon.startswith("unix:"):
        pytest.skip(f"no containers: {daemon}")
    return daemon


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
    with _folder() as folder:
        own = ("--group", "root", "--ip-masq=false")
        with _daemon([*_dockerd(folder), *own], folder) as address:
            yield address


@contextmanager
def rootless_daemon() -> Iterator[str]:
    """Start one as a user who isn't root, in a namespace of users; or say why it isn't there."""
    if why := _why_no_rootless():
        yield why
        return
    name = _may_map_users()[0]
    user = pwd.getpwnam(name)
    with _folder() as folder:
        for inner in (folder, folder / "run"):
            inner.mkdir(exist_ok=True)
            os.chown(inner, user.pw_uid, user.pw_gid)
        # What is in /run of others stays out of sight, and its own may be made there.
        starts = shlex.join([*_dockerd(folder), "--rootless"])
        words = ["setpriv", f"--reuid={name}", f"--regid={user.pw_gid}", "--clear-groups", "env"]
        words += [f"XDG_RUNTIME_DIR={folder}/run", f"HOME={folder}", "rootlesskit", "--net=host"]
        words += ["--copy-up=/etc", "--copy-up=/run", "sh", "-c", f"rm -f /run/docker; {starts}"]
        with _daemon(words, folder) as address:
            yield address


def _why_no_rootless() -> str | None:
    tools = ("docker", "dockerd", "rootlesskit", "newuidmap", "setpriv")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        return f"there is no {', '.join(missing)} here"
    if os.geteuid() != 0 or not _may_map_users():
        return "takes root, and a user with numbers of users in /etc/subuid"
    return None


def _may_map_users() -> list[str]:
    names = Path("/etc/subuid").read_text().split() if Path("/etc/subuid").is_file() else []
    return [name for name in (line.partition(":")[0] for line in names) if name != "root"]


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder outside of pytest's, which other users can't enter once another has begun."""
    folder = Path(tempfile.mkdtemp(prefix="wd-docker-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _dockerd(folder: Path) -> list[str]:
    return [
        *("dockerd", "--host", f"unix://{folder}/docker.sock", "--data-root", f"{folder}/data"),
        *("--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid", "--storage-driver", "vfs"),
        *("--bridge=none", "--iptables=false", "--ip-forward=false"),
    ]


@contextmanager
def _daemon(words: list[str], folder: Path) -> Iterator[str]:
    address = f"unix://{folder}/docker.sock"
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        yield address if _answers(address, daemon) else f"dockerd doesn't start: {_end_of(folder)}"
    finally:
        daemon.terminate()
        try:
            daemon.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()


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


def left_by_docker(address: str) -> list[str]:
    """Name what a daemon keeps of webdyno's, after giving it time to remove that."""
    return what_stays(lambda: kept_by_docker(address))


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


def slots_without_root(home: Path, mine: Path, *words: str) -> list[SlotRecord]:
    """Compare in a folder that nobody owns, by the rights of Docker's group; return what counts."""
    for folder in (mine, scratch(home)):
        os.chown(folder, NOBODY, NOBODY)
    by_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--groups=0", SYSTEM_PYTHON]
    webdyno = ["-P", "-m", "webdyno.interfaces.cli", "compare", "--output=run", "--no-report"]
    packages = f"{Path(webdyno_package.__file__).parents[1]}:{site.getsitepackages()[0]}"
    variables = {**environment(home), "HOME": str(mine), "PYTHONPATH": packages}
    done = subprocess.run(
        [*by_nobody, *webdyno, *words],
        cwd=mine,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    records = RunFolder.open(mine / "run").records()
    slots = [it for it in records if isinstance(it, SlotRecord)]
    assert slots
    return slots
