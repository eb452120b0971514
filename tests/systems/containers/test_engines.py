"""Which engine runs containers, and what is said where none can; how Docker is called."""

import json
import os
import shlex
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError, UserError
from webdyno.systems.containers import choice
from webdyno.systems.containers.docker import Docker, NoDockerError, docker
from webdyno.systems.containers.engine import Build, Container, Image, image_of
from webdyno.systems.containers.podman import Podman
from webdyno.systems.target import OwnKeys, TargetSpec

WORKS = {"ServerVersion": "28.2", "CPUSet": True, "CgroupDriver": "systemd"}
SOCKET = "unix:///run/docker.sock"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a program that answers as Docker's client does."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("WEBDYNO_CONTAINERS", raising=False)
    (tmp_path / "Dockerfile").touch()
    return tmp_path


def answer(client: Path, endpoint: str = SOCKET, info: object = WORKS, fault: str = "") -> None:
    """Have it say where its daemon is, and what that says of itself."""
    said = json.dumps(info)
    program = client / "docker"
    program.write_text(
        f"#!/bin/sh\ncase $* in context*) echo {shlex.quote(f'{endpoint}#{client.name}')};;\n"
        f"*info*) echo {shlex.quote(said)}; echo {shlex.quote(fault)} >&2;;\n"
        "*'image inspect'*) exit 1;; esac\n"
    )
    program.chmod(0o755)


def spec(containers: str | None = None, services: dict[str, str] | None = None) -> TargetSpec:
    keys = OwnKeys.model_validate({"containers": containers, "services": services or {}})
    return TargetSpec(
        "image:x", "x", keys, Path("/"), "here", lambda _: None, {}, None, lambda _: None
    )


@pytest.mark.parametrize(
    ("endpoint", "info", "fault", "says"),
    [
        ("tcp://elsewhere:2375", WORKS, "", "Docker's daemon is at tcp://elsewhere.*DOCKER_HOST="),
        (SOCKET, {}, "permission denied", r"may not use Docker's socket.*usermod -aG docker"),
        (
            SOCKET,
            {},
            "Cannot connect",
            "doesn't answer at /run/docker.sock.*systemctl start docker",
        ),
        (SOCKET, {**WORKS, "OperatingSystem": "Docker Desktop"}, "", "in a virtual machine"),
        (SOCKET, {**WORKS, "SecurityOptions": ["name=rootless"]}, "", "a proxy of its own"),
        (SOCKET, {**WORKS, "DockerRootDir": "/var/lib/containers/storage"}, "", "Podman answers"),
        (SOCKET, {**WORKS, "CPUSet": False}, "", "lacks the controller cpuset"),
    ],
)
def test_why_docker_cannot_be_used_is_said(
    client: Path, endpoint: str, info: object, fault: str, says: str
) -> None:
    answer(client, endpoint, info, fault)
    with pytest.raises(NoDockerError, match=says):
        docker()


def test_without_a_client_or_with_podmans_there_is_no_docker(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (client / "docker").write_text("#!/bin/sh\necho 'unknown command' >&2; exit 125\n")
    (client / "docker").chmod(0o755)
    with pytest.raises(NoDockerError, match="isn't Docker's own"):
        docker()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoDockerError, match="isn't installed"):
        docker()


