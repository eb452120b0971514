"""bench/leagues.py: which ranks are right, and the table of what came of it."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

import leagues
from truth import CATALOGUE
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.questions.ranking.settings import RankingSettings

SLOWED = "one slowed by 10%"
RIGHT = {"plain": (1, 2), "twin": (1, 2), "slowed": (3, 3), "slow": (4, 4)}
OPEN = RIGHT | {"plain": (1, 3), "slowed": (2, 3)}
WRONG = RIGHT | {"twin": (1, 1), "plain": (2, 2)}


def league(case: str, ranks: leagues.Ranks) -> leagues.League:
    at = datetime(2026, 3, 14, tzinfo=UTC)
    return leagues.League(
        case=case, at=at, machine="m", commit="c", rounds=9, took_s=60.0, ranks=dict(ranks)
    )


@pytest.mark.parametrize(
    ("ranks", "right", "settled"), [(RIGHT, True, True), (OPEN, True, False), (WRONG, False, False)]
)
def test_equal_ones_share_their_ranks(ranks: leagues.Ranks, *, right: bool, settled: bool) -> None:
    costs = leagues.CASES[SLOWED]
    assert leagues.is_right(ranks, costs) is right
    assert leagues.is_settled(ranks, costs) is settled


def test_a_pair_has_swapped_where_both_are_sure_of_it() -> None:
    other = RIGHT | {"slowed": (1, 1), "plain": (2, 3), "twin": (2, 3)}
    assert leagues.swaps(RIGHT, other) == 2
    assert leagues.swaps(other, RIGHT) == 2
    assert leagues.swaps(RIGHT, OPEN) == 0


def test_leagues_are_counted_by_case() -> None:
    console = Console(width=110, record=True)
    console.print(leagues.table([league(SLOWED, RIGHT), league(SLOWED, OPEN)]))
    (row,) = (it for it in console.export_text().splitlines() if "slowed by" in it)
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    assert cells == [SLOWED, "2", "2", "1", "0", "9, 9", "60, 60"]


@pytest.mark.parametrize("case", leagues.CASES)
def test_what_is_asked_is_an_experiment(case: str) -> None:
    asked = leagues.experiment(leagues.CASES[case])
    known = Catalogue.load([CATALOGUE])
    experiment = read_experiment(CommandLine(asked, {}), [], known)
    assert isinstance(experiment.asks, RankingSettings)
    assert [experiment.settings_of(name)["cost_us"] for name in experiment.variants] == [
        pytest.approx(100 * cost) for cost in leagues.CASES[case].values()
    ]
