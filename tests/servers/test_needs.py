"""Finding programs and files."""

import os
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError
from webdyno.core.service import Need
from webdyno.servers.needs import find, paths_of_needs


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_name_that_exists_counts(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(open_folder))
    second = program(open_folder, "webdyno-second")
    assert find(Need(command=["webdyno-first", "webdyno-second"], apt="x")) == second
    assert find(Need(command=["webdyno-first"], apt="x")) is None


def test_the_newest_version_counts(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(open_folder))
    program(open_folder, "webdyno-php8.9")
    newest = program(open_folder, "webdyno-php8.10")
    assert find(Need(command=["webdyno-php*"], apt="x")) == newest
    assert find(Need(file=[f"{open_folder}/webdyno-php8.*"], apt="x")) == newest


def test_servers_outside_the_path_of_users_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert find(Need(command=["nginx"], apt="nginx")) == "/usr/sbin/nginx"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_does_not_pick_what_the_servers_user_cannot_reach(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    program(private, "webdyno-server")
    reachable = program(open_folder, "webdyno-server")
    monkeypatch.setenv("PATH", f"{private}:{open_folder}")
    assert find(Need(command=["webdyno-server"], apt="x")) == reachable


def test_what_debian_has_not_is_said_to_be_elsewhere() -> None:
    need = Need(command=["webdyno-none"], apt="x", elsewhere="which y has")
    says = r"no program webdyno-none; .* install x, which y has$"
    with pytest.raises(OperationError, match=says):
        paths_of_needs("X", {"binary": need})
