"""Writes the report's files into a run's folder."""

import os
from pathlib import Path

from webdyno.model.judgement import Judgement
from webdyno.model.mistake import Trouble
from webdyno.model.point import Point, PointJudgement, SweepJudgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report.summary import summary_csv

PAGE_FILE = "report.html"
SUMMARY_FILE = "summary.csv"


def render_report(folder: Path, head: RunHead, records: list[Record], judgement: Judgement) -> Path:
    """Write `report.html` and `summary.csv` into the run's folder; give the page's path.

    Earlier ones are replaced as a whole or not at all. Raises Trouble when they can't be written.
    """
    from webdyno.report.html import html_report  # takes a second to import

    only = PointJudgement(point=Point(number=0, levels={}), judgement=judgement)
    page = html_report(folder, head, records, judgement)
    return _write(folder, page, summary_csv(head, [only]))


def render_sweep(folder: Path, head: RunHead, records: list[Record], sweep: SweepJudgement) -> Path:
    """Do the same for an experiment with factors."""
    from webdyno.report.sweep.html import sweep_report  # takes a second to import

    page = sweep_report(folder, head, records, sweep)
    return _write(folder, page, summary_csv(head, sweep.points))


def _write(folder: Path, page: str, summary: str) -> Path:
    _replace(folder / SUMMARY_FILE, summary)
    _replace(folder / PAGE_FILE, page)
    return folder / PAGE_FILE


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise Trouble(
            f"{path}: can't be written: {error.strerror}. The run itself is safe; once that is "
            f"mended, `webdyno report {path.parent}` makes the report again."
        ) from error
