import json
import re
import tomllib
from pathlib import Path

import pytest

from builders import SimulatedRun
from report import runs
from webdyno.judge import judge
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Trouble
from webdyno.report import render_report
from webdyno.report.html import html_report
from webdyno.report.page import experiment_toml

FOLDER = Path("/runs/2026-03-14-static-hello")
TWO_MEGABYTES = 2_000_000
SCRIPT = re.compile(r"<script[^>]*>.*?</script>", re.DOTALL)


def page(run: SimulatedRun) -> str:
    return html_report(FOLDER, run.head, run.records, judge(run.head, run.records))


def without_scripts(html: str) -> str:
    return SCRIPT.sub("", html)


@pytest.mark.parametrize("make", runs.ALL, ids=lambda make: make.__name__)
def test_every_kind_of_run_has_a_page_of_reasonable_size(make: runs.Make) -> None:
    run = make()
    html = page(run)
    assert judge(run.head, run.records).verdict in html
    assert len(html.encode()) < TWO_MEGABYTES
    assert "undefined" not in without_scripts(html)


def test_nothing_is_fetched_from_anywhere() -> None:
    html = without_scripts(page(runs.decided()))
    links = re.findall(r"""(?:src|href)=["']([^"']*)""", html)
    assert all(link.startswith(("data:", "#")) for link in links), links
    assert "url(http" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_names_cannot_break_out_of_text_or_script() -> None:
    html = page(runs.hostile())
    assert "<img src=x" not in html
    assert "<script>alert" not in html
    assert "<b>&amp; co" not in html
    assert "{{ 7*7 }}" in html.replace("&#39;", "'")
    charts = re.search(r'<script type="application/json" id="charts">(.*?)</script>', html)
    assert charts
    assert json.loads(charts[1])


def test_findings_come_with_their_remedy() -> None:
    html = page(runs.invalid())
    assert "What to do:" in html
    assert "non-2xx" in html
    assert "404" in html


def test_the_experiment_can_be_run_again_as_it_was() -> None:
    head = runs.several_arms().head
    assert Experiment.model_validate(tomllib.loads(experiment_toml(head))) == head.experiment


def test_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    run = runs.no_block()
    (tmp_path / "report.html").write_text("an older one")
    judgement = judge(run.head, run.records)
    written = render_report(tmp_path, run.head, run.records, judgement)
    assert written == tmp_path / "report.html"
    assert written.read_text().startswith("<!DOCTYPE html>")
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.csv"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = runs.no_block()
    gone = tmp_path / "gone"
    with pytest.raises(Trouble, match=re.escape(str(gone))):
        render_report(gone, run.head, run.records, judge(run.head, run.records))
