"""Containers as variants, with Podman and Docker: measured, stopped, and what is said of failures.

Base images can't be had everywhere, so the image is nothing but a static program.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.commands import (
    PATIENCE_S,
    QUICK,
    left_behind,
    run_rounds,
    scratch,
    started_webdyno,
    statuses,
    webdyno,
    webdyno_here,
)
from e2e.engines import DOCKERFILE, address_of, left_by_docker, static_server, why_no_podman
from e2e.own import make_repository
from variants import further
from waiting import what_stays
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

PODMAN, DOCKER = "podman", "docker"
FEW = ("--set=load.connections=1", "--set=load.keepalive=never", *QUICK)
GROUPS = Path("/sys/fs/cgroup")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static program that all images here are made of."""
    return static_server(tmp_path_factory.mktemp("program"))


@pytest.fixture(params=[PODMAN, further(DOCKER)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What runs the containers of a test."""
    chosen: str = request.param
    monkeypatch.setenv("WEBDYNO_CONTAINERS", chosen)
    if chosen == DOCKER:
        monkeypatch.setenv("DOCKER_HOST", address_of(request.getfixturevalue("daemon")))
    elif why := why_no_podman():
        pytest.skip(f"no containers: {why}")
    return chosen


both_engines = pytest.mark.parametrize("engine", [PODMAN, DOCKER], indirect=True)
"""Of the test that shows what engines do, each in its way."""
docker_first = pytest.mark.parametrize("engine", [further(PODMAN), DOCKER], indirect=True)


@pytest.fixture
def home(tmp_path: Path, program: Path, engine: str) -> Path:  # noqa: ARG001 (it is set up)
    """A folder with a Dockerfile, whose image is built once: engines know its layers again."""
    shutil.copy2(program, tmp_path / "server")
    write_dockerfile(tmp_path, DOCKERFILE.format(port=81, more=""))
    return tmp_path


def write_dockerfile(folder: Path, text: str) -> None:
    """Write one whose images have our label."""
    (folder / "Dockerfile").write_text(f"{text}\nLABEL {label()}\n")


def label() -> str:
    """Mark images of this process's tests: others may run at the same time."""
    return f"webdyno.test={os.getpid()}"


@pytest.fixture(scope="session", autouse=True)
def images_end_with_the_tests() -> Iterator[None]:
    """Remove the images that the tests have built."""
    yield
    if shutil.which("podman") is None:
        return
    words = ["podman", "images", "--all", "--quiet", "--no-trunc", f"--filter=label={label()}"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    if made := set(done.stdout.split()):
        subprocess.run(["podman", "rmi", "--force", *made], check=False, capture_output=True)


@pytest.mark.long
def test_a_secret_reaches_a_container_and_no_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "s3cr3t-0f-mine")
    run_rounds(1, "compare", "image:.", "image:.", "--env=SAYS=${env:MINE}", *FEW, folder=home)
    records = RunFolder.open(home / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert {it.body_start for its in preflight.responses.values() for it in its} == {"…hidden…"}
    files = [it for it in (home / "run").rglob("*") if it.is_file()]
    assert not [it for it in files if b"s3cr3t" in it.read_bytes()]


@both_engines
def test_a_container_is_measured_next_to_a_process(home: Path, engine: str) -> None:
    (home / "two.toml").write_text(
        'title = "t"\nquestion = "q?"\n'
        '[variants.image]\nstack = "image:."\nmemory = "64MB"\nenvironment.PORT = "81"\n'
        '[variants.plain]\nstack = "cmd:./server"\n'
    )
    reported = run_rounds(1, "run", "two.toml", *FEW, folder=home)
    assert "building image:. …" in reported
    records = RunFolder.open(home / "run").records()
    slots = [it for it in records if isinstance(it, SlotRecord)]
    contained = [it for it in slots if it.variant == "image"]
    assert contained
    # Of all slots together: on a busy machine a short one may have had none.
    assert sum(it.load.requests.completed for it in contained) > 0
    assert sum(it.servers.cpu_s for it in contained) > 0
    readings = [it.readings for it in contained if it.readings]
    assert all(it.services["web"].processes == 1 for it in readings), "the engine's own don't count"
    assert all(it.memory and it.memory.limit_bytes <= 64_000_000 for it in readings)
    assert all(it.network.own_namespace for it in readings)
    (preflight, *_) = (it for it in records if isinstance(it, PreflightRecord))
    said = str(preflight.model_dump())
    assert ("Docker 2" if engine == DOCKER else "Podman ") in said, "by whom it is run"
    assert ("bridge of Docker" if engine == DOCKER else "Ethernet") in said, "how it is reached"


@pytest.mark.long
def test_each_revision_of_a_dockerfile_is_an_image_of_its_own(home: Path) -> None:
    (home / "webdyno.toml").write_text('[app]\nimage = "."\nenvironment.PORT = "81"\n')
    make_repository(home, {".gitignore": "run\n.cache\nscratch*\n"})
    with (home / "Dockerfile").open("a") as file:
        file.write("ENV CHANGED=yes\n")
    reported = run_rounds(1, "compare", "rev:.", "rev:HEAD", *FEW, folder=home)
    assert reported.count("building rev:") == 2, "each once, without the time for it in any figure"
    assert statuses(home) == {"200"}
    run = RunFolder.open(home / "run")
    assert run.head.versions["working tree"]["web"].endswith(" with changes")


@docker_first
def test_services_find_each_other_by_name_and_may_listen_on_the_same_port(home: Path) -> None:
    """As on Docker, with a name server at 127.0.0.11; next to a container alone."""
    (home / "compose.yaml").write_text(
        'services:\n  web:\n    build: .\n    ports: ["8000:81"]\n    depends_on: [data]\n'
        '    restart: always\n    environment: {ASKS: base, PORT: "81"}\n'
        '  data:\n    build: .\n    environment: ["PORT=81", "SAYS=${NOTHING:-hello}"]\n'
        "    networks: {default: {aliases: [base]}}\n"
    )
    reported = run_rounds(
        1, "compare", "image:compose.yaml", "image:Dockerfile", "--env=PORT=81", *FEW, folder=home
    )
    assert "excluded: web.restart" in reported
    records = RunFolder.open(home / "run").records()
    readings = [(it.variant, it.readings) for it in records if isinstance(it, SlotRecord)]
    counts = {variant: it.services["web"].processes for variant, it in readings if it}
    assert counts == {"compose.yaml": 2, "Dockerfile": 1}
    assert statuses(home) == {"200"}


@pytest.mark.long
@pytest.mark.parametrize("engine", [PODMAN], indirect=True)
@pytest.mark.skipif(shutil.which("memcached") is None, reason="memcached isn't installed")
def test_a_service_of_the_catalog_stands_behind_what_is_asked(home: Path) -> None:
    (home / "compose.yaml").write_text(
        'services:\n  web:\n    build: .\n    environment: {PORT: "81"}\n    depends_on: [data]\n'
        '  data: {build: ., environment: ["PORT=82"]}\n'
    )
    behind = ("--service=cache=memcached", "--env=PORT=81")
    systems = ("image:compose.yaml#web", "image:Dockerfile")
    run_rounds(1, "compare", *systems, *behind, *FEW, folder=home)
    records = RunFolder.open(home / "run").records()
    (preflight, *_) = (it for it in records if isinstance(it, PreflightRecord))
    said = {it.body_start[:8] for its in preflight.responses.values() for it in its}
    assert said == {"VERSION "}
    readings = [it.readings for it in records if isinstance(it, SlotRecord) and it.readings]
    assert all({"web", "cache"} == it.services.keys() for it in readings)
    assert statuses(home) == {"200"}
    hidden = ("up", "image:Dockerfile", *behind, "--set=cache_listen=unix")
    assert "which containers don't see" in webdyno_here(*hidden, folder=home).stderr


ORDERED = """
services:
  web:
    build: .
    volumes: ["common:/shared"]
    environment: {NEEDS: /shared/done, PORT: "81"}
    depends_on:
      once: {condition: service_completed_successfully}
      data: {condition: service_healthy}
  data:
    build: .
    volumes: ["common:/shared"]
    environment: ["PORT=82"]
    depends_on: [once]
    healthcheck: {test: [CMD, /server, is-there, /shared/done]}
  once: {build: ., command: [/server, once], volumes: ["common:/shared"]}
"""


@pytest.mark.long
@pytest.mark.parametrize("by", ["compose file", "image"])
def test_services_wait_for_those_that_end_or_become_healthy(home: Path, by: str) -> None:
    """With a volume that all of them have, which none may make a second time."""
    check = "    healthcheck: {test: [CMD, /server, is-there, /shared/done]}\n"
    assert check in ORDERED
    text = ORDERED if by == "compose file" else ORDERED.replace(check, "")
    (home / "compose.yaml").write_text(text)
    if by == "image":
        with (home / "Dockerfile").open("a") as file:
            file.write('HEALTHCHECK CMD ["/server", "is-there", "/shared/done"]\n')
    run_rounds(1, "compare", "image:compose.yaml#web", "image:Dockerfile", *FEW, folder=home)
    assert statuses(home) == {"200"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("NEEDS: /shared/done", "NEEDS: /none"), r"exit code 5; .*\n(.*\n)* +nothing there"),
        further(
            ("[/server, once]", "[/server, x, /none]"),
            "the service once, which others wait for,.*4",
        ),
        further(
            ("is-there, /shared/done", "is-there, /none"), "waiting until data is healthy: /server"
        ),
        further(
            ('PORT: "81"', 'PORT: "81", ASKS: nobody'),
            "exit code 6; .*\n(.*\n)* +nobody is called nobody",
        ),
    ],
    ids=["nothing there", "fails", "never healthy", "no name"],
)
def test_what_goes_wrong_among_services_is_reported(
    home: Path, change: tuple[str, str], says: str
) -> None:
    text = ORDERED.replace(*change)
    (home / "compose.yaml").write_text(text)
    within_s = 8 if says.startswith("waiting") else 60
    done = webdyno("up", "image:compose.yaml#web", f"--ready-within={within_s}s", folder=home)
    assert done.returncode == 3, done.stdout
    assert re.search(says, done.stderr), done.stderr
    assert left_behind(home) == []


@docker_first
@pytest.mark.parametrize("ends_by", [signal.SIGKILL, further(signal.SIGINT)])
def test_nothing_is_left_however_webdyno_ends(
    home: Path, engine: str, ends_by: signal.Signals
) -> None:
    with started_webdyno("up", "image:.", "--env=PORT=81", folder=home) as process:
        assert process.stdout
        line = next((it for it in process.stdout if "http://" in it), "")
        host = re.search(r"http://([\d.]+):81", line)
        assert host, line
        pipes = [path for path in scratch(home).rglob("said-*") if path.is_fifo()]
        assert bool(pipes) == (engine != DOCKER)
        assert {stat.S_IMODE(path.stat().st_mode) for path in pipes} <= {0o600}
        names = [path.name for path in scratch(home).glob("webdyno-*/live/*")]
        assert any(_groups(names))
        process.send_signal(ends_by)
        process.wait(PATIENCE_S)
    assert left_behind(home) == []
    if engine == DOCKER:
        assert left_by_docker(os.environ["DOCKER_HOST"]) == []
    links = subprocess.run(["ip", "link"], check=True, capture_output=True, text=True).stdout
    assert host[1].replace(".", "-") not in links
    assert what_stays(lambda: _groups(names)) == []


def _groups(names: list[str]) -> list[Path]:
    """Return the control groups of all kinds that stacks of these names have."""
    return [group for name in names for group in GROUPS.glob(f"*/webdyno-{name}")]


def test_a_port_of_this_machine_is_none_of_a_containers(home: Path) -> None:
    done = webdyno_here("up", "image:.", "--port=8080", folder=home)
    assert done.returncode == 2
    assert "listens on port 81 there; --env PORT=N" in done.stderr


@pytest.mark.parametrize(
    ("dockerfile", "stack", "says"),
    [
        (None, "image:localhost/none-like-that", "there is no image localhost/none-like-that"),
        (None, "image:./gone", "there is no file or folder"),
        (None, "image:gone.yaml#web", r"gone.yaml: there is no such file"),
        ("FROM scratch\nCOPY none /", "image:.", "failed with exit code.*\n(.*\n)*.*none"),
        (
            DOCKERFILE.format(port=81, more=', "die"'),
            "image:.",
            r"ended by itself with exit code 3; the end.*:(\n +WARNING.*)?\n +sorry, no database$",
        ),
        further(
            DOCKERFILE.format(port=81, more="").replace('"/server"', '"/nothing"'),
            "image:.",
            "ended by itself with exit code 127",
        ),
        further(
            DOCKERFILE.format(port=81, more=', "85"'),
            "image:.",
            r"listens on 0\.0\.0\.0:85 and not on port 81; --env PORT=N",
        ),
    ],
    ids=["no image", "no folder", "no file", "failing build", "dies", "no program", "other port"],
)
def test_what_goes_wrong_is_reported_in_one_message(
    home: Path, dockerfile: str | None, stack: str, says: str
) -> None:
    if dockerfile:
        write_dockerfile(home, dockerfile)
    done = webdyno("up", stack, "--ready-within=60s", folder=home)
    assert done.returncode in {2, 3}, done.stdout
    assert re.search(says, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert left_behind(home) == []
