"""Who is slower is seen, who was held back is said to be, and who cheats has no rank."""

import json
from pathlib import Path

import pytest

from builders import SimulatedRun
from league.leagues import FIRST, RATES, SECOND, THIRD, judged, run_of, store
from league.test_joined import ranks_of
from webdyno.config import Catalogue
from webdyno.core.judgement import Verdict
from webdyno.core.records import PreflightRecord
from webdyno.league.joined import join
from webdyno.league.pages import Pages
from webdyno.league.records import LeagueFolder
from webdyno.league.tables import results_of

HELD_BACK = ("actix-web", "axum")
"""The fastest of two runs: the client may keep both from being faster."""


@pytest.mark.parametrize(
    "stack", [pytest.param("bun", id="in one run"), pytest.param("go-nethttp", id="by anchors")]
)
def test_a_stack_that_is_slowed_by_a_tenth_gets_its_place(stack: str) -> None:
    """It would share the third place of go-chi, and is compared with it in a run, or by it."""
    rates = RATES | {"bun": 60_000.0, "go-nethttp": 60_000.0}
    rates[stack] *= 0.9
    runs = (run_of(part, seed=seed, rates=rates) for seed, part in ((3, THIRD), (2, SECOND)))
    ranks = ranks_of(join(judged(*runs, run_of(FIRST, seed=1, rates=rates))).ranking)
    (twin,) = {"bun", "go-nethttp"} - {stack}
    assert ranks["go-chi"] == ranks[twin] == (3, 4)
    assert ranks[stack] == (5, 5)


def held_back(folder: Path, *parts: tuple[str, ...]) -> Path:
    for days, part in enumerate(parts):
        store(folder, run_of(part, seed=days + 1, at_clients_limit=HELD_BACK), days=days)
    return folder


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([(*FIRST, "axum")], id="in one run"),
        pytest.param([FIRST, SECOND], id="by anchors"),
    ],
)
def test_a_pair_that_the_client_held_back_is_open_and_is_said_to_be_limited(
    parts: list[tuple[str, ...]], tmp_path: Path
) -> None:
    results = results_of(LeagueFolder(held_back(tmp_path, *parts)), Catalogue.load())
    (standing,) = results.standings
    (pair,) = (pair for pair in standing.pairs if {pair.a, pair.b} == set(HELD_BACK))
    assert pair.verdict is Verdict.INCONCLUSIVE
    assert pair.limited_by == dict.fromkeys(HELD_BACK, "client")
    ranks = {entry.stack: entry.rank for entry in standing.entries if entry.rank}
    assert {(ranks[name].best, ranks[name].worst) for name in HELD_BACK} == {(1, 2)}
    assert ranks["go-chi"].best == 3
    pages = {
        file.name: file.read_text()
        for file in Pages(results, Catalogue.load()).write(tmp_path / "pages")
    }
    (table,) = (page for name, page in pages.items() if name.startswith("fortunes-full"))
    assert table.count("the client; it can do more") == 2
    known = pages["compare.html"].partition('id="pairs">')[2].partition("</script>")[0]
    (test,) = json.loads(known, parse_constant=pytest.fail)
    assert [test["stacks"][name]["limit"] for name in HELD_BACK] == ["the client"] * 2


def test_a_stack_that_breaks_a_rule_has_no_rank_and_its_reason_is_shown(tmp_path: Path) -> None:
    run, why = run_of(FIRST), "GET /fortunes made 0 statements that read, 1 are right"
    records = [
        record.replace(broken_rules={"fastify": why})
        if isinstance(record, PreflightRecord)
        else record
        for record in run.records
    ]
    store(tmp_path, SimulatedRun(run.head, records))
    results = results_of(LeagueFolder(tmp_path), Catalogue.load())
    (standing,) = results.standings
    (cheat,) = (entry for entry in standing.entries if not entry.rank)
    assert cheat.stack == "fastify"
    assert why in cheat.out
    Pages(results, Catalogue.load()).write(tmp_path / "pages")
    (page,) = (tmp_path / "pages").glob("fortunes-full-*.html")
    assert why in page.read_text().partition("Without a rank")[2]
