"""The catalogue: webdyno's own is right; users' own come on top; mistakes name file and line."""

from pathlib import Path

import pytest

from webdyno.definitions import Catalogue
from webdyno.model.mistake import Mistake

SERVICE = """\
title = "Mine"
protocol = "http"
start = ["{{ needs.binary }}"]
needs.binary = { command = ["mine"], apt = "mine" }
version = { command = ["mine", "-v"], pattern = "(.*)" }

[knobs.level]
type = "whole"
min = 1
max = 9
default = 5
help = "How much."
"""


def write(folder: Path, kind: str, name: str, text: str) -> Path:
    path = folder / kind / name / f"{kind.removesuffix('s')}.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_every_stack_of_the_catalogue_can_serve_some_site() -> None:
    catalogue = Catalogue.load()
    for stack in catalogue.stacks.values():
        assert stack.name == "redis" or catalogue.sites_for(stack)


def test_a_users_catalogue_comes_on_top(tmp_path: Path) -> None:
    write(tmp_path, "services", "mine", SERVICE)
    write(
        tmp_path,
        "stacks",
        "mine",
        'title = "t"\nserves = ["static"]\nfront = "m"\n[services.m]\nservice = "mine"\n'
        '[knobs.size]\nsets = ["m.level"]\ndefault = 7\n',
    )
    catalogue = Catalogue.load([tmp_path])
    exposed = catalogue.stack("mine").exposed_knobs()
    assert list(exposed) == ["size"]
    assert exposed["size"].knob.default == 7
    assert "nginx" in catalogue.stacks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SERVICE.replace("start =", "strat ="), r"service\.toml:3: unknown key strat; .* start"),
        (SERVICE.replace('type = "whole"', 'type = "hole"'), r"service\.toml:7: knobs\.level"),
        (SERVICE.replace("min = 1", 'min = "a"'), r"service\.toml:9: knobs\.level\.min should"),
        (SERVICE.replace('title = "Mine"\n', ""), "title is missing"),
        (SERVICE.replace('command = ["mine"], ', ""), r"service\.toml:4: .*command or file"),
    ],
)
def test_a_mistake_in_a_service(tmp_path: Path, text: str, says: str) -> None:
    write(tmp_path, "services", "mine", text)
    with pytest.raises(Mistake, match=says):
        Catalogue.load([tmp_path])


@pytest.mark.parametrize(
    ("service", "says"),
    [
        ('service = "ngnix"', r"stack\.toml:5: there is no service 'ngnix'; did you mean nginx"),
        (
            'service = "nginx"\nknobs.workers = 0',
            r"stack\.toml:4: knob workers should be between 1 and 1024",
        ),
        ('service = "nginx"\nlinks.php = "fpm"', r"stack\.toml:.*(no link|no role) "),
    ],
)
def test_a_mistake_in_a_stack(tmp_path: Path, service: str, says: str) -> None:
    head = 'title = "t"\nserves = ["static"]\nfront = "web"\n[services.web]\n'
    write(tmp_path, "stacks", "mine", head + service + "\n")
    with pytest.raises(Mistake, match=says):
        Catalogue.load([tmp_path])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"--catalog .*nowhere: there is no such folder"):
        Catalogue.load([tmp_path / "nowhere"])
