"""What a terminal prints of recorded runs: few lines, none too long, and nothing twice."""

import re
from pathlib import Path

from rich.cells import cell_len

from reference.conftest import Kept
from report.in_terminal import in_terminal
from webdyno.core.judgement import Verdict
from webdyno.media.document import Section
from webdyno.report.brief import brief
from webdyno.report.headlines import next_steps
from webdyno.report.show import RunView
from webdyno.report.view import run_view

LAST = Path("last")
WIDTH = 100
MOST_CLEAR, MOST = 18, 24
SENTENCE_END = re.compile(r"[.;:] ")
WORDS_OF_A_SENTENCE = 4


def test_an_answer_takes_few_lines_and_says_nothing_twice(kept: Kept) -> None:
    view = run_view(kept.run, kept.judged)
    below = [("Report", f"runs/2026-11-28-101608-{kept.name}/report.html"), *next_steps(view, LAST)]
    lines = in_terminal(brief(view), WIDTH, below).rstrip().splitlines()
    printed = "\n".join(lines)
    assert max(map(cell_len, lines)) <= WIDTH
    assert view.several or lines == [line.rstrip() for line in lines]
    assert len(lines) <= (MOST_CLEAR if is_clear(view) else MOST), printed
    sentences = [said for said in SENTENCE_END.split(" ".join(printed.split())) if is_long(said)]
    assert sorted(set(sentences)) == sorted(sentences), printed


def is_clear(view: RunView) -> bool:
    """Whether two variants were compared, and all there is to say is who is faster."""
    decided = {Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT}
    return (
        len(view.head.experiment.variants) == 2
        and not view.several
        and {answer.tone for answer in view.answers} <= decided
        and "\nNote" not in in_terminal(brief(view), WIDTH)
        and not any(isinstance(block, Section) for block in brief(view).blocks)
    )


def is_long(said: str) -> bool:
    return len(said.split()) >= WORDS_OF_A_SENTENCE
