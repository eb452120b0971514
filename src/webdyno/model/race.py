"""Races of three arms or more, which arms leave while they go on."""

from typing import Literal

RaceKind = Literal["league", "halving"]
LEAGUE: RaceKind = "league"
HALVING: RaceKind = "halving"
FEWEST_IN_RACE = 3
LEAGUE_BUDGET_S, LEAGUE_BLOCKS = 900.0, 400
"""Of a league, whose later blocks are short: fewer and fewer arms are in them."""


def usual_measure_of_race(race: object) -> dict[str, object]:
    """Give what is usual for a race where nothing is said of it."""
    return {"budget_s": LEAGUE_BUDGET_S, "max_blocks": LEAGUE_BLOCKS} if race == LEAGUE else {}


def check_race(arms: int, other_question: str) -> None:
    """Raise ValueError where so many arms can't race, or something else is asked as well."""
    if arms < FEWEST_IN_RACE:
        raise ValueError("a race has three arms at least; two are compared without it")
    if other_question:
        raise ValueError(
            f"a race asks who comes first, {other_question} something else: leave one out"
        )
