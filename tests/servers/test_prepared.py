"""Files of sites."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.core.paths import spell_out
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser
from webdyno.servers.prepared import made_text, prepare_site


@given(st.integers(0, 5000))
def test_made_up_text_has_its_length(size: int) -> None:
    text = made_text("x", size)
    assert len(text) == size
    assert made_text("x", 5000).startswith(text[:-1])


def test_the_static_site_is_what_its_definition_says() -> None:
    site = Catalogue.load().site("static")
    prepared = prepare_site(site, Testbed())
    prepared.release()
    root = prepared.root
    for written, page in site.paths.items():
        for path in spell_out(written):
            assert page.matches(200, (root / path.lstrip("/")).read_bytes())
    sizes = {path: page.body_bytes for path, page in site.paths.items()}
    assert sizes == {
        "/hello.txt": 13,
        "/100.txt": 100,
        "/robots.txt": 204,
        "/100KB.txt": 102_400,
        "/1MB.txt": 1_048_576,
        "/many/{1..2000}.txt": 4096,
    }
    assert site.page("/many/2000.txt").body_bytes == 4096
    assert site.page("/many/2001.txt").body_bytes is None
    assert hashlib.sha256(b"Hello, World!").hexdigest() == site.page("/hello.txt").body_sha256


def test_a_site_is_made_once_and_again_when_it_changed(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    folder = tmp_path / "sites" / "mine"
    (folder / "root").mkdir(parents=True)
    (folder / "root" / "a.txt").write_text("one")
    (folder / "site.toml").write_text(
        'title = "t"\nneeds = ["static"]\n[paths."/a.txt"]\n'
        '[files]\n"many/{n}.txt" = { text = "x", count = 3 }\n'
    )
    site = Catalogue.load([tmp_path]).site("mine")
    first = prepare_site(site, Testbed())
    again = prepare_site(site, Testbed())  # both variants of a duel have the same site
    assert again == first
    assert (first.root / "a.txt").read_text() == "one"
    assert sorted(path for path, _ in first.files()) == [
        "/a.txt",
        "/many/1.txt",
        "/many/2.txt",
        "/many/3.txt",
    ]
    (folder / "root" / "a.txt").write_text("two")
    second = prepare_site(site, Testbed())
    assert second != first
    assert (second.root / "a.txt").read_text() == "two"
    for prepared in (first, again, second):
        prepared.release()


def test_a_site_s_copy_is_closed_to_whom_no_server_runs_as(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files may be, such as those with passwords."""
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    (folder := tmp_path / "sites/mine/app").mkdir(parents=True)
    (folder / "config.py").write_text("PASSWORD = 1")
    (folder / "config.py").chmod(0o600)
    (folder.parent / "site.toml").write_text('title = "t"\nneeds = ["static"]\n')
    site = Catalogue.load([tmp_path]).site("mine")
    testbed = Testbed().with_user(None)
    prepared = prepare_site(site, testbed)
    prepared.release()
    assert ServerUser("another", 12345, 12345).kept_out_by(prepared.app) == prepared.folder
    prepared.folder.chmod(0o755)  # as an older webdyno left it
    prepare_site(site, testbed).release()
    assert ServerUser("another", 12345, 12345).kept_out_by(prepared.app) == prepared.folder
    prepare_site(site, testbed.with_user(user := ServerUser("servers", 12345, 12345))).release()
    assert user.may_read(prepared.app / "config.py")


def test_old_files_are_swept_away_unless_they_are_in_use(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    catalogue = Catalogue.load()
    used = prepare_site(catalogue.site("static"), Testbed())
    unused = prepare_site(catalogue.site("hello-php"), Testbed())
    unused.release()
    for prepared in (used, unused):
        os.utime(prepared.folder, (0, 0))
    spin = prepare_site(catalogue.site("spin"), Testbed())
    assert used.folder.exists()
    assert not unused.folder.exists()
    used.release()
    spin.release()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            'setup = [["sh", "-c", "echo the reason; exit 3"]]',
            "can't be set up: exit code 3\n    the reason",
        ),
        (
            'requires.it = { file = ["/no/such.so"], apt = "php-it" }',
            "there is no file /no/such.so; on Debian and Ubuntu: apt-get install php-it",
        ),
    ],
)
def test_a_site_that_cannot_be_made_says_why(tmp_path: Path, line: str, says: str) -> None:
    folder = tmp_path / "sites" / "mine"
    folder.mkdir(parents=True)
    (folder / "site.toml").write_text(f'title = "t"\nneeds = ["static"]\n{line}\n')
    site = Catalogue.load([tmp_path]).site("mine")
    with pytest.raises(OperationError) as error:
        prepare_site(site, Testbed())
    assert says in str(error.value)


def test_mediawikis_password_stands_in_no_command_line(tmp_path: Path) -> None:
    """Everybody can read those."""
    app = Catalogue.load().sites["mediawiki"].folder / "app"
    (tmp_path / "LocalSettings.php").write_text("")
    (php := tmp_path / "php").write_text(
        '#!/bin/sh\necho "$@" >>said\nfor word; do case $word in --passfile=*) cat "${word#*=}" '
        ">told;; esac; done\n"
    )
    php.chmod(0o755)
    given = dict.fromkeys(("SITE_ROOT", "SITE_STATE"), str(tmp_path))
    given |= {"SITE_APP": str(app), "SECRET": "s3cret", "PATH": os.environ["PATH"]}
    subprocess.run(["sh", str(app / "install.sh"), str(php)], env=given, check=True)
    assert (tmp_path / "told").read_text() == "s3cret"
    kept = [
        each.name for each in tmp_path.iterdir() if each.is_file() and "s3c" in each.read_text()
    ]
    assert kept == ["told"]
