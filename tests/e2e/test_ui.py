"""The local page in a real browser: a duel is begun, watched, ended and read."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.browser import NEEDS_BROWSER, serious_faults
from e2e.commands import left_behind, started_webdyno
from report import comparisons

pytestmark = NEEDS_BROWSER


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a page that serves a folder with two runs."""
    for name in ("before", "after"):
        comparisons.decided().stored(tmp_path / "runs" / name)
    with started_webdyno("ui", folder=tmp_path) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert left_behind(tmp_path) == []


def test_runs_are_listed_compared_and_read(browser: Browser, address: str) -> None:
    said: list[str] = []
    page = _opened(browser, address, said)
    expect(page.locator("[data-verdict]").last).to_contain_text("FASTER", timeout=30_000)
    assert serious_faults(page) == []
    page.get_by_label("Filter").fill("after")
    expect(page.locator("#runs tbody tr:visible")).to_have_count(1)
    page.get_by_label("Filter").fill("")
    for name in ("before", "after"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare the two").click()
    expect(page.locator("h1")).to_contain_text("after against before")
    assert serious_faults(page) == []
    page.goto(address)
    page.locator("#runs a[href*='/report/'][href$='/before']").click()
    expect(page.locator("svg").first).to_be_attached()
    assert said == []


@pytest.mark.long
def test_a_duel_is_begun_watched_and_ended(browser: Browser, address: str) -> None:
    said: list[str] = []
    page = _opened(browser, address, said)
    page.get_by_role("link", name="Start a comparison").first.click()
    assert serious_faults(page) == []
    page.locator("select[name=stack]").select_option("nginx")
    page.locator("select[name=baseline]").select_option("apache-event")
    page.get_by_label("Connections").select_option("8")
    page.get_by_label("Time").select_option("5m")
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("#live .part").first.wait_for(timeout=60_000)
    expect(page.locator("#points svg circle").first).to_be_visible(timeout=60_000)
    expect(page.locator("#points")).to_contain_text("Throughput, req/s: ratio so far")
    expect(page.locator("#points")).to_contain_text(re.compile("(about|at most) .* left"))
    expect(page.locator("#points")).not_to_contain_text("faster")
    assert serious_faults(page) == []
    page.get_by_role("button", name="Stop now").click()
    page.wait_for_load_state()
    expect(page.locator("h1")).to_contain_text("Runs")
    expect(page.locator("#runs tbody tr")).to_have_count(3)
    assert said == []


def test_a_system_of_ones_own_has_its_field_and_a_phone_its_room(
    browser: Browser, address: str
) -> None:
    said: list[str] = []
    page = _opened(browser, address, said)
    page.set_viewport_size({"width": 390, "height": 800})
    overflow = "document.documentElement.scrollWidth - window.innerWidth"
    expect(page.locator("[data-verdict]").last).to_contain_text("FASTER", timeout=30_000)
    expect(page.locator(".mark")).to_have_count(2)  # one verdict in each row
    assert page.evaluate(overflow) <= 0
    page.get_by_role("link", name="Start a comparison").first.click()
    field = page.get_by_label("System of your own")
    expect(field).to_be_hidden()
    page.locator("select[name=stack]").select_option("one of your own …")
    field.fill("url:http://127.0.0.1:1")
    assert page.evaluate(overflow) <= 0
    page.locator("select[name=stack]").select_option(index=0)
    expect(field).to_be_hidden()
    assert said == []


def _opened(browser: Browser, address: str, said: list[str]) -> Page:
    page = browser.new_context().new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(address)
    return page
