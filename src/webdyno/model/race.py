"""Races of three variants or more, which variants leave while they go on."""

from typing import Literal

RaceKind = Literal["ranking", "halving"]
RANKING: RaceKind = "ranking"
HALVING: RaceKind = "halving"
FEWEST_IN_RACE = 3
RANKING_BUDGET_S, RANKING_ROUNDS = 900.0, 400
"""Of a ranking, whose later rounds are short: fewer and fewer variants are in them."""


def usual_measure_of_race(race: object) -> dict[str, object]:
    """Give what is usual for a race where nothing is said of it."""
    return {"budget_s": RANKING_BUDGET_S, "max_rounds": RANKING_ROUNDS} if race == RANKING else {}


def check_race(variants: int, other_question: str) -> None:
    """Raise ValueError where so many variants can't race, or something else is asked as well."""
    if variants < FEWEST_IN_RACE:
        raise ValueError("a race has three variants at least; two are compared without it")
    if other_question:
        raise ValueError(
            f"a race asks who comes first, {other_question} something else: leave one out"
        )
