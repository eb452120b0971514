"""What comes back from the servers' user is copied, and nothing leads out of the copy."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError
from webdyno.host.copies import copy_readable, take_back, unpack
from webdyno.host.users import hand_over, make_private, server_user


def archive(*members: tuple[str, bytes, str]) -> io.BytesIO:
    """Make an archive of (name, type, goal of a link)."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        for name, kind, goal in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, goal, 0o6777
            member.size = 4 if kind == tarfile.REGTYPE else 0
            file.addfile(member, io.BytesIO(b"text") if member.size else None)
    made.seek(0)
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return make_private(tmp_path / "target")


@pytest.mark.parametrize(
    "member",
    [
        ("../out", tarfile.REGTYPE, ""),
        ("/tmp/webdyno-out", tarfile.REGTYPE, ""),  # noqa: S108
        ("a/../../out", tarfile.DIRTYPE, ""),
        ("pipe", tarfile.FIFOTYPE, ""),
        ("disk", tarfile.BLKTYPE, ""),
        ("hard", tarfile.LNKTYPE, "/etc/shadow"),
    ],
)
def test_an_archive_with_a_trick_in_it_is_refused(
    target: Path, member: tuple[str, bytes, str]
) -> None:
    with pytest.raises(tarfile.TarError):
        unpack(archive(member), target, links=True)
    assert list(target.iterdir()) == []


def test_no_file_is_written_through_a_link(target: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    tricks = archive(("link", tarfile.SYMTYPE, str(outside)), ("link/file", tarfile.REGTYPE, ""))
    with pytest.raises(OSError, match="link"):
        unpack(tricks, target, links=True)
    assert list(outside.iterdir()) == []


def test_no_link_gets_to_where_we_go_on_writing(target: Path) -> None:
    """A base is added to by us; whoever reads it for us may be made to send what isn't there."""
    with pytest.raises(tarfile.TarError):
        unpack(archive(("link", tarfile.SYMTYPE, "/etc")), target, links=False)


def test_rights_of_the_file_system_are_not_taken_over(target: Path) -> None:
    unpack(archive(("file", tarfile.REGTYPE, "")), target, links=True)
    assert (target / "file").stat().st_mode & 0o7777 == 0o777
    assert (target / "file").stat().st_uid == os.geteuid()


def test_a_tree_comes_back_as_it_was(target: Path, open_folder: Path) -> None:
    source = make_private(open_folder / "source")
    (source / "inner").mkdir()
    (source / "inner/zeros").write_bytes(bytes(3 << 20))
    (source / "inner/text").write_bytes(b"text" + bytes(2 << 20) + b"end")
    (source / "link").symlink_to("/etc/hostname")
    (source / "inner/text").chmod(0o640)
    os.utime(source / "inner/text", (1e9, 1e9))
    hand_over(source, server_user())
    take_back(source, target, server_user())
    for name in ("zeros", "text"):
        copy, original = target / "inner" / name, source / "inner" / name
        assert copy.read_bytes() == original.read_bytes()
        assert copy.stat().st_mode == original.stat().st_mode
        assert int(copy.stat().st_mtime) == int(original.stat().st_mtime)
        assert copy.stat().st_uid == os.geteuid()
    assert (target / "link").readlink() == Path("/etc/hostname")
    assert (target / "inner/zeros").stat().st_blocks < 100


def test_a_pipe_is_refused(target: Path, open_folder: Path) -> None:
    source = make_private(open_folder / "source")
    os.mkfifo(source / "pipe")
    hand_over(source, server_user())
    with pytest.raises(OperationError, match="pipe is no file, folder or link"):
        take_back(source, target, server_user())


def test_what_is_closed_to_others_is_not_opened_to_them(target: Path, open_folder: Path) -> None:
    """A copy is for everybody, and who calls may be anybody."""
    (secret := open_folder / "secret").write_text("mine")
    (base := open_folder / "base").mkdir()
    (base / "inner").mkdir(mode=0o700)
    (base / "inner/file").write_text("mine")
    (base / "link").symlink_to("inner/file")
    (base / "group").write_text("ours")
    (base / "group").chmod(0o640)
    (base / "public").write_text("all")
    secret.chmod(0o600)
    (base / "far").symlink_to(secret)
    copy_readable(base, target, None, [])
    assert [path.name for path in target.iterdir()] == ["public"]
    open_folder.chmod(0o700)
    with pytest.raises(OperationError, match="base is closed to other users"):
        copy_readable(base, target, None, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_only_root_may_read_stays_out(target: Path, open_folder: Path) -> None:
    (open_folder / "public").write_text("all")
    (open_folder / "secret").write_text("root")
    (open_folder / "secret").chmod(0o600)
    (open_folder / "link").symlink_to(open_folder / "public")
    (open_folder / "nowhere").symlink_to(open_folder / "nothing")
    (open_folder / "left-out").write_text("x")
    copy_readable(open_folder, target, server_user(), ["left-out"])
    assert sorted(path.name for path in target.iterdir()) == ["link", "public"]
    assert (target / "link").read_text() == "all"
    assert not (target / "link").is_symlink()
