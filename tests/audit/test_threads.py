"""Outputs from public threads: what is right is said of each, and nobody is falsely accused."""

from pathlib import Path

import pytest

from audit.texts import audited
from audit.threads import RIGHT

POSTED = Path(__file__).with_name("posted")


def test_each_output_has_its_answer() -> None:
    assert {path.stem for path in POSTED.iterdir()} == RIGHT.keys()


@pytest.mark.parametrize("name", RIGHT)
def test_a_posted_output_gets_the_right_answer(name: str) -> None:
    right = RIGHT[name]
    audit = audited((POSTED / f"{name}.txt").read_text(encoding="utf-8"))
    serious = {each.rule for each in audit.warnings if each.severity == "serious"}
    assert serious == right.serious, right.answer
    assert right.notes <= {each.rule for each in audit.warnings}, right.answer
    assert tuple(each.kind for each in audit.not_read) == right.not_read
