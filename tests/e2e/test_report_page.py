"""The report in a real browser: no error, no request, charts drawn, nothing too wide."""

import re
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pytest
from playwright.sync_api import Browser, Page

from e2e.browser import NEEDS_BROWSER, serious_faults
from e2e.commands import webdyno_here
from fleet.test_show import RUN as FLEETS_RUN
from fleet.test_show import fleet_of
from report import comparisons, questions, runs, sweeps
from report.test_claims import page_of_claims
from variants import further
from webdyno.fleet.show import fleet_page
from webdyno.report.result_page import write_report

Scheme = Literal["light", "dark"]
WIDTHS: dict[Scheme, int] = {"light": 1280, "dark": 400}

KINDS = {make.__name__: make for make in (*runs.ALL, *sweeps.SWEEPS, questions.many)}
UNLIKE = {"decided", "gated", "hostile"}
"""Kinds whose pages have little in common; the others' are made of the same parts."""
EXAMINED = {("decided", "light"), ("gated", "dark")}
"""Pages that axe-core looks through in each run of the tests: it takes seconds of CPU time."""
BARS = {"bars-throughput_rps", "bars-server_cpu_us"}
CHARTS = {"ratios", "latency", "slots", "cpu"} | BARS
SHAPES = "svg .mark-symbol path, svg .mark-rule line, svg .mark-line path"

pytestmark = NEEDS_BROWSER


class Pages(dict[str, Path]):
    """The report of each kind of run, by the kind's name; written when a test first asks for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, kind: str) -> Path:
        """Write it."""
        folder = self._folder / kind
        folder.mkdir()
        self[kind] = write_report(folder, runs.seen(KINDS[kind]()))
        return self[kind]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Of tests that run in several processes each needs but a few."""
    return Pages(tmp_path_factory.mktemp("pages"))


class Visit:
    """A page opened in a browser that may reach nothing but the file, and what it did there."""

    def __init__(
        self, browser: Browser, file: Path, width: int, scheme: Scheme, *, scripts: bool = True
    ) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            offline=True,
        )
        self.width = width
        self.page: Page = context.new_page()
        self.said: list[str] = []
        self.asked_for: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked_for.append(request.url))
        self.page.goto(file.as_uri())

    def open_sections(self) -> None:
        """Open what a page shows the heading of alone."""
        self.page.evaluate("document.querySelectorAll('.section').forEach(it => it.open = true)")

    def drawn(self) -> set[str]:
        """Names of the charts in which something can be seen."""
        charts = self.page.locator("[data-chart]")
        return {
            str(chart.get_attribute("data-chart"))
            for chart in charts.all()
            if chart.locator(SHAPES).count() > 0 and chart.is_visible()
        }

    def overflow_px(self) -> int:
        """How much of the page lies beyond the screen's right edge."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.parametrize("kind", [it if it in UNLIKE else further(it) for it in KINDS])
def test_page_is_whole_quiet_and_fits(browser: Browser, pages: Pages, kind: str) -> None:
    for scheme, width in WIDTHS.items():
        check_page(Visit(browser, pages[kind], width, scheme), pages[kind], kind)


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [it if it in EXAMINED else further(*it) for it in product(KINDS, WIDTHS)],
)
def test_page_shuts_nobody_out(browser: Browser, pages: Pages, kind: str, scheme: Scheme) -> None:
    visit = Visit(browser, pages[kind], WIDTHS[scheme], scheme)
    visit.open_sections()
    assert serious_faults(visit.page) == []
    visit.page.context.close()


MOST_PX = 3000
"""Height of a page on a wide screen whose details are closed."""


def check_page(visit: Visit, page: Path, kind: str) -> None:
    assert visit.said == []
    assert [url for url in visit.asked_for if not url.startswith("data:")] == [page.as_uri()]
    assert visit.overflow_px() <= 0
    if visit.width == WIDTHS["light"]:
        assert visit.page.evaluate("document.documentElement.scrollHeight") <= MOST_PX
    visit.open_sections()
    assert visit.overflow_px() <= 0
    expected = {
        "decided": CHARTS,
        "probed": CHARTS | {"host-servers", "host-client"},
        "several_variants": CHARTS,
        "ranking": CHARTS - BARS | {"ranking", "cpu-parts"},
        "inconclusive": CHARTS,
        "no_round": set(),
    }
    if kind in expected:
        assert visit.drawn() == expected[kind]
    assert visit.page.locator("section.verdict .headline").first.inner_text()
    visit.page.context.close()


MOST_PHONE_PX = 5000
"""The same on a phone."""
SCROLLS = """() => [...document.querySelectorAll(".scroll, .chart, pre")]
    .filter(it => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1)
    .map(it => it.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("kind", ["ranking", *map(further, ("capacities", "gated", "two_factors"))])
def test_nothing_has_to_be_scrolled_sideways_on_a_phone(
    browser: Browser, pages: Pages, kind: str
) -> None:
    visit = Visit(browser, pages[kind], 390, "light")
    assert visit.page.evaluate("document.documentElement.scrollHeight") <= MOST_PHONE_PX
    assert visit.overflow_px() <= 0
    visit.page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
    assert visit.page.evaluate(SCROLLS) == []
    visit.page.context.close()


@pytest.mark.parametrize("scheme", ["light", further("dark")])
def test_the_page_of_a_study_is_whole_quiet_and_fits_and_shuts_nobody_out(
    browser: Browser, tmp_path: Path, scheme: Scheme
) -> None:
    page = page_of_claims(tmp_path)
    visit = Visit(browser, page, WIDTHS[scheme], scheme)
    assert serious_faults(visit.page) == []
    check_page(visit, page, "a study")


@pytest.mark.parametrize(
    "kind", ["decided", *map(further, ("two_factors", "invalid", "censored", "gated", "one_round"))]
)
def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    browser: Browser, pages: Pages, kind: str
) -> None:
    check_keyboard(Visit(browser, pages[kind], 1280, "light"))


