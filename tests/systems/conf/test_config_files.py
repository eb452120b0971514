"""Files of configurations are read as their user may, within limits; templates are filled."""

import os
import time
from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.core.service import Line, Origin
from webdyno.host.users import ServerUser
from webdyno.systems.conf import configuration
from webdyno.systems.conf.config_files import (
    BRACED_OR_PLAIN,
    DEEPEST,
    MOST_FILES,
    ConfigFiles,
    Variables,
)
from webdyno.systems.conf.configuration import relocate
from webdyno.systems.conf.relocation import RelocationRequest

HERE = Origin("a.conf", 3)
AT = Origin("a.template", 1)
NOBODY = ServerUser("nobody", 65534, 65534)


def test_lines_know_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    first, second, _ = ConfigFiles().lines(file)
    assert first == Line("one", Origin(str(file), 1))
    assert second == Line("two", Origin(str(file), 2))


def test_what_is_no_regular_file_ends_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for what, says in (("/dev/zero", "no regular file"), (tmp_path / "pipe", "no regular file")):
        with pytest.raises(UserError, match=f"a.conf:3 includes {what}, which is {says}"):
            ConfigFiles().text(Path(what), HERE)
    with pytest.raises(UserError, match="is a directory"):
        ConfigFiles().text(tmp_path)
    with pytest.raises(UserError, match="No such file"):
        ConfigFiles().text(tmp_path / "none")


def test_there_are_limits_of_size_number_and_depth(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    with file.open("wb") as large:
        large.truncate(4_000_001)
    with pytest.raises(UserError, match="more than 4 MB"):
        ConfigFiles().text(file)
    with file.open("wb") as large:
        large.truncate(4_000_000)
    files = ConfigFiles()
    for _ in range(4):
        files.text(file, HERE)
    with pytest.raises(UserError, match="all files together"):
        files.text(file, HERE)
    file.write_text("")
    files = ConfigFiles()
    for _ in range(MOST_FILES):
        files.text(file, HERE)
    with pytest.raises(UserError, match="one file too many"):
        files.text(file, HERE)
    with pytest.raises(UserError, match="in a circle"):
        ConfigFiles().text(file, HERE, DEEPEST + 1)


def test_includes_without_files_are_known_afterwards(tmp_path: Path) -> None:
    files = ConfigFiles()
    assert files.files_of_include("conf.d/*.conf", [tmp_path], HERE) == []
    assert files.found_nothing == ["a.conf:3 includes conf.d/*.conf, and there is no such file"]
    wanted = RelocationRequest(Path("a.conf"), files=files)
    assert str(wanted.listens_nowhere()).startswith("a.conf listens nowhere for HTTP: a.conf:3 inc")


def test_includes_are_looked_for_in_each_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    for name in ("b.conf", "a.conf", ".hidden.conf"):
        (second / name).touch()
    files = ConfigFiles()
    assert files.files_of_include("a.conf", [first, second], HERE) == [second / "a.conf"]
    found = files.files_of_include("*.conf", [first, second], HERE)
    assert found == [second / "a.conf", second / "b.conf"]
    assert files.files_of_include("*.none", [first, second], HERE) == []
    with pytest.raises(UserError, match=rf"no {first}/none and no {second}/none"):
        files.files_of_include("none", [first, second], HERE)
    with pytest.raises(UserError, match="too many wildcards"):
        files.files_of_include("/*/*/*/*", [], HERE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads for somebody else")
def test_nobody_gets_what_only_root_may_read(open_folder: Path) -> None:
    secret = open_folder / "secret"
    secret.write_text("s3cr3t")
    secret.chmod(0o600)
    (open_folder / "link").symlink_to(secret)
    files = ConfigFiles(NOBODY)
    for name in ("secret", "link"):
        with pytest.raises(UserError, match="can't be read by nobody"):
            files.text(open_folder / name, HERE)
    assert files.text(secret) == "s3cr3t"  # root named it himself
    with pytest.raises(UserError, match="can't be read by nobody"):
        ConfigFiles(NOBODY, NOBODY).text(secret)
    secret.chmod(0o644)
    assert files.text(open_folder / "link", HERE) == "s3cr3t"
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    (private / "file").write_text("")
    with pytest.raises(UserError, match="can't be read by nobody"):
        files.text(private / "file", HERE)


def test_variables_are_filled_from_what_is_given() -> None:
    variables = Variables({"PORT": "8080"})
    assert variables.fill("listen ${PORT}; $PORT $host", AT) == "listen 8080; $PORT $host"
    filled = variables.fill("$PORT ${PORT} $own", AT, BRACED_OR_PLAIN, {"own"})
    assert filled == "8080 8080 $own"
    variables.demand_all()


def test_all_that_have_no_value_are_named_in_one_message() -> None:
    variables = Variables({})
    variables.fill("a\n${ONE} ${TWO}\n${ONE}", AT)
    variables.fill("${THREE}", Origin("b.conf", 7))
    with pytest.raises(UserError) as reported:
        variables.demand_all()
    for part in ("ONE (a.template:2)", "TWO (a.template:2)", "THREE (b.conf:7)", "--env TWO=VALUE"):
        assert part in str(reported.value)


def test_a_secret_does_not_get_into_a_configuration_that_is_kept() -> None:
    with pytest.raises(UserError, match="would be a secret"):
        Variables({"A": "${env:MINE}"}).fill("${A}", AT)


@pytest.mark.parametrize("begin", ["</IfModule", "<VirtualHost a", "<Directory a", "<Macro x"])
def test_lines_of_blanks_are_read_at_once(tmp_path: Path, begin: str) -> None:
    (file := tmp_path / "httpd.conf").write_text(f"Listen 80\n{begin}{' ' * 20_000}x\n")
    began = time.process_time()
    relocate("apache", RelocationRequest(file))
    assert time.process_time() - began < 1


def test_what_takes_for_ever_to_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "READ_WITHIN_CPU_S", 0.05)
    (file := tmp_path / "httpd.conf").write_text("Listen 80\n" + "RewriteRule / /x [L]\n" * 100_000)
    with pytest.raises(UserError, match=r"takes more than 0\.05 s to read"):
        relocate("apache", RelocationRequest(file))


def test_no_line_of_apache_goes_on_where_it_ended(tmp_path: Path) -> None:
    (file := tmp_path / "httpd.conf").write_text('Listen 80\nRewriteRule ^ /x "[\\ \nP ]"\n')
    with pytest.raises(UserError, match=r"httpd\.conf:2 ends in a backslash and a blank"):
        relocate("apache", RelocationRequest(file))
