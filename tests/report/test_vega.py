"""The script of all pages: bundled once, then kept."""

from pathlib import Path

import pytest
import vl_convert

from webdyno.report.vega import vega_script


def bundled() -> str:
    """The script as a process of its own would get it."""
    vega_script.cache_clear()
    return vega_script()


def test_it_is_bundled_once_for_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = bundled()
    assert "window.vegaEmbed" in script
    assert "</script" not in script
    monkeypatch.delattr(vl_convert, "javascript_bundle")
    assert bundled() == script
    assert len(list((tmp_path / "webdyno").iterdir())) == 1


def test_without_a_folder_to_keep_it_in_there_is_one_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "window.vegaEmbed" in bundled()
