"""The pages of a league, as files."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from builders import SimulatedRun, machine
from league.leagues import FIRST, RATES, ROUNDS, SECOND, run_of, store, stored_league, with_variant
from webdyno.config import Catalogue
from webdyno.core.base import Interval
from webdyno.core.errors import OperationError
from webdyno.core.format import MISSING
from webdyno.core.metrics import CPU_TIME
from webdyno.interfaces.cli.league import _pages_of
from webdyno.league.pages import Pages
from webdyno.league.records import LeagueFolder
from webdyno.league.tables import results_of
from webdyno.league.words import cells, services_words

FIRST_VIEW_BYTES = 300_000


def pages_of(folder: Path) -> dict[str, str]:
    results = results_of(LeagueFolder(folder), Catalogue.load())
    written = Pages(results, Catalogue.load()).write(folder / "pages")
    return {file.name: file.read_text() for file in written}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return pages_of(stored_league(tmp_path_factory.mktemp("league")))


def test_pages_of_a_league_replace_nothing_elsewhere(tmp_path: Path) -> None:
    """As in one that was copied from somebody."""
    league = LeagueFolder(stored_league(tmp_path / "league"))
    (own := tmp_path / "www").mkdir()
    (own / "index.html").write_text("mine")
    (league.path / "pages").symlink_to("../www")
    with pytest.raises(OperationError, match=r"pages in .* is a link"):
        _pages_of(league, league.path / "pages", Catalogue.load())
    assert [file.read_text() for file in own.iterdir()] == ["mine"]


def test_there_is_a_page_for_each_task_and_each_stack(pages: dict[str, str]) -> None:
    stacks = {f"stack-{name}.html" for name in RATES}
    assert stacks < set(pages)
    tasks = {name for name in pages if name.startswith("fortunes-")}
    assert len(tasks) == 2
    assert {"index.html", "about.html", "compare.html", "league.csv", "league.json"} < set(pages)


def test_links_lead_to_pages_that_are_there(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        if name.endswith(".html"):
            links = set(re.findall(r'href="([^"#?]+)"', page))
            outside = {link for link in links if link.startswith(("https:", "data:"))}
            assert links - outside <= set(pages), name


def test_pages_ask_the_network_for_nothing_and_are_small(pages: dict[str, str]) -> None:
    assert len(pages["index.html"].encode()) < FIRST_VIEW_BYTES
    for name, page in pages.items():
        if name.endswith(".html"):
            assert "default-src 'none'" in page
            assert not re.search(r'(src|url\()="?https?:', page), name


def test_a_table_has_ranks_bars_and_ties(pages: dict[str, str]) -> None:
    page = next(page for name, page in pages.items() if re.match(r"fortunes-full-\w+\.html", name))
    assert page.count('class="bar"') == len(RATES)
    (tie,) = re.findall(r'<tbody class="tie">(.*?)</tbody>', page, re.DOTALL)
    assert "go-chi" in tie
    assert "go-nethttp" in tie
    assert page.index("stack-actix-web.html") < page.index("stack-gunicorn-flask.html")
    assert "p99 at 200 req/s" in page


def test_a_table_shows_what_a_request_costs_on_the_scale_of_all_runs(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, together=1))
    (standing,) = results_of(LeagueFolder(tmp_path), Catalogue.load()).standings
    cost = Interval(estimate=123.0, low=120.0, high=126.0)
    first = standing.entries[0].replace(on_scale={CPU_TIME: cost})
    assert next(cells(first, standing, None)) == "123 µs"


def test_the_index_says_how_many_stacks_a_test_has(pages: dict[str, str]) -> None:
    assert f"; {len(RATES)} stacks" in pages["index.html"]


def test_a_table_says_whose_cpu_time_it_is(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, together=1))
    (standing,) = results_of(LeagueFolder(tmp_path), Catalogue.load()).standings
    entry = standing.entries[0]
    shared = entry.replace(cpus_by_service={"go": 0.3, "db": 0.6, "idle": 0.01})
    assert services_words(shared, {"db": "PostgreSQL"}) == "of it PostgreSQL 66%, go 33%"
    assert services_words(entry.replace(cpus_by_service={"go": 0.9}), {}) == ""


def test_the_page_of_a_stack_says_how_to_repeat_it(pages: dict[str, str]) -> None:
    page = pages["stack-axum.html"]
    assert "webdyno compare" in page
    assert "--site fortunes" in page
    assert "--rate 200" in page
    assert "front = &#34;rust&#34;" in page
    assert "https://github.com/tokio-rs/axum" in page


def test_a_ranking_is_repeated_after_the_same_warmups(tmp_path: Path) -> None:
    run = run_of(FIRST, together=1)
    run = with_variant(run, "fastify", warmup_s=40.0, warmup_bursts="on")
    measure = run.head.experiment.measure.replace(warmup_s=4.0)
    experiment = run.head.experiment.replace(measure=measure)
    store(tmp_path, SimulatedRun(run.head.replace(experiment=experiment), run.records))
    (standing,) = results_of(LeagueFolder(tmp_path), Catalogue.load()).standings
    warmups = (
        " --set measure.warmup_s=4"
        " --set variants.fastify.warmup_s=40 --set variants.fastify.warmup_bursts=on"
    )
    assert all(entry.command.endswith(warmups) for entry in standing.entries)


def test_latencies_at_full_speed_arent_those_at_a_common_rate(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, together=1))
    assert "p99" not in pages_of(tmp_path)["stack-go-chi.html"]
    store(tmp_path, run_of(FIRST, together=1), rate_rps=200.0, days=1)
    rows = re.findall(
        r'data-heading="p99 at a common rate">(.*?)<', pages_of(tmp_path)["stack-go-chi.html"]
    )
    assert len(rows) == 2
    assert MISSING not in rows


def test_data_have_a_line_for_each_result(pages: dict[str, str]) -> None:
    rows = list(csv.DictReader(io.StringIO(pages["league.csv"])))
    assert len(rows) == len(RATES) + len(FIRST) + 1
    first = next(row for row in rows if row["stack"] == "actix-web" and not row["rate_rps"])
    assert (first["best_rank"], first["worst_rank"]) == ("1", "1")
    assert {"throughput_rps_low", "latency_p99_us_high"} < set(first)
    assert first["latency_p99_us_high"] == "", "at full speed it is mostly queueing"
    for figure in ("on_a_common_scale", "server_cpu_us_on_a_common_scale"):
        assert float(first[f"{figure}_low"]) < float(first[f"{figure}_high"])
    assert first["limited_by"] == "waiting"
    assert len(json.loads(pages["league.json"])["standings"]) == 2


def test_ranks_over_time_are_those_of_then(tmp_path: Path) -> None:
    slower = RATES | {"actix-web": 20_000.0}
    store(tmp_path, run_of(FIRST, seed=1, together=1))
    store(tmp_path, run_of(FIRST, seed=2, together=1, rates=slower), days=40)
    results = results_of(LeagueFolder(tmp_path), Catalogue.load())
    (standing,) = results.standings
    entry = next(entry for entry in standing.entries if entry.stack == "actix-web")
    assert [past.rank and past.rank.best for past in entry.over_time] == [1, 3]
    assert "<circle" in pages_of(tmp_path)["stack-actix-web.html"]


def test_two_machines_arent_mixed_and_are_compared(tmp_path: Path) -> None:
    other = machine().replace(cpu_model="Another CPU", identity="0123456789")
    store(tmp_path, run_of(FIRST, seed=1, together=1))
    turned = RATES | {"actix-web": 10_000.0}
    store(tmp_path, run_of(FIRST, seed=2, together=1, rates=turned), machine=other, days=1)
    results = results_of(LeagueFolder(tmp_path), Catalogue.load())
    assert len(results.standings) == 2
    (agreement,) = results.agreements
    assert {stack for pair in agreement.swapped for stack in pair} >= {"actix-web"}
    assert "agree about go-chi and actix-web" in pages_of(tmp_path)["index.html"]


def test_another_kernel_is_another_machine(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, seed=1))
    store(tmp_path, run_of(SECOND, seed=2), machine=machine().replace(kernel="6.9.0"), days=1)
    assert len(LeagueFolder(tmp_path).machines()) == 2


def test_an_unfinished_run_doesnt_count(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, rounds=3), is_over=False)
    assert results_of(LeagueFolder(tmp_path), Catalogue.load()).standings == []


def test_a_run_whose_time_ended_before_its_first_look_doesnt_count(tmp_path: Path) -> None:
    store(tmp_path, run_of(FIRST, rounds=3), reason="time")
    store(tmp_path, run_of(FIRST, rounds=ROUNDS), reason="time", days=1)
    store(tmp_path, run_of(FIRST, rounds=3), reason="nothing-valid", days=2)
    folder = LeagueFolder(tmp_path)
    assert [run.is_over for run in folder.runs()] == [True, True, False]
    assert [run.is_too_short for run in folder.runs()] == [False, False, True]
    (standing,) = results_of(folder, Catalogue.load()).standings
    assert [len(entry.over_time) for entry in standing.entries] == [2] * len(FIRST)


def test_what_others_wrote_is_no_markup(tmp_path: Path) -> None:
    hostile = {"<b>x</b>": 50_000.0, "../../x": 45_000.0, "</script>": 40_000.0, "c": 30_000.0}
    store(tmp_path, run_of(list(hostile), rates=hostile, together=1))
    pages = pages_of(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    for name, page in pages.items():
        if name.endswith(".html"):
            assert "<b>x" not in page
            assert page.count("</script>") == page.count("<script")
