"""Which paths of a log are pages of a twin, and what they cost."""

import json
from pathlib import Path

import pytest

from in_process import webdyno
from traffic.made import line, read
from webdyno.traffic import Manner, Traffic, traffic_of

PAGE_MS, ASSET_MS = 40.0, 300.0


def answered(path: str, ms: float, *, size: int = 100, status: int = 200) -> str:
    """Give a line with Apache's `%D` at its end."""
    return f"{line(path, size=size, status=status).rstrip()} {round(ms * 1000)}\n"


SHOP = 5 * (
    answered("/", PAGE_MS) * 3
    + answered("/", 60 * PAGE_MS)  # once something else was going on
    + answered("/cart.php", 10)
    + answered("/item/7", 20, size=70)
    + answered("/old", 5, status=301)
    + answered("/about.html", 0.4) * 3
    + answered("/logo.PNG", ASSET_MS)  # a client that reads slowly
)


def shop(tmp_path: Path, text: str = SHOP) -> Traffic:
    return traffic_of(read(tmp_path / "a.log", text), Manner(), twin="pages")


def test_paths_that_took_time_become_pages_of_their_cost(tmp_path: Path) -> None:
    twin = shop(tmp_path).twin
    assert twin is not None
    assert twin.site["needs"] == ["static", "php|node"]
    costs = {path: page.cpu_ms for path, page in twin.pages.items()}
    root, item, old = (it["path"] for it in twin.requests if it["path"].startswith("/twin-"))
    assert costs == {root: 40, "/cart.php": 10, item: 20, old: 5}
    assert item.endswith(".php")
    assert twin.site["paths"][item] == {"body_bytes": 70}
    assert "page(40, 100)" in twin.site["files"][root[1:]]["text"]
    assert twin.site["files"]["logo.PNG"] == {"size_bytes": 100}


def test_what_was_taken_is_reported(tmp_path: Path) -> None:
    found = shop(tmp_path, SHOP * 10).workload  # enough to see that it is no Zipf's law
    assert found.pages is not None
    assert found.pages.paths == 4
    assert found.pages.share == pytest.approx(7 / 11)
    assert found.pages.cpu_s == pytest.approx((4 * 0.04 + 0.01 + 0.02 + 0.005) / 7)
    cost = next(it for it in found.fidelity if it.what == "ms to make a response, mean")
    assert cost.load == pytest.approx((4 * 40 + 10 + 20 + 5) / 11)
    assert cost.log == pytest.approx((63 * 40 + 10 + 20 + 5 + 3 * 0.4 + 300) / 11)
    assert cost.agrees is False


def test_a_log_that_shows_no_times_has_a_twin_of_files(tmp_path: Path) -> None:
    found = shop(tmp_path, (line("/") + line("/cart.php")) * 9)
    assert found.twin is not None
    assert (found.twin.pages, found.twin.site["needs"]) == ({}, ["static"])
    assert found.workload.pages is None
    assert not any("ms to make" in it.what for it in found.workload.fidelity)


def test_of_paths_with_few_answers_those_that_end_alike_report_together(tmp_path: Path) -> None:
    articles = "".join(answered(f"/article/{n}", 20 + n) for n in range(5))
    once_slow = "".join(answered(f"/{n}.html", 90 if n == 0 else 0.3) for n in range(5))
    seldom = answered("/report.cgi", 800) * 4
    twin = shop(tmp_path, articles + once_slow + seldom).twin
    assert twin is not None
    assert [page.cpu_ms for page in twin.pages.values()] == [22] * 5


def test_a_twin_of_files_alone_can_be_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(SHOP)
    for kind, pages in (("pages", 4), ("files", 0)):
        out, twin = tmp_path / f"{kind}.toml", tmp_path / kind
        log = tmp_path / "a.log"
        assert webdyno("traffic", log, "-o", out, "--twin", twin, "--twin-of", kind) == 0
        table = (twin / "sites/twin/app/pages.json").read_text(encoding="utf-8")
        assert len(json.loads(table)) == pages
        assert ("pages        4 paths, " in capfd.readouterr().out) is (kind == "pages")
