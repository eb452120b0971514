"""The tables of docs/method.md: one row for each rule, a derivation for each bound."""

from pathlib import Path

import pytest

from webdyno.judge.bias import CAUSES
from webdyno.judge.validity import SLOT_RULES, all_rules
from webdyno.judge.validity.over_time import TRENDS

METHOD = (Path(__file__).parents[3] / "docs/method.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text below a heading."""
    return METHOD.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows() -> dict[str, list[str]]:
    """By rule: what the table says of it."""
    lines = [line for line in section("Validity rules").splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found = {first.split("`")[1]: rest for first, *rest in cells}
    assert len(found) == len(lines)
    return found


def test_each_rule_has_a_row_with_cause_what_is_done_and_what_remains() -> None:
    assert {rule.name for rule in all_rules()} <= set(rows())
    for name, said in rows().items():
        assert len(said) == 3, name
        assert all(said), name


@pytest.mark.parametrize("name", SLOT_RULES)
def test_the_row_says_what_the_rule_does(name: str) -> None:
    _, does, _ = rows()[name]
    rule = SLOT_RULES[name]
    assert ("bounds" in does) == rule.bounded
    assert ("lower bound" in does) == rule.censors
    assert ("refuses" in does) == (not rule.bounded and not rule.censors)


def test_each_bound_is_derived() -> None:
    derived = section("How far a disturbance can have moved a metric")
    for name in [*(cause.name for cause in CAUSES), *(it.name for it in TRENDS), "send-lag"]:
        assert f"`{name}`" in derived, name
