"""Where servers have their files: the first temporary directory that is fit for them."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ordinary_user import NOBODY, SYSTEM_PYTHON, needs_ordinary_user
from webdyno.core.errors import OperationError
from webdyno.core.whose import USERS
from webdyno.host import warden, workspace
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, hand_over, open_log, server_user
from webdyno.host.warden import remove_tree
from webdyno.host.workspace import LOCK, Workspace, home_folder, open_lock, others_running, sweep


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


def test_what_others_put_next_to_it_is_no_package_of_ours(place: Path) -> None:
    (place / "package.json").write_text('{"type": "module"}')
    before = os.umask(0o077)
    try:
        with Workspace() as workspace:
            above = [folder / "package.json" for folder in workspace.path.parents]
    finally:
        os.umask(before)
    nearest = next(file for file in above if file.exists())
    assert nearest == home_folder() / "package.json"
    assert nearest.read_text() == "{}\n"
    assert nearest.stat().st_mode & 0o004


@pytest.mark.parametrize("name", ["a folder", "a#b", "a;b", "a$b", "a'b"])
def test_a_folder_that_no_configuration_can_name_is_passed_over(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (place / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place / name))
    assert place not in home_folder().parents


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be given to somebody")
def test_root_without_capabilities_is_reported_which_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refused)
    with pytest.raises(OperationError, match=r"this root lacks capabilities.*CAP_CHOWN"):
        hand_over(tmp_path, ServerUser("nobody", 65534, 65534))


def test_one_that_others_may_not_enter_is_passed_over(place: Path) -> None:
    place.chmod(0o700)
    assert place not in home_folder().parents


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to a group")
def test_one_in_which_others_may_exchange_it_is_passed_over(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (team := place / "team").mkdir()
    (folder := team / "mine").mkdir()
    os.chown(team, -1, USERS)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert home_folder().parent == folder
    team.chmod(0o775)
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
    with pytest.raises(OperationError) as error:
        home_folder()
    assert f"no temporary directory is fit for servers: {place} {says}; /tmp {says};" in str(
        error.value
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
@pytest.mark.usefixtures("place")
def test_what_is_no_lock_is_never_waited_for(what: str) -> None:
    """Every start looks for the locks of killed ones."""
    with Workspace() as first:
        left = first.path.parent / "left"
        left.mkdir()
        if what == "pipe":
            os.mkfifo(left / LOCK)
        elif what == "link":
            (left / LOCK).symlink_to("/dev/zero")
        elif what == "folder":
            (left / LOCK).mkdir()
        with Workspace():
            assert not left.exists()
            assert first.path.exists()


@pytest.mark.timeout(20)
def test_a_pipe_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(OperationError, match="lock is no file; remove it"):
        open_lock(tmp_path / "lock")


@pytest.mark.usefixtures("place")
def test_a_workspace_stays_ours() -> None:
    with Workspace() as made:
        found = made.path.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (os.geteuid(), 0o711)


@pytest.mark.usefixtures("place")
def test_what_servers_say_there_is_nobody_elses_to_read() -> None:
    before = os.umask(0o022)
    try:
        with Workspace() as made:
            assert made.make_kept().stat().st_mode & 0o777 == 0o700
            log = made.path / "log"
            words, folder = ["echo", "password"], made.path
            assert not Testbed().run(words, cwd=folder, env={}, log=log, workspace=made, within_s=9)
            assert log.read_text() == "password\n"
            assert log.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_another_run_is_noticed_and_our_own_is_not(place: Path) -> None:
    script = "import webdyno.host.workspace as b; w = b.Workspace(); print(1, flush=True); input()"
    with Workspace():
        assert os.getpid() not in {run.pid for run in others_running()}
        environment = os.environ | {"TMPDIR": str(place)}
        with subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        ) as other:
            assert other.stdout
            other.stdout.readline()
            (found,) = (run for run in others_running() if run.pid == other.pid)
            assert "Workspace()" in found.command
            other.communicate("\n")
        assert other.pid not in {run.pid for run in others_running()}


def test_no_link_of_another_s_hides_other_runs(place: Path) -> None:
    """Anybody may have one in /tmp that can't be looked at."""
    for name in ("x", "webdyno-x"):
        (place / name).symlink_to("0" * 300)
    with Workspace() as made:
        (lock,) = (each for each in workspace._locks() if place in each.parents)
        assert lock == made.lock_path
        others_running()


