"""Containers as variants.

What is refused before Podman is asked, which port, and what is installed.
"""

import os
import subprocess
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.service import Need
from webdyno.systems.containers import image
from webdyno.systems.containers.engine import SCRIPT, Container, Image, StartFiles
from webdyno.systems.containers.image import WEB, asked_port
from webdyno.systems.containers.podman import full_name, podman, registries_alone, short_names
from webdyno.systems.target import OwnKeys, TargetSpec


def asked(
    reported: list[str], environment: dict[str, str] | None = None, testbed: str = ""
) -> TargetSpec:
    return TargetSpec(
        written="image:x",
        text="x",
        keys=OwnKeys(environment=environment or {}),
        folder=Path("/"),
        place="here",
        notify=reported.append,
        services=Catalogue.load().services,
        testbed=testbed,
        provide=lambda _: None,
    )


class Engine:
    """One whose script shows what it is started with, and the container's variables."""

    title, version, network, needs = "Engine", "1", "none", dict[str, Need]()

    def start_files(self, _: str, __: Sequence[Container], *, inside: bool) -> StartFiles:
        assert not inside
        return StartFiles({SCRIPT: "env\necho --\ncat web.env\n"}, ["/bin/sh", SCRIPT])


def test_no_variable_has_its_name_where_anything_could_heed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could say what code runs as who starts containers, out of any."""
    web = Container(WEB, Image("1", (80,), {}))
    monkeypatch.setattr(image, "_containers", lambda _: (Engine(), [web]))
    names = ("LD_PRELOAD", "IP_LIB_DIR", "PATH")
    variables = dict.fromkeys(names, "./bin:${env:KEY}") | {"PLAIN": "is no secret"}
    made = image.make(asked([], variables))
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
        assert "KEY" not in text
    given = {
        name: text.replace("${env:KEY}", "a 'k\\ey\" $HOME")
        for name, text in made.service["environment"].items()
    }
    words = ["/bin/sh", SCRIPT]
    said = subprocess.run(words, env=given, cwd=tmp_path, check=True, capture_output=True)
    environment, _, of_container = said.stdout.decode().partition("--\n")
    assert not any(f"{name}=" in environment for name in (*names[:2], "PLAIN"))
    assert set(of_container.splitlines()) == {
        "PORT=80",
        "PLAIN=is no secret",
        *(f"{name}=./bin:a 'k\\ey\" $HOME" for name in names),
    }


@pytest.mark.parametrize(
    ("exposed", "of_image", "of_service", "of_user", "port", "is_reported"),
    [
        ((3000,), {}, {}, {}, 3000, False),
        ((9000, 8080, 80), {}, {}, {}, 80, True),
        ((9000, 9001), {}, {}, {}, 9000, True),
        ((), {}, {}, {}, 8080, True),
        ((3000,), {"PORT": "1"}, {}, {}, 1, False),
        ((3000,), {"PORT": "1"}, {"PORT": "2"}, {}, 2, False),
        ((3000,), {"PORT": "1"}, {"PORT": "2"}, {"PORT": "4"}, 4, False),
    ],
)
def test_the_port_is_what_is_said_or_else_what_is_exposed(
    exposed: tuple[int, ...],
    of_image: dict[str, str],
    of_service: dict[str, str],
    of_user: dict[str, str],
    port: int,
    is_reported: bool,
) -> None:
    reported: list[str] = []
    front = Container("web", Image("0" * 64, exposed, of_image), environment=of_service)
    assert asked_port(front, asked(reported, of_user)) == port
    assert bool(reported) == is_reported
    for text in ("http", "9" * 5_000):
        with pytest.raises(UserError, match=f"PORT={text[:60]} is no port"):
            asked_port(front, asked(reported, {"PORT": text}))


def test_what_a_compose_file_publishes_comes_before_what_its_image_exposes() -> None:
    front = Container("web", Image("0" * 64, (80,), {}), ports=(3000,))
    assert asked_port(front, asked([])) == 3000


def test_nothing_is_installed_or_tried_unless_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(needs: Iterable[Need]) -> None:
        raise OperationError(f"missing: {' '.join(need.apt for need in needs)}")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(OperationError, match="missing: podman runc iproute2 util-linux"):
        podman(refused, lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(OperationError, match="call webdyno by sudo"):
        podman(refused, lambda _: None)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("redis:7@sha256:0", "docker.io/library/redis:7@sha256:0"),
        ("org/app", "docker.io/org/app"),
        ("ghcr.io/org/app", "ghcr.io/org/app"),
        ("host:5000/app", "host:5000/app"),
        ("localhost/app", "localhost/app"),
    ],
)
def test_names_without_a_registry_are_dockers(name: str, full: str) -> None:
    assert full_name(name) == full


def test_a_revisions_build_takes_images_of_registries_alone(tmp_path: Path) -> None:
    """Others are files of this machine, which Podman reads as root."""
    accept, reject = [{"type": "insecureAcceptAnything"}], [{"type": "reject"}]
    every = {"docker": {"": accept}, "containers-storage": {"": accept}}
    assert registries_alone([tmp_path / "none"]) == {"default": reject, "transports": every}
    (policy := tmp_path / "policy.json").write_text(
        '{"default": [{"type": "signedBy"}], "transports": '
        '{"docker": {"ghcr.io": [{"type": "reject"}]}, "tarball": {"": []}}}'
    )
    signed = [{"type": "signedBy"}]
    assert registries_alone([policy])["transports"] == {
        "docker": {"": signed, "ghcr.io": reject},
        "containers-storage": {"": signed},
    }
    policy.write_text("{")
    with pytest.raises(OperationError, match=r"policy.json: is no JSON"):
        registries_alone([policy])


def test_short_names_of_a_dockerfile_mean_dockers_unless_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTAINERS_REGISTRIES_CONF", raising=False)
    main = tmp_path / "etc/registries.conf"
    main.parent.mkdir()
    main.write_text('# unqualified-search-registries = ["x"]\n[[registry]]\nlocation = "mine"\n')
    variables = short_names(tmp_path, [main])
    written = Path(variables["CONTAINERS_REGISTRIES_CONF"]).read_text()
    assert tomllib.loads(written) == {
        "unqualified-search-registries": ["docker.io"],
        "registry": [{"location": "mine"}],
    }
    main.write_text('unqualified-search-registries = ["quay.io"]\n')
    assert short_names(tmp_path, [main]) == {}
