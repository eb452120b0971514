"""Two-level designs: which combinations of settings to measure to tell what each of them does.

All combinations of up to three settings; of more, fractions in which no setting's effect is mixed
up with another's alone (Box, Hunter and Hunter, "Statistics for Experimenters", 2005, chapter 6).
Treadmill (Zhang et al., ISCA 2016) found the settings behind tail latencies like that.
"""

from itertools import product
from math import prod

MOST_SETTINGS = 15
FULL = 3
"""So many settings have all of their combinations measured."""


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
