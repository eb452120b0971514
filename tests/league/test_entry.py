"""What speaks against an entry, by its files."""

from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
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
    assert "gunicorn>=22" in found
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
