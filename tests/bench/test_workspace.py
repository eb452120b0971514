"""Where servers have their files: the first temporary directory that is fit for them."""

import os
import tempfile
from pathlib import Path

import pytest

from webdyno.bench import workspace
from webdyno.bench.workspace import home_folder
from webdyno.model.mistake import Trouble


@pytest.fixture
def place(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A short path that everybody may enter, as TMPDIR."""
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    return open_folder


def test_it_is_in_tmpdir(place: Path) -> None:
    assert home_folder() == place / f"webdyno-{os.geteuid()}"


def test_a_folder_that_is_too_deep_for_sockets_is_passed_over(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = place / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    home = home_folder()
    assert place not in home.parents
    socket = f"{home}/live/12345678/" + "r" * 30 + "/mariadbd.sock"
    assert len(socket) <= workspace.SOCKET_PATH_BYTES


def test_one_that_others_may_not_enter_is_passed_over(place: Path) -> None:
    place.chmod(0o700)
    assert place not in home_folder().parents


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"f_bavail": 10}, "has less than 64 MiB free"),
        ({"f_flag": os.ST_NOEXEC}, "is mounted noexec"),
    ],
)
def test_where_none_will_do_it_says_why(
    place: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, int], says: str
) -> None:
    class System:
        f_bavail, f_frsize, f_flag = 10**9, 4096, 0

    for name, value in fault.items():
        monkeypatch.setattr(System, name, value)
    monkeypatch.setattr(os, "statvfs", lambda _: System)
    with pytest.raises(Trouble) as trouble:
        home_folder()
    assert f"no temporary directory is fit for servers: {place} {says}; /tmp {says};" in str(
        trouble.value
    )
