"""Each rule has an entry in docs/reference/warnings.md, each bound its derivation in method.md."""

import re
from pathlib import Path
from pkgutil import iter_modules

import pytest

from webdyno import validity
from webdyno.comparison.bias import CAUSES
from webdyno.comparison.capacity_rules import OWN_RULES
from webdyno.validity import SLOT_RULES, all_rules
from webdyno.validity.over_time import TRENDS

DOCS = Path(__file__).parents[2] / "docs"
WARNINGS = (DOCS / "reference/warnings.md").read_text(encoding="utf-8")
METHOD = (DOCS / "validation/method.md").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"^- (?P<names>`[^:]+): (?P<cause>.+?)\. (?P<effect>\*\*[A-Z].*?)\. (?P<fix>\S.*)$",
    re.MULTILINE,
)
OF_SLOTS, OF_SEARCHES = WARNINGS.split("\n## Capacity searches\n")


def entries(text: str) -> dict[str, tuple[str, str, str]]:
    """By rule: cause, effect, what to do."""
    found = {
        name: (line["cause"], line["effect"].lower(), line["fix"])
        for line in ENTRY.finditer(text)
        for name in line["names"].split("`")[1::2]
    }
    assert len(found) == sum(line["names"].count("`") // 2 for line in ENTRY.finditer(text))
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OF_SLOTS, {rule.name for rule in all_rules()}),
        (OF_SEARCHES, {rule.name for rule in OWN_RULES}),
    ],
    ids=["slots", "searches"],
)
def test_each_rule_has_an_entry_with_cause_effect_and_fix(text: str, names: set[str]) -> None:
    assert names <= set(entries(text))
    assert len(re.findall("^- `", text, re.MULTILINE)) == len([*ENTRY.finditer(text)])


@pytest.mark.parametrize("name", SLOT_RULES)
def test_the_entry_says_what_the_rule_does(name: str) -> None:
    _, does, _ = entries(OF_SLOTS)[name]
    rule = SLOT_RULES[name]
    assert ("bounded" in does) == rule.has_bias_bound
    assert ("lower bound" in does) == rule.censors
    assert ("refused" in does) == (not rule.has_bias_bound and not rule.censors)


@pytest.mark.parametrize("name", [rule.name for rule in all_rules()])
def test_a_rule_is_found_by_its_name(name: str) -> None:
    """The file that has it, and no other one, begins with what it is about and with its name."""
    named, written = set[str](), set[str]()
    for module in iter_modules(validity.__path__):
        text = (Path(validity.__path__[0]) / f"{module.name}.py").read_text(encoding="utf-8")
        _, docstring, code = text.split('"""', 2)
        named |= {module.name} if f"`{name}`" in docstring else set()
        written |= {module.name} if f'"{name}"' in code else set()
    assert len(named) == 1
    assert named <= written


def test_each_bound_is_derived() -> None:
    derived = METHOD.split("\n## Bias bounds\n")[1].split("\n## ")[0]
    for name in [*CAUSES, *(it.name for it in TRENDS), "send-delay"]:
        assert f"`{name}`" in derived, name
