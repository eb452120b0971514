"""Whom services run as, and who reads what they hold."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, hand_over, server_user
from webdyno.host.workspace import Workspace
from webdyno.servers.layout import Deployment, lay_out, testbed_of
from webdyno.servers.prepared import site_view
from webdyno.servers.service_graph import resolve_services

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


@pytest.mark.parametrize("user", [None, ServerUser("nobody", 65534, 65534)])
def test_what_a_database_holds_is_nobody_elses_to_read(user: ServerUser | None) -> None:
    """Redis itself lets everybody read what it keeps."""
    site = Catalogue.load().site("db")
    testbed = Testbed().with_user(user)
    roles = resolve_services(site.services, 1)
    with Workspace() as workspace:
        view = site_view(site, workspace.path, workspace.path, {})
        deployment = Deployment(testbed, workspace, workspace.make_kept(), site, view)
        home = lay_out(roles, deployment).services["db"].home
        modes = [path.stat().st_mode & 0o777 for path in (home, home / "data")]
    assert modes == [0o700, 0o700]


@pytest.mark.parametrize(
    ("others", "mode", "group"), [([], 0o700, 7), ([9], 0o750, 9), ([8, 9], 0o755, 7)]
)
def test_who_runs_nothing_of_a_stack_gets_to_no_socket_of_it(
    tmp_path: Path, others: list[int], mode: int, group: int
) -> None:
    """But where programs of three users have to get into one folder."""
    users = [ServerUser(f"user {uid}", uid, uid) for uid in (7, *others)]
    (home := tmp_path / "home").mkdir(mode=0o700)
    hand_over(home, users[0], among=users)
    status = home.stat()
    assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (mode, 7, group)
