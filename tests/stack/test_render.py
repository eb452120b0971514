"""Templates: mistakes in them name file and line."""

from pathlib import Path

import pytest

from webdyno.model.mistake import Mistake
from webdyno.stack.render import Renderer

from .test_roles import service


def renderer(folder: Path, **context: object) -> Renderer:
    return Renderer(service("mine").model_copy(update={"folder": folder}), context)


def test_words_that_come_out_empty_are_left_out(tmp_path: Path) -> None:
    words = renderer(tmp_path, on=False, n=3).words(["a", "{{ '-x' if on }}", "-n{{ n }}"])
    assert words == ["a", "-n3"]


def test_an_unknown_name_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.conf.j2").write_text("one\ntwo {{ knobs.nope }}\n")
    with pytest.raises(Mistake, match=r"x\.conf\.j2:2: .*no attribute 'nope'"):
        renderer(tmp_path, knobs={"a": 1}).file("x.conf.j2")


def test_a_broken_template_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.conf.j2").write_text("one\n\n{% if %}\n")
    with pytest.raises(Mistake, match=r"x\.conf\.j2:3: "):
        renderer(tmp_path).file("x.conf.j2")


def test_a_mistake_in_service_toml_shows_the_template(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"service\.toml: 'nope' is undefined in '\{\{ nope \}\}'"):
        renderer(tmp_path).text("{{ nope }}")