def test_a_daemon_that_hangs_is_not_waited_for(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.systems.containers.docker.ANSWERS_WITHIN_S", 0.2)
    (client / "docker").write_text("#!/bin/sh\nexec sleep 60\n")
    (client / "docker").chmod(0o755)
    with pytest.raises(NoDockerError, match="did not end within"):
        docker()


def test_docker_comes_first_and_podman_takes_root(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    podman = object()
    monkeypatch.setattr(choice, "podman", lambda *_: podman)
    answer(client)
    assert isinstance(choice.engine_for(spec()), Docker)
    assert choice.engine_for(spec("podman")) is podman
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "podman")
    assert choice.engine_for(spec()) is podman
    assert isinstance(choice.engine_for(spec("docker")), Docker), "the nearer one counts"
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "dokcer")
    with pytest.raises(UserError, match=r"WEBDYNO_CONTAINERS=dokcer.*docker and podman"):
        choice.engine_for(spec())
    monkeypatch.delenv("WEBDYNO_CONTAINERS")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert choice.engine_for(spec(services={"db": "postgresql"})) is podman, "Docker can't do that"
    answer(client, f"{SOCKET}.other", info={}, fault="Cannot connect")
    assert choice.engine_for(spec()) is podman
    with pytest.raises(OperationError, match=r"systemctl start docker$"):
        choice.engine_for(spec("docker"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(OperationError, match=r"systemctl start docker; or call webdyno by sudo"):
        choice.engine_for(spec())


def test_whether_an_engine_answers_is_seen_without_asking_it(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("docker", "podman"):
        (client / program).write_text(f"#!/bin/sh\ntouch {client}/asked\n")
        (client / program).chmod(0o755)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{client}/docker.sock")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not choice.engine_answers(), "nobody listens, and Podman takes root"
    (client / "docker.sock").touch()
    assert choice.engine_answers()
    monkeypatch.setattr("webdyno.systems.containers.docker.USUAL", f"{client}/docker.sock")
    monkeypatch.setattr("webdyno.systems.containers.docker.PID_FILES", (f"{client}/docker.pid",))
    assert not choice.engine_answers(), "systemd would start it"
    (client / "docker.pid").touch()
    assert choice.engine_answers()
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "podman")
    assert not choice.engine_answers()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert choice.engine_answers()
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "docker")
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:2375")
    assert not choice.engine_answers()
    assert not (client / "asked").exists()


def test_a_build_has_the_values_of_its_arguments_in_its_environment(client: Path) -> None:
    (client / "docker").write_text('#!/bin/sh\necho "$TOKEN for $*" >seen; exit 1\n')
    (client / "docker").chmod(0o755)
    build = Build(client / "Dockerfile", client, ("--build-arg=TOKEN",), {"TOKEN": "s3cret"})
    with pytest.raises(OperationError, match="building web failed with exit code 1"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)
    value, _, words = (client / "seen").read_text().partition(" for ")
    assert value == "s3cret"
    assert "--build-arg=TOKEN" in words
    assert "s3cret" not in words


@pytest.mark.parametrize("name", [".dockerignore", ".containerignore", "Dockerfile.dockerignore"])
def test_what_a_revision_has_not_built_is_no_link(client: Path, name: str) -> None:
    """Engines quote what they can't read of it: of any file of root's."""
    (client / name).symlink_to("/etc/hostname")
    build = Build(client / "Dockerfile", client, is_revision=True)
    with pytest.raises(UserError, match=f"{name}: put a regular file there"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)


@pytest.mark.parametrize(
    "step",
    [
        "RUN --network=host wget x",
        "run --mount=type=cache,target=/x --network=host wget x",
        "RUN \\\n # why\n --network=host wget x",
        'ONBUILD RUN --net\\\nwo"rk"=host wget x',
        "# escape=`\nRUN `\n--network=default x",
        *(f"RUN{blank}--network=host x" for blank in "\t\v\f\r"),
        "RUN \v# --network=host x",
        "RUN --mount=target=/\\\n\x1c# --network=host x",
        'RUN --mount="target=/\\\n # x" --net\\\n# y\nwork=host x',
        "RUN\\\n \\\n\n\t# why\n --net\\ \nwork=host x",
        "RU\\\r\nN --network=host x",
        "LABEL a=`\nRUN --network=host x",
        "COPY <<'E\\' /x\nE\\\nRUN --network=host x",
    ],
)
def test_a_revision_s_build_chooses_no_network(client: Path, step: str) -> None:
    """That of the host leads to all that listens on the loopback interface."""
    (client / "docker").write_text("#!/bin/sh\nexit 1\n")
    (client / "docker").chmod(0o755)
    file = client / "Dockerfile"
    file.write_bytes(f"FROM scratch\n{step}\n".encode())
    build = Build(file, client, is_revision=True)
    with pytest.raises(UserError, match="a revision's build has no other network"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)
    cached = "RUN --mount=type=cache,target=/x yarn --network-timeout 9"
    file.write_text(f'{cached}\n# not by RUN --network=host\nCMD ["a", "--network", "b"]\n')
    with pytest.raises(OperationError, match="building web failed"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)


@pytest.mark.parametrize("is_revision", [False, True])
def test_a_revision_s_build_has_caches_of_its_own(
    client: Path, monkeypatch: pytest.MonkeyPatch, *, is_revision: bool
) -> None:
    """Podman keeps those in a folder for temporary files, for all builds of a user."""
    monkeypatch.setenv("TMPDIR", str(client))
    (client / "docker").write_text('#!/bin/sh\necho "$TMPDIR" >seen; exit 1\n')
    (client / "docker").chmod(0o755)
    build = Build(client / "Dockerfile", client, is_revision=is_revision)
    with pytest.raises(OperationError, match="building web failed"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)
    folder = (client / "seen").read_text().strip()
    assert (folder != str(client)) is is_revision
    assert Path(folder).exists() is not is_revision


@pytest.mark.parametrize("is_revision", [False, True])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_revision_s_build_gets_no_account_at_proxies(
    client: Path, monkeypatch: pytest.MonkeyPatch, *, is_revision: bool, scheme: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "FTP_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}me:pa55@proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost")
    (client / "docker").write_text('#!/bin/sh\necho "$*" >seen; exit 1\n')
    (client / "docker").chmod(0o755)
    build = Build(client / "Dockerfile", client, is_revision=is_revision)
    engine = Docker(SOCKET, "28", takes_groups=False)
    for options in ((), ("--http-proxy=false",)):  # of Podman
        monkeypatch.setattr(Docker, "without_proxies", options)
        with pytest.raises(OperationError, match="building web failed with exit code 1"):
            engine.build("web", build, lambda _: None)
        words = (client / "seen").read_text().split()
        given = {*options, f"--build-arg=HTTPS_PROXY={scheme}proxy:3128"}
        assert (given <= {*words}) is is_revision
        assert "pa55" not in " ".join(words)
    assert Podman.without_proxies == ("--http-proxy=false",)


@pytest.mark.parametrize("named", ["Containerfile.in", ".in", "Containerfile"])
def test_no_file_is_built_by_that_a_preprocessor_reads(client: Path, named: str) -> None:
    """As root, on this machine, whose files it may include."""
    (client / "rules.in").write_text('#include "/etc/shadow"')
    if named == "Containerfile":
        (client / named).symlink_to("rules.in")
    build = Build(client / named, client)
    with pytest.raises(UserError, match="can include any file of this machine: rename it"):
        Docker(SOCKET, "28", takes_groups=False).build("web", build, lambda _: None)


def test_how_docker_is_to_start_containers() -> None:
    """Named volumes have another name with each start: others of that name stay out of it."""
    image = Image("sha256:0", (), {})
    options = ["--volume=data:/var", "--volume=/etc/x:/x:ro", "--user=1 2"]
    db = Container("db", image, names=["base"], options=options, awaits="healthy", health=["is up"])
    web = Container("web", image, entrypoint=["/init", "-v"], command=["run", "$HOME\nnow"])
    engine = Docker(SOCKET, "28", takes_groups=False)
    files = engine.start_files("image:x\nrm -rf", [db, web], inside=False)
    script = files.texts["start.sh"]
    assert "\nrm" not in script
    assert "\nvolume data\nbeside db " in script
    assert """ --volume="$start"-data:/var --volume=/etc/x:/x:ro '--user=1 2' """ in script
    assert '\nrun web --ip "$network.$((first + 2))" ' in script
    assert '\nbeside db --ip "$network.$((first + 3))" ' in script
    assert "--network-alias=base --env-file db.env sha256:0\n" in script
    assert "\nhealthy db 'is up'\nlist db web &\nrun web " in script
    assert "--entrypoint=/init sha256:0 -v run '$HOME\nnow'\n" in script
    assert "--cgroup-parent" not in script
    assert "-db -web" in files.texts["end.sh"]
    assert files.own["removed_by"] == ["/bin/sh", "{{ server.folder }}/end.sh"]
    assert files.own["groups_elsewhere"]
    with pytest.raises(UserError, match="can't stand behind containers of Docker"):
        engine.start_files("image:x", [web], inside=True)
    with pytest.raises(UserError, match="more than 28 containers"):
        engine.start_files("image:x", [web] * 30, inside=False)


def test_what_an_image_says_of_itself_is_read_of_both() -> None:
    config = {"Env": ["A=b=c"], "ExposedPorts": {"80/tcp": {}, "53/udp": {}}}
    check = {"Test": ["CMD", "/up"]}
    ours = {"Id": "1", "Config": config, "Healthcheck": check}
    dockers = {"Id": "1", "Config": {**config, "Healthcheck": check}}
    assert image_of(json.dumps([ours])) == image_of(json.dumps([dockers]))
    assert image_of(json.dumps([ours])) == Image("1", (80,), {"A": "b=c"}, ("/up",))
