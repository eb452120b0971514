"""The browser in which pages are looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NEEDS_BROWSER = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="Debian's chromium is not installed"
)


@contextmanager
def started() -> Iterator[Browser]:
    """Start it, and end it afterwards."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


def serious_faults(page: Page) -> list[str]:
    """What keeps people from using a page who don't see, or don't see well; axe-core's rules."""
    found = Axe().run(page).response["violations"]
    return [
        f"{it['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for it in found
        if it["impact"] in {"serious", "critical"}
        for node in it["nodes"][:3]
    ]
