"""Files of sites."""

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.stack.site_files import made_text, prepare_site


@given(st.integers(0, 5000))
def test_made_up_text_has_its_length(size: int) -> None:
    text = made_text("x", size)
    assert len(text) == size
    assert made_text("x", 5000).startswith(text[:-1])


def test_the_static_site_is_what_its_definition_says() -> None:
    site = Catalogue.load().site("static")
    root = prepare_site(site, Bench()).root
    for path, page in site.paths.items():
        body = (root / path.lstrip("/")).read_bytes()
        assert page.matches(200, body)
    sizes = {path: page.body_bytes for path, page in site.paths.items()}
    assert sizes == {
        "/hello.txt": 13,
        "/100.txt": 100,
        "/robots.txt": 204,
        "/100KB.txt": 102_400,
        "/1MB.txt": 1_048_576,
    }
    assert hashlib.sha256(b"Hello, World!").hexdigest() == site.page("/hello.txt").body_sha256


def test_a_site_is_made_once_and_anew_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(_open_folder()))
    try:
        folder = tmp_path / "sites" / "mine"
        (folder / "root").mkdir(parents=True)
        (folder / "root" / "a.txt").write_text("one")
        (folder / "site.toml").write_text('title = "t"\nneeds = ["static"]\n[paths."/a.txt"]\n')
        site = Catalogue.load([tmp_path]).site("mine")
        first = prepare_site(site, Bench()).root
        assert prepare_site(site, Bench()).root == first
        assert (first / "a.txt").read_text() == "one"
        (folder / "root" / "a.txt").write_text("two")
        second = prepare_site(site, Bench()).root
        assert second != first
        assert (second / "a.txt").read_text() == "two"
    finally:
        shutil.rmtree("/tmp/webdyno-test-sites")  # noqa: S108


def _open_folder() -> Path:
    folder = Path("/tmp/webdyno-test-sites")  # noqa: S108 (pytest's own may not be entered by all)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    return folder
