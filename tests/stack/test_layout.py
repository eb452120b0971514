"""Whom services run as."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from webdyno.host.this_machine import Bench
from webdyno.host.users import server_user
from webdyno.model.errors import OperationError
from webdyno.stack.layout import bench_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run as somebody else")


def service(folder: Path, owner: int, **own: object) -> Any:  # noqa: ANN401
    """Give what is asked of a user's own program, defined in a folder of another user's."""
    folder.mkdir(exist_ok=True)
    os.chown(folder, owner, owner)
    says = {"container_port": None, "folder": "/", "written": "cmd:x", "may_be_root": True} | own
    return SimpleNamespace(folder=folder, own=SimpleNamespace(**says))


def test_what_another_one_s_run_names_runs_as_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder may be any, such as one of root's."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    bench = Bench()
    assert bench_of(service(tmp_path / "ours", 0), bench).user is None
    theirs = bench_of(service(tmp_path / "theirs", 12345), bench).user
    assert theirs is not None
    assert theirs.uid == 12345
    with pytest.raises(OperationError, match=r"containers are started as root, and .* user 12345"):
        bench_of(service(tmp_path / "theirs", 12345, container_port=80), bench)
    bench_of(service(tmp_path / "ours", 0, container_port=80), bench)
    catalogue = SimpleNamespace(folder=tmp_path / "theirs", own=None)
    assert bench_of(catalogue, bench).user == server_user()  # type: ignore[arg-type]
