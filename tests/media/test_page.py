import os
import re
import resource
from functools import cache
from pathlib import Path

import pytest

from builders import SimulatedRun, SimulatedVariant, preflight_record
from report import comparisons, runs, sweeps
from webdyno.core.errors import OperationError
from webdyno.media.document import Document, Table
from webdyno.media.page import html, prose
from webdyno.report.brief import brief
from webdyno.report.result_page import html_page, write_report
from webdyno.report.words import within_a_round, worst_case_words

FOLDER = Path("/runs/2026-03-14-static-hello")
HALF_A_MEGABYTE = 500_000
SCRIPT = re.compile(r"<script[^>]*>.*?</script>", re.DOTALL)


@cache
def page(run: SimulatedRun) -> str:
    return html_page(FOLDER, runs.seen(run))


def without_scripts(html: str) -> str:
    return SCRIPT.sub("", html)


@pytest.mark.parametrize("make", runs.ALL, ids=lambda make: make.__name__)
def test_every_kind_of_run_has_a_page_of_reasonable_size(make: runs.Make) -> None:
    run = make()
    html = page(run)
    assert runs.seen(run).points[0].judgement.verdict in html
    assert len(html.encode()) < HALF_A_MEGABYTE
    assert "undefined" not in without_scripts(html)


def test_a_report_is_written_in_the_place_of_a_link_and_not_where_that_leads(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("kept")
    (tmp_path / "report.html").symlink_to(theirs)
    for pid in range(os.getpid() - 5, os.getpid() + 5):
        (tmp_path / f".report.html.{pid}").symlink_to(theirs)
    assert not write_report(tmp_path, runs.seen(comparisons.decided())).is_symlink()
    assert theirs.read_text() == "kept"


def test_nothing_is_fetched_from_anywhere() -> None:
    html = without_scripts(page(comparisons.decided()))
    links = re.findall(r"""(?:src|href)=["']([^"']*)""", html)
    assert all(link.startswith(("data:", "#")) for link in links), links
    assert "url(http" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_names_cannot_break_out_of_text_or_script() -> None:
    html = page(comparisons.hostile())
    assert "<img src=x" not in html
    assert "<script>alert" not in html
    assert "<b>&amp; co" not in html
    assert "{{ 7*7 }}" in html.replace("&#39;", "'")


def test_what_servers_answer_cannot_turn_the_text_around() -> None:
    html = page(comparisons.hostile_words())
    assert "\ufffdtxet" in html
    assert "خادم الويب" in html
    assert not {"\u202e", "\u2066", "\x1b", "\a"} & set(html)


def test_warnings_come_with_their_fix() -> None:
    html = page(comparisons.invalid())
    assert "What to do:" in html
    assert "non-2xx" in html
    assert "404" in html


def test_it_says_how_to_repeat_the_run() -> None:
    html = page(comparisons.several_variants())
    assert f"run {FOLDER}/experiment.toml --catalog {FOLDER}/catalog</code>" in html
    assert "[variants.nginx]" in html


def test_second_lines_of_intervals_are_shown_and_explained() -> None:
    quiet, interfered = page(comparisons.decided()), page(comparisons.interference())
    (found,) = runs.seen(comparisons.interference()).deciding[0].comparisons
    assert worst_case_words(found) in interfered
    assert "Worst case: all interference is counted" in interfered
    assert "Worst case: all interference is counted" not in quiet
    p99 = next(
        it for it in runs.seen(comparisons.decided()).points[0].alongside if "p99" in it.title
    )
    assert all(within_a_round(row.value) in quiet for row in p99.rows)
    assert "where the percentile of one typical round lies" in quiet


def test_links_at_the_top_lead_to_sections_that_exist() -> None:
    for make, named in (
        (comparisons.decided, ["Summary", "Latency", "Resources", "Method", "Reproduce"]),
        (sweeps.two_factors, ["Summary", "Points", "Method", "Reproduce"]),
        (comparisons.no_round, ["Summary", "Method", "Reproduce"]),
    ):
        html = page(make())
        links = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', html)
        assert [name for _, name in links] == named
        assert all(html.count(f' id="{to}"') == 1 for to, _ in links)


def test_the_deciding_table_is_that_of_the_terminal() -> None:
    seen = runs.seen(comparisons.decided())
    shown = next(it for it in brief(seen).blocks if isinstance(it, Table))
    drawn = html(Document("", "", [shown]), brand="", version="")
    row = re.compile(r"<tr>\n.*?</tr>", re.DOTALL)
    terminals, pages = row.findall(drawn), row.findall(page(comparisons.decided()))
    assert len(terminals) > 4
    assert [it for it in pages if it in terminals] == terminals


def test_the_table_on_top_has_the_tail_and_the_failures() -> None:
    table = (
        page(comparisons.decided()).partition('<table class="brief">')[2].partition("</table>")[0]
    )
    heads = re.findall(r'<th scope="row">(?:<b>)?(.*?)<', table)
    assert [it for it in heads if it.startswith(("Failed", "Latency"))] == [
        "Latency p50",
        "Latency p95",
        "Latency p99",
        "Latency p99.9",
        "Failed requests",
    ]


def test_statisticians_find_what_they_ask_for() -> None:
    html = page(comparisons.decided())
    folded = html[html.index("For statisticians") : html.index('id="latency"')]
    for said in (
        "Student&#39;s t on log ratios",
        "0.0078",
        "95% prediction interval (one more round)",
        "the minimum for 8",
        "never at significance",
        "the verdict rests on a single comparison",
        "each CI holds at 95% by itself",
        "0 of 64 slots excluded",
        "1.91, 1.99, ",
    ):
        assert said in folded
    assert "worst-case CI" in folded


def test_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    run = comparisons.no_round()
    (tmp_path / "report.html").write_text("an older one")
    written = write_report(tmp_path, runs.seen(run))
    assert written == tmp_path / "report.html"
    assert written.read_text().startswith("<!DOCTYPE html>")
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.csv"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = comparisons.no_round()
    gone = tmp_path / "gone"
    with pytest.raises(OperationError, match=re.escape(str(gone))):
        write_report(gone, runs.seen(run))


def test_half_a_character_in_a_record_does_not_cost_the_report(tmp_path: Path) -> None:
    half = SimulatedVariant(headers=(("ETag", "half \ud83d"),))
    preflight = preflight_record({"nginx": SimulatedVariant(), "apache": half})
    page = write_report(tmp_path, runs.seen(SimulatedRun(comparisons.no_round().head, [preflight])))
    assert "half \\ud83d" in page.read_text()


def test_flags_are_code_that_is_not_broken() -> None:
    assert prose("make it longer (--set a.b=5), or `run --full`; a--b") == (
        'make it longer (<code><span class="flag">--set</span> a.b=5</code>), or '
        '<code>run <span class="flag">--full</span></code>; a--b'
    )


def test_each_point_of_a_sweep_is_there_folded() -> None:
    html = page(sweeps.two_factors())
    drawn = set(re.findall(r'data-chart="([^"]+)"', html))
    assert {"ratios-0", "ratios-1", "throughput_rps-1", "memory_mib-0"} <= drawn
    assert {"point-0-latency", "point-5-slots", "point-5-host-servers"} <= drawn
    assert html.count('<details class="point">') == 6


def test_a_sweep_in_which_nothing_was_measured_has_a_page() -> None:
    assert "Nothing was measured" in page(SimulatedRun(sweeps.two_factors().head, []))


def test_sentences_are_typeset() -> None:
    assert prose("within 2% of `<a>` & 3 ms") == (
        "within 2% of <code>&lt;a&gt;</code> &amp; 3\u202fms"
    )


def test_where_addresses_are_limited_a_chart_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """V8 would end the whole process."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**32, resource.RLIM_INFINITY))
    with pytest.raises(
        OperationError, match="allows 4 GiB; lift that limit with ulimit -v unlimited"
    ):
        html_page(FOLDER, runs.seen(comparisons.decided()))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    html_page(FOLDER, runs.seen(comparisons.decided()))
