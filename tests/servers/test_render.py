"""Templates: filled in apart; mistakes in them name file and line; none goes on for ever."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.host.users import server_user
from webdyno.servers import render
from webdyno.servers.render import fill_in
from webdyno.servers.templates import Job, RenderedJob


def filled(
    folder: Path, texts: Mapping[str, object], *files: str, **context: object
) -> RenderedJob:
    job = Job(texts, folder / "service.toml", context, {name: name for name in files}, folder)
    return fill_in([job], server_user())[0]


def test_words_that_come_out_empty_are_excluded(tmp_path: Path) -> None:
    texts = {"start": ["a", "{{ '-x' if on }}", "-n{{ n }}"]}
    assert filled(tmp_path, texts, on=False, n=3).words("start") == ["a", "-n3"]


def test_nesting_stays(tmp_path: Path) -> None:
    texts = {"modules": {"PHP": ["{{ n }}"]}, "initialise": [["{{ n }}", ""]]}
    expected = {"modules": {"PHP": ["3"]}, "initialise": [["3", ""]]}
    assert filled(tmp_path, texts, n=3).texts == expected


def test_a_neighbours_template_can_be_used(tmp_path: Path) -> None:
    for name, text in (("mine/a.j2", "{% include 'b.j2' %}!"), ("mine/b.j2", "b"), ("o/c.j2", "c")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert filled(tmp_path / "mine", {}, "a.j2", "o/c.j2").files == {"a.j2": "b!", "o/c.j2": "c"}


def test_an_unknown_name_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.conf.j2").write_text("one\ntwo {{ settings.nope }}\n")
    with pytest.raises(UserError, match=r"x\.conf\.j2:2: .*no attribute 'nope'"):
        filled(tmp_path, {}, "x.conf.j2", settings={"a": 1})


def test_a_broken_template_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.conf.j2").write_text("one\n\n{% if %}\n")
    with pytest.raises(UserError, match=r"x\.conf\.j2:3: "):
        filled(tmp_path, {}, "x.conf.j2")


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.conf\.j2: .*x\.conf\.j2"):
        filled(tmp_path, {}, "x.conf.j2")


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ nope }}", "'nope' is undefined in '{{ nope }}'"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{{ 'a'.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"),
        ("{{ '\\0' }}", "NUL"),
    ],
)
def test_a_mistake_in_service_toml_shows_the_template(
    tmp_path: Path, template: str, says: str
) -> None:
    with pytest.raises(UserError) as error:
        filled(tmp_path, {"start": [template]})
    assert str(error.value).startswith(f"{tmp_path}/service.toml: ")
    assert says in str(error.value)


ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", [ENDLESS, "{{ 9 ** (9 ** 9) }}", "{{ 'a' * 10 ** 11 }}"])
def test_what_takes_too_much_is_refused(
    tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "CPU_S", 1)
    (tmp_path / "x.conf.j2").write_text(template)
    with pytest.raises(UserError, match=r"x\.conf\.j2:?1?: (this template takes too much|Memory)"):
        filled(tmp_path, {}, "x.conf.j2")


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.conf.j2").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match="leads out of"):
        filled(tmp_path, {}, "x.conf.j2")