def test_the_keyboard_reaches_everything_of_a_study(browser: Browser, tmp_path: Path) -> None:
    check_keyboard(Visit(browser, page_of_claims(tmp_path), 1280, "light"))


def check_keyboard(visit: Visit) -> None:
    usable = "a[href], button, input, summary, [tabindex='0']"
    wanted = visit.page.locator(usable).locator("visible=true").count()
    assert wanted > 0
    reached = set()
    for _ in range(wanted):
        visit.page.keyboard.press("Tab")
        number, outline = visit.page.evaluate(
            """usable => {
                const it = document.activeElement
                const all = [...document.querySelectorAll(usable)]
                return [all.indexOf(it), getComputedStyle(it).outlineStyle]
            }""",
            usable,
        )
        assert outline != "none"
        reached.add(number)
    assert -1 not in reached
    assert len(reached) == wanted
    visit.page.context.close()


def test_a_sweep_shows_every_metric_and_each_point_on_demand(
    browser: Browser, pages: Pages
) -> None:
    visit = Visit(browser, pages["two_factors"], 1280, "light")
    visit.open_sections()
    before = visit.drawn()
    metrics = ("ratios", "throughput_rps", "server_cpu_us", "latency_p50_us", "memory_mib")
    assert {f"{metric}-{panel}" for metric in metrics for panel in (0, 1)} <= before
    assert not any(name.startswith("point-") for name in before)
    visit.page.locator("details.point > summary").nth(2).click()
    assert {"point-2-latency", "point-2-host-client"} <= visit.drawn() - before
    assert visit.said == []
    visit.page.context.close()


def test_a_variant_is_picked_out_in_all_panels_of_a_figure(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["two_factors"], 1280, "light")
    visit.open_sections()
    figure = visit.page.locator("#figure-throughput_rps")
    figure.get_by_role("button", name="nginx").click()
    for panel in figure.locator("[data-chart]").all():
        assert panel.locator(".wide .mark-symbol path.muted").count() == 3
    visit.page.context.close()


FIRST_CELLS = (
    "[...document.querySelectorAll('[data-sortable] tbody tr')].map(it => it.cells[%d].innerText)"
)


def test_a_ranking_is_sorted_by_any_column_with_mouse_and_keyboard(
    browser: Browser, pages: Pages
) -> None:
    visit = Visit(browser, pages["ranking"], 1280, "light")
    by_rank = visit.page.evaluate(FIRST_CELLS % 1)
    heading = visit.page.locator("[data-sortable] th", has_text="Throughput")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    backwards = visit.page.evaluate(FIRST_CELLS % 1)
    assert backwards[:4] == by_rank[3::-1]
    assert backwards[4] == by_rank[4]  # without a value
    visit.page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert visit.page.evaluate(FIRST_CELLS % 1) == by_rank
    name = visit.page.locator("[data-sortable] th button", has_text="variant")
    name.focus()
    visit.page.keyboard.press("Space")
    assert visit.page.evaluate(FIRST_CELLS % 1) == sorted(by_rank)
    assert visit.page.locator("[aria-sort]").count() == 1
    visit.page.context.close()


def test_of_many_variants_those_are_drawn_that_are_ticked(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["many"], 1280, "light")
    visit.open_sections()
    figure = visit.page.locator("#figure-latency")
    boxes = figure.get_by_role("checkbox")
    curves = figure.locator(".wide .mark-line path:not(.unticked)")
    assert boxes.count() == 7
    assert curves.count() == 5
    boxes.last.focus()
    visit.page.keyboard.press("Space")
    assert curves.count() == 6
    boxes.first.uncheck()
    assert curves.count() == 5
    assert serious_faults(visit.page) == []
    visit.page.context.close()


