"""Copies that a run keeps of a catalogue are as closed as that is, and all of it is from there."""

import stat
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.measure.repeat import keep_for_repeating

SERVICE = """
title = "Mine"
protocol = "http"
files."own.conf" = "own.conf.j2"
files."other.conf" = "shared/other.conf.j2"
start = ["sh"]
"""
STACK = 'title = "t"\nserves = ["static"]\nfront = "m"\n[services.m]\nservice = "mine"\n'


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    files = {
        "services/mine/service.toml": SERVICE,
        "services/mine/own.conf.j2": "password",
        "services/shared/other.conf.j2": "password",
        "stacks/mine/stack.toml": STACK,
    }
    for name, text in files.items():
        path = tmp_path / "catalog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    return Catalogue.load([tmp_path / "catalog"])


EXPERIMENT = Experiment.model_validate(
    {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": {"a": {"stack": "mine"}, "b": {"stack": "nginx"}},
    }
)


def test_what_is_closed_stays_closed(catalogue: Catalogue, tmp_path: Path) -> None:
    keep_for_repeating(tmp_path / "run", EXPERIMENT, catalogue)
    for name in ("mine/own.conf.j2", "shared/other.conf.j2"):
        copy = tmp_path / "run/catalog/services" / name
        assert copy.read_text() == "password"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_what_two_variants_take_from_a_neighbour_is_kept_once(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    same = {"a": {"stack": "mine"}, "b": {"stack": "mine"}}
    experiment = Experiment.model_validate({**EXPERIMENT.model_dump(), "variants": same})
    keep_for_repeating(tmp_path / "run", experiment, catalogue)
    assert (tmp_path / "run/catalog/services/shared/other.conf.j2").read_text() == "password"


@pytest.mark.parametrize("linked", ["services/shared", "services/shared/other.conf.j2"])
def test_no_link_leads_elsewhere(catalogue: Catalogue, tmp_path: Path, linked: str) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "catalog" / linked
    link.rename(elsewhere)
    link.symlink_to(elsewhere)
    with pytest.raises(UserError, match="leads out of"):
        keep_for_repeating(tmp_path / "run", EXPERIMENT, catalogue)
