"""What speaks against an entry, by its files."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from league.entries import entry
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.launch.caller import Caller
from webdyno.league.entry import check_entry, remarks_on, unpinned

REQUIREMENTS = """\
# locked
flask==3.1.0 \\
    --hash=sha256:00
"""


def test_versions_that_are_open_are_named(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS + "gunicorn>=22\n")
    (tmp_path / "pom.xml").write_text("<version>[1,2)</version>")
    found = "\n".join(unpinned(tmp_path))
    assert "package.json has no lock file" in found
    assert "open: that of gunicorn" in found
    assert "pom.xml" in found


def test_versions_that_are_pinned_are_fine(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    assert list(unpinned(tmp_path)) == []


@pytest.mark.parametrize("name", ["axum", "uvicorn-fastapi", "express", "spring-boot", "php-nginx"])
def test_nothing_speaks_against_what_is_there(name: str) -> None:
    assert list(remarks_on(Catalogue.load().stack(name), is_taken=False)) == []


def test_all_that_lacks_is_said_at_once() -> None:
    stack = Catalogue.load().stack("axum").replace(language="", home="", serves=["static"])
    found = "\n".join(remarks_on(stack, is_taken=True))
    for words in ("of this name", "language", "home", "3 are the least"):
        assert words in found


def test_a_folder_without_a_stack_is_no_entry(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    with pytest.raises(UserError, match="has no stack"):
        check_entry(tmp_path, [], caller=None)  # type: ignore[arg-type]


OUTSIDE = "hvs.CAESI-token"


def caller(*, yes: bool) -> Caller:
    return Caller(lambda _: None, lambda _: nullcontext(), yes=yes)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("link", ["requirements.txt", "."])
def test_what_a_link_of_an_entry_leads_to_isnt_read(link: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/requirements.txt").write_text(OUTSIDE)
    mine = entry(tmp_path / "mine")
    program = mine / "services/python-http/program"
    if link == ".":
        program.symlink_to(tmp_path / "home")
    else:
        program.mkdir()
        (program / link).symlink_to(tmp_path / "home/requirements.txt")
    with (mine / "services/python-http/service.toml").open("a") as file:
        file.write('[build]\nprogram = "program"\ncommands = [["true"]]\n')
    with pytest.raises(UserError, match="leads out of") as refused:
        check_entry(mine, [], caller(yes=True))
    assert OUTSIDE not in str(refused.value)


def test_an_entry_is_used_only_after_a_yes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="isn't webdyno's own"):
        check_entry(entry(tmp_path / "mine"), [], caller(yes=False))
