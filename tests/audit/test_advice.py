"""What the audit recommends can be typed: commands, flags, stacks, sites and paths exist."""

import re
from pathlib import Path

import pytest

from webdyno.audit import DOCUMENT_RULES, OUTPUT_RULES
from webdyno.config import Catalogue
from webdyno.core.registry import commands
from webdyno.interfaces.cli import app

ADVICE = {rule.instead for rule in OUTPUT_RULES} | {rule.instead for rule in DOCUMENT_RULES}
WHY = {rule.why for rule in OUTPUT_RULES} | {rule.why for rule in DOCUMENT_RULES}


@pytest.fixture(scope="module")
def load_flags() -> set[str]:
    whole = app()
    flags = whole["load"].assemble_argument_collection(default_parameter=whole.default_parameter)
    return {name for it in flags for name in it.names}


@pytest.mark.parametrize("advice", sorted(ADVICE))
def test_flags_exist(advice: str, load_flags: set[str]) -> None:
    known = load_flags | {"--site", "--path", "--time"}
    ours = re.sub(
        r"ab -t|-n comes|redis-benchmark prints all of it without -q|\bulimit -n", "", advice
    )
    assert set(re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", ours)) <= known


@pytest.mark.parametrize("advice", sorted(ADVICE))
def test_commands_stacks_sites_and_paths_exist(advice: str) -> None:
    catalogue = Catalogue.load()
    for command in re.findall(r"webdyno ([a-z]+)", advice):
        assert command in commands()
    for pair in re.findall(r"webdyno compare ([a-z-]+) ([a-z-]+)(?: --site ([a-z-]+))?", advice):
        stacks = [catalogue.stack(name) for name in pair[:2]]
        sites = [{site.name for site in catalogue.sites_for(stack)} for stack in stacks]
        assert sites[0] & sites[1]
        assert not pair[2] or pair[2] in sites[0] & sites[1]
    for path in re.findall(r"--path (\S+)", advice):
        assert path in {each for site in catalogue.sites.values() for each in site.paths}


def test_each_rule_is_in_the_docs_and_no_other() -> None:
    page = Path(__file__).parents[2] / "docs/reference/audit-rules.md"
    docs = page.read_text(encoding="utf-8")
    entries = re.findall(r"^- (`[^:]+`): ", docs.partition("\n## ")[0], re.MULTILINE)
    rules = {rule.name for rule in OUTPUT_RULES} | {rule.name for rule in DOCUMENT_RULES}
    assert {name for entry in entries for name in re.findall(r"`([\w-]+)`", entry)} == rules


def test_each_rule_says_why_in_sentences() -> None:
    assert all(text.endswith(".") for text in ADVICE | WHY)
