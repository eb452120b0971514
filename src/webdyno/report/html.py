"""`report.html` of an experiment without factors."""

from pathlib import Path

from webdyno.model.judgement import Judgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report.evidence import headline_sentences
from webdyno.report.facts import how_measured
from webdyno.report.page import page
from webdyno.report.view import point_view


def html_report(folder: Path, head: RunHead, records: list[Record], judgement: Judgement) -> str:
    """Give the page as text."""
    view = point_view(head, records, judgement)
    return page(
        "report.html",
        folder,
        head,
        view.figures.values(),
        view=view,
        judgement=judgement,
        headline=headline_sentences(judgement),
        how=how_measured(head, records, judgement.blocks),
    )
