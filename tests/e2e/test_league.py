"""A league of real servers, from nothing to its pages; and its pages in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from e2e.browser import NEEDS_BROWSER, serious_faults
from e2e.commands import left_behind, webdyno, webdyno_here
from e2e.test_report_page import WIDTHS, Scheme, Visit
from league.entries import SERVER, STACK, entry
from league.leagues import stored_league
from variants import further
from webdyno.config import Catalogue
from webdyno.core.records import RoundRecord, StopRecord
from webdyno.league.pages import Pages
from webdyno.league.records import LeagueFolder
from webdyno.league.tables import results_of
from webdyno.measure.folder import RunFolder
from webdyno.measure.records_file import RECORDS_FILE

SHORT = (
    "--set=measure.slot_s=0.1",
    "--set=measure.warmup_s=0",
    "--set=measure.slots_per_variant=2",
    "--set=load.connections=4",
)
PHONE_PX = 390
STACKS = ["nginx", "lighttpd", "apache-prefork"]


def league(folder: Path, stacks: list[str], *more: str) -> str:
    words = ("league", f"--stacks={','.join(stacks)}", "--sites=static", "--loads=full", *SHORT)
    done = webdyno(*words, "--time=3m", *more, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_league_is_measured_goes_on_and_is_shown(tmp_path: Path) -> None:
    said = league(tmp_path, STACKS)
    assert "static at full speed: 1" in said
    assert "nothing is missing" in said
    assert len(LeagueFolder(tmp_path / "league").runs()) == 1
    assert "Pages: league/pages/index.html" in said
    assert "stack-lighttpd.html" in (tmp_path / "league/pages/index.html").read_text()

    said = league(tmp_path, [*STACKS, "apache-event"])
    newest, _ = LeagueFolder(tmp_path / "league").runs()
    assert len(newest.stacks) == len(STACKS)
    assert "apache-event" in newest.stacks
    assert "apache-event" in said

    league(tmp_path, STACKS)
    assert len(LeagueFolder(tmp_path / "league").runs()) == 2
    done = webdyno_here("league", "--site=pages", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "stack-apache-event.html" in (tmp_path / "pages/index.html").read_text()
    assert left_behind(tmp_path) == []


def test_a_run_whose_time_was_too_short_goes_on(tmp_path: Path) -> None:
    league(tmp_path, STACKS)
    (run,) = LeagueFolder(tmp_path / "league").runs()
    records, short = RunFolder.open(run.path).data().records, []
    for record in records:
        short.append(record)
        if isinstance(record, RoundRecord):
            break
    stop = next(record for record in records if isinstance(record, StopRecord))
    short.append(stop.replace(round=1, reason="time"))
    lines = "".join(record.model_dump_json() + "\n" for record in short)
    (run.path / RECORDS_FILE).write_text(lines)
    assert "nothing is missing" in league(tmp_path, STACKS)
    (run,) = LeagueFolder(tmp_path / "league").runs()
    assert len(run.judged.data.rounds) > 1
    assert not run.is_too_short


KEPT_ROWS = """\
elif self.path == "/fortunes":
            page = b"<!DOCTYPE html>Additional fortune added at request time."
            self.answer("text/html; charset=utf-8", page)
        else:"""
"""A page whose rows are no longer read from the database."""


def check(entry: Path, folder: Path) -> tuple[int, str]:
    done = webdyno("league", f"--check={entry}", "--yes", "--time=5s", folder=folder)
    assert left_behind(folder) == []
    return done.returncode, done.stdout


@pytest.mark.long
def test_an_honest_entry_is_fit(tmp_path: Path) -> None:
    code, said = check(entry(tmp_path / "mine"), tmp_path)
    assert (code, said.splitlines()[-1].endswith("fit to be in the league")) == (0, True), said


def test_an_entry_that_cheats_is_refused_with_the_reason(tmp_path: Path) -> None:
    cheats = SERVER.replace('"Hello, World!"}', '"Hello, World!", "more": 1}')
    cheats = cheats.replace('b"Hello, World!")', 'b"Hello!")')
    cheats = cheats.replace("else:", KEPT_ROWS)
    stack = STACK.replace('"upload"', '"fortunes"')
    code, said = check(entry(tmp_path / "mine", stack=stack, server=cheats), tmp_path)
    assert code == 1
    said = " ".join(said.split())
    assert re.search(r"python-http: plaintext: .*/plaintext", said)
    assert re.search(r"python-http: json: .*/json should give", said)
    assert re.search(r"python-http: fortunes: .*GET /fortunes made 0 statements that read", said)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--stacks=nginx,lighttpd", "--sites=static"), "three stacks or more"),
        (("--stacks=ngnix",), "did you mean nginx"),
        (("--loads=fast",), "--loads fast"),
        (("--site=fortunes",), "--sites fortunes"),
        (("--site=pages",), "no finished run of a league"),
        (("--older-than=soon", "--stacks=nginx,lighttpd,caddy", "--sites=static"), "--older-than"),
    ],
)
def test_what_is_no_league_is_reported(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = webdyno_here("league", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("league")
    results = results_of(LeagueFolder(stored_league(folder)), Catalogue.load())
    Pages(results, Catalogue.load()).write(folder / "pages")
    return folder / "pages"


def page_like(pages: Path, name: str) -> Path:
    return next(pages.glob(name))


@NEEDS_BROWSER
@pytest.mark.parametrize("scheme", ["light", further("dark")])
@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        *map(further, ("fortunes-full-*.html", "stack-axum.html", "about.html")),
        "compare.html",
    ],
)
def test_a_page_is_quiet_fits_and_shuts_nobody_out(
    browser: Browser, pages: Path, name: str, scheme: Scheme
) -> None:
    page = page_like(pages, name)
    for width in (WIDTHS["light"], PHONE_PX):
        visit = Visit(browser, page, width, scheme)
        visit.open_sections()
        assert visit.said == []
        assert [url for url in visit.asked_for if not url.startswith("data:")] == [page.as_uri()]
        assert visit.overflow_px() <= 0
        assert serious_faults(visit.page) == []
        visit.page.context.close()


@NEEDS_BROWSER
def test_rows_are_filtered_and_two_are_compared_by_a_click(browser: Browser, pages: Path) -> None:
    visit = Visit(browser, page_like(pages, "fortunes-full-*.html"), 1280, "light")
    page = visit.page
    page.get_by_label("Language").select_option("Go")
    expect(page.locator("table.ranks tbody tr:visible")).to_have_count(2)
    page.get_by_label("Language").select_option("")
    for stack in ("axum", "express"):
        page.get_by_label(f"Compare {stack}").check()
    page.get_by_role("link", name="Compare axum and express").click()
    compared = page.locator("#compared")
    expect(compared).to_contain_text("axum is better")
    expect(compared).to_contain_text("Fortunes at full speed")
    assert visit.said == []
    visit.page.context.close()


@NEEDS_BROWSER
def test_without_scripts_all_can_be_read(browser: Browser, pages: Path) -> None:
    page = page_like(pages, "fortunes-full-*.html")
    visit = Visit(browser, page, 1280, "light", scripts=False)
    assert visit.page.locator("table.ranks tbody tr:visible").count() == 8
    assert not visit.page.locator(".filters").is_visible()
    visit.page.context.close()
