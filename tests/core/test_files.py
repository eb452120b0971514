"""Files are written whole or not at all, and what can't be is reported in one way."""

import os
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import read_named, replacing, write_whole
from webdyno.core.whose import is_others_to_change, opened


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "it"
    write_whole(file, "first")
    with pytest.raises(ZeroDivisionError), replacing(file) as unfinished:
        unfinished.write_text("half of it, up to " + str(1 / unfinished.write_text("")))
    assert [(it.name, it.read_text()) for it in tmp_path.iterdir()] == [("it", "first")]


def test_half_a_character_costs_no_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "it", "a\ud800\r\n")
    assert (tmp_path / "it").read_bytes() == b"a\\ud800\r\n"


def test_what_can_not_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match=r"gone/it: can't be written: No such file.*; fix it$"):
        write_whole(tmp_path / "gone/it", "text", "; fix it")


def test_what_can_not_be_read_is_named_after_its_place(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"12345")
    for name, said in (
        ("gone", r"a\.toml:3: .*gone: there is no such file"),
        ("a\0b", "a.toml:3: .*can't be read: embedded null"),
        (".", r"a\.toml:3: .* is not a regular file"),
        ("large", r"a\.toml:3: .*large is larger than"),
        ("large/it", r"a\.toml:3: .*can't be read: Not a directory"),
    ):
        with pytest.raises(UserError, match=said):
            read_named(tmp_path / name, 4, "a.toml:3")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give links away")
def test_a_link_of_another_user_leads_to_no_file(tmp_path: Path) -> None:
    """It may lead to a file of the caller's by the time that it is read."""
    (tmp_path / "key").write_text("mine")
    (link := tmp_path / "payload").symlink_to("key")
    assert read_named(link, 9) == b"mine"
    os.chown(link, 4321, 4321, follow_symlinks=False)
    with pytest.raises(UserError, match=r"a.toml:3: .*payload: .*a link of user 4321's to key"):
        read_named(link, 9, "a.toml:3")


def test_whose_a_file_is_that_is_not_there_nobody_knows(tmp_path: Path) -> None:
    """He could take it away while that is asked, and bring it back."""
    (tmp_path / "circle").symlink_to("circle")
    for name in ("gone", "circle"):
        with pytest.raises(OSError, match=name), opened(tmp_path / name):
            pass
    assert is_others_to_change(tmp_path / "gone")
