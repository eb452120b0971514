"""Writes the report's files into a run's folder."""

import os
from pathlib import Path

from webdyno.model.judgement import Judgement
from webdyno.model.mistake import Trouble
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

    _replace(folder / SUMMARY_FILE, summary_csv(head, judgement))
    page = folder / PAGE_FILE
    _replace(page, html_report(folder, head, records, judgement))
    return page


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
