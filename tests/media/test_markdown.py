"""A run's summary as Markdown, and its charts as files."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from report import comparisons, questions, runs, sweeps
from report.approved import assert_as_approved
from webdyno.report.brief import summary
from webdyno.report.result_page import write_charts

PNG = b"\x89PNG"


@pytest.mark.parametrize("make", [*runs.ALL, *sweeps.SWEEPS], ids=lambda make: make.__name__)
def test_tables_have_as_many_cells_as_columns(make: runs.Make) -> None:
    lines = summary(runs.seen(make())).splitlines()
    rows = [line.replace("\\|", "") for line in lines if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)
    for above, below in pairwise(rows):
        if "---" in below:
            assert above.count("|") == below.count("|")


def test_the_summary_reads_as_it_was_last_approved() -> None:
    assert_as_approved("markdown-decided", summary(runs.seen(comparisons.decided())))
    assert_as_approved("markdown-ranking", summary(runs.seen(questions.ranking())))


def test_markup_of_others_is_text() -> None:
    said = summary(runs.seen(comparisons.hostile()))
    assert "<script>" not in said
    assert "](http" not in said.replace("\\]", "")


@pytest.mark.parametrize("make", [comparisons.decided, questions.ranking, sweeps.connections])
def test_charts_are_pictures_of_their_own(make: runs.Make, tmp_path: Path) -> None:
    written = write_charts(tmp_path / "charts", runs.seen(make()))
    assert len(written) >= 4
    for file in written:
        if file.suffix == ".png":
            assert file.read_bytes().startswith(PNG)
            continue
        text = file.read_text(encoding="utf-8")
        assert Xml.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 (ours)
        assert "var(" not in text
