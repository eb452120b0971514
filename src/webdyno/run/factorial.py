"""Which settings make two variants differ: others have some as in the one, some as in the other.

All combinations of up to three settings; of more, fractions in which no setting's effect is mixed
up with another's alone (Box, Hunter and Hunter, "Statistics for Experimenters", 2005, chapter 6).
Treadmill (Zhang et al., ISCA 2016) found the settings behind tail latencies like that.
"""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from webdyno.definitions.validation import shown_value
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment
from webdyno.model.explain import Design
from webdyno.model.quantities import memory_words
from webdyno.model.setting import SettingValue
from webdyno.model.variant import Variant

UNSET = "its default"
LONGEST_NAME = 60
MOST_SETTINGS = 15
FULL = 3
"""So many settings have all of their combinations measured."""


def factorial_experiment(one: str, other: str, experiment: Experiment) -> Experiment:
    """Give the experiment that tells which of two variants' settings make their difference.

    Raise UserError where they differ in nothing, in too much, or not in settings alone.
    """
    before, after = experiment.variants[one], experiment.variants[other]
    _check(one, other, before, after)
    changes = _changes(before, after)
    if not 1 <= len(changes) <= MOST_SETTINGS:
        raise UserError(
            f"{one} and {other} differ in {len(changes)} settings; 1 to {MOST_SETTINGS} can be "
            "separated"
        )
    names = list(changes)
    variants, levels = dict[str, Variant](), dict[str, list[bool]]()
    for number, row in enumerate(two_level_design(len(names))):
        changed = [name for name, on in zip(names, row, strict=True) if on]
        variant = f"{one} with {', '.join(changed)}" if changed else one
        variant = variant if len(variant) <= LONGEST_NAME else f"{one}, combination {number}"
        variants[variant] = _with(before, after, changed)
        levels[variant] = list(row)
    words = [f"{name}: {before_} → {after_}" for name, (before_, after_) in changes.items()]
    return experiment.derived(
        f"Which settings make {other} differ from {one}",
        f"What do {', '.join(names)} do to {one}?",
        variants,
        design=Design(settings=words, levels=levels),
    )


def _check(one: str, other: str, before: Variant, after: Variant) -> None:
    for key in ("stack", "site", "paths", "load", "testbed"):
        if getattr(before, key) != getattr(after, key):
            raise UserError(
                f"{one} and {other} differ in their {key}, not in settings of one stack alone"
            )


def _changes(before: Variant, after: Variant) -> dict[str, tuple[str, str]]:
    """Give what differs, by name, in words: what it is in the one, and in the other."""
    settings = sorted({*before.settings, *after.settings})
    found = {
        setting: (_shown(before.settings, setting), _shown(after.settings, setting))
        for setting in settings
        if before.settings.get(setting) != after.settings.get(setting)
    }
    if before.memory != after.memory:
        found["memory"] = (_memory(before), _memory(after))
    if before.cpus != after.cpus:
        found["cpus"] = (f"{before.cpus or 'all'}", f"{after.cpus or 'all'}")
    return found


def _shown(settings: Mapping[str, SettingValue], setting: str) -> str:
    return shown_value(settings[setting]) if setting in settings else UNSET


def _memory(variant: Variant) -> str:
    return memory_words(variant.memory) if variant.memory else "no limit"


def _with(before: Variant, after: Variant, changed: list[str]) -> Variant:
    """Give the one variant with what is named as in the other."""
    settings = dict(before.settings)
    update: dict[str, Any] = {"settings": settings}
    for name in changed:
        if (
            name in {"memory", "cpus"}
            and name not in after.settings
            and name not in before.settings
        ):
            update[name] = getattr(after, name)
        elif name in after.settings:
            settings[name] = after.settings[name]
        else:
            settings.pop(name, None)
    return before.replace(**update)


def two_level_design(settings: int) -> list[tuple[bool, ...]]:
    """Give the rows of a design, the first with no setting changed, for 1 to 15 settings.

    The basic settings have all combinations; each further one changes with the product of some of
    them, the largest products first, as their effects are the likeliest to be small.
    """
    if not 1 <= settings <= MOST_SETTINGS:
        raise ValueError(f"a design has 1 to {MOST_SETTINGS} settings, not {settings}")
    basic = min(settings, FULL)
    while 2**basic - 1 < settings:
        basic += 1
    others = sorted(
        (chosen for chosen in product((False, True), repeat=basic) if sum(chosen) > 1),
        key=sum,
        reverse=True,
    )[: settings - basic]
    rows = []
    for levels in product((False, True), repeat=basic):
        signs = [1 if level else -1 for level in levels]
        products = [
            prod(sign for sign, taken in zip(signs, chosen, strict=True) if taken)
            # So that the row of no basic setting changes none of the others either.
            * (-1) ** (sum(chosen) + 1)
            > 0
            for chosen in others
        ]
        rows.append((*levels, *products))
    return rows
