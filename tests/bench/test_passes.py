"""bench/passes.py: which pairs two passes of a league swap."""

from pathlib import Path

from rich.console import Console

import passes
from league.leagues import FIRST, RATES, run_of, store
from webdyno.config import Catalogue
from webdyno.league.records import LeagueFolder
from webdyno.league.tables import Results, results_of

SLOWED = "go-chi"


def league_of(folder: Path, rates: dict[str, float], seed: int) -> Results:
    store(folder, run_of(FIRST, rates=rates, seed=seed, together=1))
    return results_of(LeagueFolder(folder), Catalogue.load())


def test_pairs_swap_where_both_passes_are_sure_of_them(tmp_path: Path) -> None:
    first = league_of(tmp_path / "first", RATES, seed=1)
    second = league_of(tmp_path / "second", RATES | {SLOWED: 20_000.0}, seed=2)
    (fortunes,) = passes.compared(first, second)
    assert (fortunes.shared, fortunes.decided) == (4, 6)
    assert fortunes.swapped == [(SLOWED, "fastify")]
    console = Console(width=passes.WIDTH, record=True)
    console.print(passes.table([fortunes]))
    (row,) = (it for it in console.export_text().splitlines() if "fortunes" in it)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "fortunes at full speed",
        "4",
        "6",
        "1 (16.7%)",
        "go-chi, fastify",
    ]


def test_a_test_that_one_pass_lacks_isnt_compared(tmp_path: Path) -> None:
    first = league_of(tmp_path / "first", RATES, seed=1)
    store(tmp_path / "second", run_of(FIRST, seed=2, together=1), site="json")
    second = results_of(LeagueFolder(tmp_path / "second"), Catalogue.load())
    assert list(passes.compared(first, second)) == []
