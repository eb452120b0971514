"""Makes the picture of a report for the README: `python docs/make_picture.py RUN PICTURE.png`.

Needs the development dependencies, and Debian's chromium and pngquant; fonts-inter makes it
prettier.
"""

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
WIDTH_PX = 840
"""As wide as a README is shown; twice the pixels are sharp there, and few bytes."""
MARGIN_PX = 12
SHOWN_FROM, SHOWN_TO = "section.verdict", "#figure-bars"


def make_picture(page_file: Path, picture: Path) -> None:
    """Photograph a report's verdict and its bars, at twice the pixels."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH_PX, "height": 900}, device_scale_factor=2, offline=True
        )
        page.goto(page_file.resolve().as_uri())
        card = page.locator(SHOWN_FROM).first.bounding_box()
        bars = page.locator(SHOWN_TO).bounding_box()
        if card is None or bars is None:
            sys.exit(f"{page_file}: no verdict with bars is shown")
        page.screenshot(
            path=picture,
            full_page=True,
            clip={
                "x": 0,
                "y": card["y"] - MARGIN_PX,
                "width": WIDTH_PX,
                "height": bars["y"] + bars["height"] - card["y"] + 2 * MARGIN_PX,
            },
        )
        browser.close()
    # A picture of few colors looks the same with 256 of them, in a third of the bytes.
    subprocess.run(["pngquant", "--force", "--ext=.png", "--quality=80-98", picture], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_picture(Path(sys.argv[1]) / "report.html", Path(sys.argv[2]))
