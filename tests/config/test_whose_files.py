"""Catalogs and experiments' files that others may change are refused."""

import grp
import os
import pwd
import struct
from contextlib import nullcontext
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core import whose
from webdyno.core.errors import UserError
from webdyno.core.whose import ACCESS_LIST


@pytest.mark.parametrize("open_to_others", ["stacks", "sites/x.toml", "."])
def test_a_catalogue_that_others_may_change_is_refused(
    open_folder: Path, open_to_others: str
) -> None:
    for name in ("a", "services/b", "sites/x.toml", "stacks/c"):
        file = open_folder / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        if name != open_to_others:
            file.chmod(0o600)  # what is private hides nothing behind it
    Catalogue.load([open_folder])
    (open_folder / open_to_others).chmod(0o777)
    with pytest.raises(UserError, match=r"others may change .*copy the catalog"):
        Catalogue.load([open_folder])
    open_folder.chmod(0o700)
    if open_to_others != ".":
        with pytest.raises(UserError, match="others may change"):
            Catalogue.load([open_folder])


def test_what_others_cannot_get_to_is_theirs_to_change_by_no_right(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a checkout by GitLab's runner, whose umask is 0, in a container of an image.

    A closed folder keeps others from names alone, not from what they have open or a name of.
    """
    (folder := open_folder / "closed/catalog/experiments").mkdir(parents=True)
    (file := folder / "mine.toml").touch()
    for part in (folder.parent, folder, file):
        part.chmod(0o777)

    def load() -> None:
        Catalogue.load([folder.parent]).experiment_file(str(file))

    for mode in (0o755, 0o700):
        folder.parents[1].chmod(mode)
        with pytest.raises(UserError, match=rf"others may change .*\(chmod -R go-w {open_folder}"):
            load()
    monkeypatch.setattr("webdyno.core.whose.others_are_here", lambda: False)
    load()
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
        with pytest.raises(UserError, match="others may change"):
            load()


@pytest.mark.parametrize(
    ("namespace", "kind", "status", "others"),
    [
        (1, "overlay", "Name:\tsh\nUid:\t0\t0\t0\t0\n", False),
        (1, "overlay", "Name:\tsh\nUid:\t0\t0\t12345\t0\n", True),
        (1, "overlay", "Name:\tsshd\nUid:\t0\t0\t0\t0\n", True),
        (1, "ext4", "Name:\tsh\nUid:\t0\t0\t0\t0\n", True),
        (1, "ext4 rw 0 0\nu\f/\foverlay /mnt/\udcff fuse", "Name:\tsh\nUid:\t0\t0\t0\t0\n", True),
        (1, "overlay", "Name:\t\udcff\fb\nUid:\t0\t0\t0\t0\n", False),
        (whose.FIRST_PID_NAMESPACE, "overlay", "Name:\tsh\nUid:\t0\t0\t0\t0\n", True),
    ],
)
def test_nobody_else_is_in_a_container_of_ours(
    monkeypatch: pytest.MonkeyPatch, namespace: int, kind: str, status: str, *, others: bool
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    stat, read_bytes = Path.stat, Path.read_bytes

    def read(path: Path) -> bytes:
        if str(path) == "/proc/self/mounts":
            return os.fsencode(f"x / ext4 rw 0 0\nx / {kind} rw 0 0\nx /proc proc rw 0 0\n")
        return os.fsencode(status) if path.name == "status" else read_bytes(path)

    def looked(path: Path, **keys: bool) -> os.stat_result:
        found = stat(path, **keys)
        return (
            os.stat_result([found.st_mode, namespace, *found[2:]])
            if str(path) == "/proc/self/ns/pid"
            else found
        )

    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(Path, "stat", looked)
    whose.others_are_here.cache_clear()
    assert whose.others_are_here() is others
    whose.others_are_here.cache_clear()


def test_a_catalogue_that_a_list_opens_to_others_is_refused(open_folder: Path) -> None:
    (open_folder / "stacks").mkdir(mode=0o755)
    Catalogue.load([open_folder])
    owner, user, group, mask, other = 1, 2, 4, 16, 32  # of acl(5)
    entries = [(owner, 7, -1), (user, 7, 12345), (group, 5, -1), (mask, 7, -1), (other, 5, -1)]
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(open_folder / "stacks", ACCESS_LIST, struct.pack("<I", 2) + packed)
    except OSError:
        pytest.skip("this file system has no access control lists")
    with pytest.raises(UserError, match=r"others may change .*stacks"):
        Catalogue.load([open_folder])


def test_a_group_that_is_not_called_as_we_arehas_others(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of accounts (LDAP) needn't list them, as those of "domain users".

    Groups of the system itself have the members that are listed, as Debian's "staff" has none, but
    for "users", which may be everybody's first one.
    """
    (open_folder / "stacks").mkdir()
    (open_folder / "stacks").chmod(0o775)
    name = pwd.getpwuid(os.geteuid()).pw_name
    known = [(name, 0, True), ("domain users", 0, False), ("nobody", 0, False)]
    above = os.getegid() + 1
    known += [("staff", above, os.geteuid() == 0), ("users", above, False)]
    for called, of_people, is_ours in known:
        monkeypatch.setattr(whose, "FIRST_GROUP_OF_PEOPLE", of_people)
        monkeypatch.setattr(whose, "USERS", os.getegid() if called == "users" else 100)
        entry = grp.struct_group((called, "x", os.getegid(), []))
        monkeypatch.setattr(grp, "getgrgid", lambda _, entry=entry: entry)
        whose.has_others.cache_clear()
        with nullcontext() if is_ours else pytest.raises(UserError, match=r"may change .*stacks"):
            Catalogue.load([open_folder])
    assert whose.has_others(os.getegid(), of_root=False) is True  # it isn't called as we are
    whose.has_others.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_what_is_somebody_else_s_is_refused(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    (open_folder / "experiments").mkdir()
    file = open_folder / "experiments/mine.toml"
    file.touch()
    catalogue = Catalogue.load([open_folder])
    for named in ("mine", str(file)):
        assert catalogue.experiment_file(named).path == file
    os.chown(file, 12345, 12345)
    with pytest.raises(UserError, match=r"others may change .*mine\.toml, so what is run and read"):
        catalogue.experiment_file(str(file))
    with pytest.raises(UserError, match="others may change"):
        Catalogue.load([open_folder])
    os.chown(file, 0, pwd.getpwnam("nobody").pw_gid)
    file.chmod(0o664)
    with pytest.raises(UserError, match="others may change"):
        Catalogue.load([open_folder])
    os.chown(file, 12345, 12345)
    file.chmod(0o644)
    (open_folder / "his").mkdir()
    (link := open_folder / "his/bench.toml").symlink_to("/etc/hosts")
    os.chown(open_folder / "his", 12345, 12345)
    with pytest.raises(UserError, match=r"others may change .*his, so what is run"):
        catalogue.experiment_file(str(link))
    monkeypatch.setenv("SUDO_UID", "12345")
    assert Catalogue.load([open_folder]).experiment_file(str(file)).path == file


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_an_experiment_s_file_that_others_may_exchange_is_refused(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They put another one in its place, or something next to it that it runs."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    catalogue = Catalogue.load()
    (team := open_folder / "team").mkdir()
    (file := team / "bench.toml").touch()
    (link := open_folder / "link.toml").symlink_to("his/step.toml")
    (his := open_folder / "his").mkdir()
    (his / "step.toml").symlink_to(file)
    assert catalogue.experiment_file(str(file)).path == file
    assert catalogue.experiment_file(str(link)).path == link
    for part, mode in ((file, 0o1666), (file, 0o666), (team, 0o777)):
        before = part.stat().st_mode
        part.chmod(mode)
        for named in (file, link):
            with pytest.raises(UserError, match=f"others may change {part}, so what is run"):
                catalogue.experiment_file(str(named))
        part.chmod(0o1777 if part == team else before)
    assert catalogue.experiment_file(str(file)).path == file
    os.chown(his, 12345, 12345)  # a link of ours leads through his folder
    with pytest.raises(UserError, match=f"others may change {his}, so what is run"):
        catalogue.experiment_file(str(link))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_an_experiment_s_file_is_the_one_whose_owner_was_looked_at(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may exchange it does so between both, and puts it back."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    (file := open_folder / "bench.toml").touch()
    (his := open_folder / "his").write_text('title = "his"')
    os.chown(his, 12345, 12345)
    opens = os.open

    def exchanging(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = opens(path, flags, mode, dir_fd=dir_fd)
        if str(path) == file.name:
            his.replace(file)
        return descriptor

    monkeypatch.setattr(os, "open", exchanging)
    assert Catalogue.load().experiment_file(str(file)).data == {}
    assert file.read_text() == 'title = "his"'