def nested(folder: Path, depth: int) -> None:
    """Make folders in each other, deeper than any path may be long."""
    folder.mkdir()
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=inside)
        deeper = os.open("d", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
    os.close(inside)


def locked_away(folder: Path) -> None:
    """Make folders that nobody may write to, and one that nobody may read."""
    for mode, name in ((0o555, "read-only"), (0o000, "closed")):
        inner = folder / name / "inner"
        inner.mkdir(parents=True)
        (inner / "file").write_text("")
        inner.chmod(0o555)
        inner.parent.chmod(mode)
    folder.chmod(0o555)


def test_whatever_a_server_left_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("")
    left = tmp_path / "left"
    nested(left, 1_500)
    (left / "link").symlink_to(kept)
    (left / "broken").symlink_to("nowhere")
    os.mkfifo(left / "pipe")
    locked_away(left)
    remove_tree(left)
    assert not left.exists()
    assert (kept / "file").exists()
    remove_tree(left)
    (tmp_path / "link").symlink_to(kept)
    with pytest.raises(OSError, match="link"):
        remove_tree(tmp_path / "link")


@needs_ordinary_user
def test_an_ordinary_user_removes_folders_that_were_made_read_only(open_folder: Path) -> None:
    open_folder.chmod(0o777)
    left = open_folder / "left"
    left.mkdir()
    locked_away(left)
    for path in (left, *left.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    script = "import runpy, sys; runpy.run_path(sys.argv[1])['remove_tree'](sys.argv[2])"
    subprocess.run(
        [SYSTEM_PYTHON, "-I", "-S", "-c", script, warden.__file__, left],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        check=True,
    )
    assert not left.exists()


@pytest.mark.usefixtures("place")
def test_a_workspace_with_deep_folders_is_removed_and_so_is_one_that_was_left() -> None:
    with Workspace() as made:
        nested(made.path / "web", 1_500)
        left = made.path.parent / "left"
        nested(left, 1_500)
        with Workspace():
            assert not left.exists()
    assert not made.path.exists()


@pytest.mark.usefixtures("place")
def test_what_cannot_be_removed_is_reported_and_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    with Workspace() as made:
        left = made.path.parent / "left"
        left.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(workspace, "remove_tree", fails)
            (fault,) = sweep()
            assert fault.startswith(f"{left}, left by an earlier run, can't be removed: Operation")
            Workspace().remove()
        assert sweep() == []


@pytest.mark.usefixtures("place")
def test_what_another_run_removes_at_the_same_time_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Workspace() as made:
        left = made.path.parent / "left"
        (left / "folder").mkdir(parents=True)
        empty = warden._empty

        def race(top: int) -> None:
            empty(top)
            left.rmdir()

        monkeypatch.setattr(warden, "_empty", race)
        assert sweep() == []
        monkeypatch.undo()
    assert not left.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make another one's folder")
@pytest.mark.parametrize("what", ["folder", "link"])
def test_a_place_where_another_user_took_our_name_is_passed_over(place: Path, what: str) -> None:
    taken = place / f"webdyno-{os.geteuid()}"
    if what == "folder":
        taken.mkdir()
        os.chown(taken, 65534, 65534)
    else:
        taken.symlink_to(place)
    assert place not in home_folder().parents


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_place_that_the_servers_user_can_change_is_passed_over(place: Path) -> None:
    user = server_user()
    assert user
    os.chown(place, user.uid, user.gid)
    assert user.may_exchange(place / "not/there/yet") == place
    assert place not in home_folder().parents
    os.chown(place, 0, 0)
    place.chmod(0o777)
    assert place not in home_folder().parents
    place.chmod(0o1777)
    assert place in home_folder().parents


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_log_is_a_file_of_its_own(tmp_path: Path) -> None:
    user = ServerUser("nobody", 65534, 65534)
    theirs, link, hard, pipe = (tmp_path / name for name in ("theirs", "link", "hard", "pipe"))
    theirs.write_text("root's own")
    link.symlink_to(theirs)
    hard.hardlink_to(theirs)
    os.mkfifo(pipe)
    (empty := tmp_path / "empty").touch()
    os.chown(empty, 12345, 12345)
    for path in (theirs, link, hard, pipe, empty):
        with pytest.raises((OperationError, OSError)):
            open_log(path, user)
    assert theirs.stat().st_uid == 0
    for _ in range(2):
        with open_log(tmp_path / "log", user) as log:
            log.write(b"line")
    assert (tmp_path / "log").stat().st_uid == user.uid
