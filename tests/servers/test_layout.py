"""Whom services run as."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from webdyno.core.errors import OperationError
from webdyno.host.this_machine import Testbed
from webdyno.host.users import server_user
from webdyno.servers.layout import testbed_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run as somebody else")


def service(folder: Path, owner: int, /, **own: object) -> Any:  # noqa: ANN401
    """Give what is asked of a user's own program, defined in a folder of another user's."""
    folder.mkdir(exist_ok=True)
    os.chown(folder, owner, owner)
    says: dict[str, object] = {
        "container_port": None,
        "folder": "/",
        "written": "cmd:x",
        "may_be_root": True,
    }
    says |= {"owner": None, **own}
    return SimpleNamespace(folder=folder, own=SimpleNamespace(**says))


def test_what_another_one_s_run_names_runs_as_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder may be any, such as one of root's."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    testbed = Testbed()
    assert testbed_of(service(tmp_path / "ours", 0), testbed).user is None
    theirs = testbed_of(service(tmp_path / "theirs", 12345), testbed).user
    assert theirs is not None
    assert theirs.uid == 12345
    elsewhere = tmp_path / "folder of a third one"
    elsewhere.mkdir()
    os.chown(elsewhere, 23456, 23456)
    third = service(tmp_path / "theirs", 12345, folder=str(elsewhere))
    assert (user := testbed_of(third, testbed).user)
    assert user.uid == 12345, "a run can't have its programs run as whoever it likes"
    ours = service(tmp_path / "ours", 0, folder=str(elsewhere))
    assert (user := testbed_of(ours, testbed).user)
    assert user.uid == 23456
    with pytest.raises(OperationError, match=r"can do what root can, and .* user 12345"):
        testbed_of(service(tmp_path / "theirs", 12345, container_port=80), testbed)
    testbed_of(service(tmp_path / "ours", 0, container_port=80), testbed)
    catalogue = SimpleNamespace(folder=tmp_path / "theirs", own=None)
    assert testbed_of(catalogue, testbed).user == server_user()  # type: ignore[arg-type]
