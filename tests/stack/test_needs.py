"""Finding programs and files."""

from pathlib import Path

import pytest

from webdyno.model.service import Need
from webdyno.stack.needs import find


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_name_that_exists_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    second = program(tmp_path, "webdyno-second")
    assert find(Need(command=["webdyno-first", "webdyno-second"], apt="x")) == second
    assert find(Need(command=["webdyno-first"], apt="x")) is None


def test_the_newest_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path, "webdyno-php8.9")
    newest = program(tmp_path, "webdyno-php8.10")
    assert find(Need(command=["webdyno-php*"], apt="x")) == newest
    assert find(Need(file=[f"{tmp_path}/webdyno-php8.*"], apt="x")) == newest


def test_servers_outside_the_path_of_users_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert find(Need(command=["nginx"], apt="nginx")) == "/usr/sbin/nginx"