def test_charts_are_drawn_without_scripts(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["decided"], 400, "light", scripts=False)
    assert visit.drawn() == BARS | {"ratios"}
    for heading in visit.page.locator(".section > summary").all():
        heading.click()
    assert visit.drawn() == CHARTS
    visit.page.context.close()


def test_a_link_at_the_top_opens_its_section(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["decided"], 1280, "light")
    assert not visit.page.locator("[data-chart=latency]").is_visible()
    visit.page.get_by_role("link", name="Latency").click()
    assert visit.page.locator("[data-chart=latency]").is_visible()
    visit.page.context.close()


def test_colours_follow_the_scheme(browser: Browser, pages: Pages) -> None:
    colours = {}
    for scheme in get_args(Scheme):
        visit = Visit(browser, pages["decided"], 1280, scheme)
        colours[scheme] = visit.page.evaluate(
            "selector => getComputedStyle(document.querySelector(selector)).fill",
            "[data-chart=slots] .mark-symbol path",
        )
        visit.page.context.close()
    assert colours["light"] != colours["dark"]
    assert all(colour.startswith("rgb(") for colour in colours.values())


def test_a_variant_can_be_picked_out(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["decided"], 1280, "light")
    visit.open_sections()
    figure = visit.page.locator("#figure-slots")
    muted = figure.locator(".wide .mark-symbol path.muted")
    assert muted.count() == 0
    button = figure.get_by_role("button", name="nginx")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert muted.count() == 32  # the other variant's slots: 8 rounds of 4
    button.click()
    assert muted.count() == 0
    visit.page.context.close()


@pytest.mark.parametrize("kind", ["decided", *map(further, ("inconclusive", "interference"))])
def test_the_answer_its_tiles_and_its_charts_are_seen_without_scrolling(
    browser: Browser, pages: Pages, kind: str
) -> None:
    visit = Visit(browser, pages[kind], 1280, "light")
    assert visit.page.locator(".tiles li").count() == 3
    parts = visit.page.locator(".verdict, [data-chart^=bars-], [data-chart=ratios]").all()
    boxes = [box for part in parts if (box := part.bounding_box())]
    assert len(boxes) == 4
    assert max(box["y"] + box["height"] for box in boxes) <= 900
    visit.page.context.close()


def test_a_phone_gets_a_chart_of_its_width_and_paper_whole_tables(
    browser: Browser, pages: Pages
) -> None:
    visit = Visit(browser, pages["decided"], 390, "light")
    chart = visit.page.locator("[data-chart=ratios]")
    assert chart.locator(".narrow svg").is_visible()
    assert not chart.locator(".wide svg").is_visible()
    visit.page.set_viewport_size({"width": 680, "height": 900})  # A4 less its margins
    visit.page.emulate_media(media="print")
    assert chart.locator(".wide svg").is_visible()
    assert not chart.locator(".narrow svg").is_visible()
    assert visit.page.locator("table.brief thead").first.is_visible()
    visit.page.context.close()


def test_a_report_is_printed(tmp_path: Path) -> None:
    comparisons.decided().stored(tmp_path / "run")
    done = webdyno_here("report", "run", "--format=pdf", "-o", "report.pdf", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 8
    assert (tmp_path / "run" / "report.html").exists()


def test_a_point_shows_its_figures(browser: Browser, pages: Pages) -> None:
    visit = Visit(browser, pages["decided"], 1280, "light")
    visit.open_sections()
    mark = visit.page.locator("[data-chart=cpu] .mark-symbol path").first
    mark.scroll_into_view_if_needed()
    visit.page.wait_for_function(  # scrolling hides it, a frame later
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        ".then(() => true)"
    )
    mark.hover()
    reported = visit.page.locator(".told")
    reported.wait_for(state="visible")
    assert reported.inner_text().startswith("apache-event, round 0: ")
    visit.page.context.close()


@pytest.mark.long
def test_a_fleet_of_many_machines_fits_folded_and_unfolded(
    browser: Browser, tmp_path: Path
) -> None:
    page = tmp_path / "fleet.html"
    page.write_text(fleet_page(FLEETS_RUN.head, fleet_of(200), {}, "webdyno report"))
    screens: list[tuple[int, Scheme]] = [(1280, "light"), (400, "dark")]
    for width, scheme in screens:
        visit = Visit(browser, page, width, scheme)
        assert visit.said == []
        assert visit.overflow_px() <= 0
        assert visit.page.evaluate("document.body.scrollHeight") < 5_000
        visit.page.locator("summary").click()
        assert visit.page.locator("tbody tr").last.is_visible()
        assert visit.overflow_px() <= 0
