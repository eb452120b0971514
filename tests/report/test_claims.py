"""What becomes of claims, as it is printed, and their page."""

from io import StringIO
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from report import comparisons
from webdyno.core.base import Interval
from webdyno.core.study import Claim, ClaimRow, GeneratorAnswer, Outcome, Publication
from webdyno.media.terminal import print_document
from webdyno.report.claims import (
    claim_sentence,
    claims_digest,
    claims_markdown,
    claims_page,
)

LOW, HIGH = Interval(low=1.9, estimate=2.0, high=2.1), Interval(low=3.0, estimate=3.2, high=3.4)
RATIO: Any = {"experiment": "x", "variants": ["nginx"], "against": "apache", "above": 1.0}
ROWS = [
    ClaimRow(
        study="deathmatch",
        claim=Claim(says="nginx is [red]twice[/] as fast", published="2×", **RATIO),
        reported=[
            GeneratorAnswer(
                generator="loadgen", outcome=Outcome.HOLDS, found=[LOW, HIGH], why="it is so"
            ),
            GeneratorAnswer(
                generator="ab", outcome=Outcome.NOT_JUDGED, found=[], why="the client was busy"
            ),
        ],
    ),
    ClaimRow(
        study="deathmatch",
        claim=Claim(says="caches help", published="", **RATIO),
        reported=[],
        why="no such tool",
    ),
]
BLOCKS = """\
deathmatch
  holds         nginx is [red]twice[/] as fast
  published     2×
  done right    2.00× (1.90–2.10) to 3.20× (3.00–3.40)
  as published  ab: not judged
  why           it is so

  not judged  caches help
  why         no such tool
"""


def printed(width: int) -> str:
    output = StringIO()
    print_document(Console(file=output, width=width, markup=False), claims_digest(ROWS))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def test_a_claim_is_a_block_of_lines() -> None:
    assert printed(80) == BLOCKS


def test_it_fits_into_narrow_terminals() -> None:
    assert max(map(cell_len, printed(40).splitlines())) <= 40


def test_the_table_puts_both_measurements_next_to_the_published_figure() -> None:
    lines = claims_markdown(ROWS).splitlines()
    assert lines[0].startswith("| study | claim | published | done right | as published |")
    assert lines[2].startswith(
        "| deathmatch | nginx is \\[red\\]twice\\[/\\] as fast | 2× | 2.00× (1.90"
    )
    assert lines[2].endswith("| ab: not judged | holds | it is so |")


def test_a_bar_in_a_text_does_not_end_its_cell() -> None:
    row = ROWS[1].model_copy(update={"why": "a|b"})
    assert claims_markdown([row]).splitlines()[2].endswith("| a\\|b |")


def test_how_many_hold_is_said_in_a_sentence() -> None:
    holds, untold = ROWS
    shown = holds.reported[0].model_copy(update={"outcome": Outcome.SHOWN})
    assert claim_sentence(ROWS) == "Of 2 claims 1 holds here, none do not; 1 stays open."
    assert claim_sentence([holds, holds.model_copy(update={"reported": [shown]})]) == (
        "Of 1 claim 1 holds here, none do not; none stay open."
    )
    assert claim_sentence([untold.model_copy(update={"reported": [shown]})]).startswith(
        "Nothing here is"
    )


STUDY = Publication(
    name="deathmatch",
    title="<b>A title</b>",
    setting="long ago",
    experiments=["x", "y"],
    claims=[row.claim for row in ROWS],
)


def page_of_claims(folder: Path) -> Path:
    """Write the page of a study of which one experiment was measured, with a hostile title."""
    page = folder / "claims.html"
    measured = {"x": comparisons.decided().head}
    page.write_text(claims_page([STUDY], ROWS, measured, "webdyno list studies deathmatch"))
    return page


def test_the_page_has_claims_outcomes_and_reports_and_no_markup_of_others(tmp_path: Path) -> None:
    page = page_of_claims(tmp_path).read_text()
    assert "<title>&lt;b&gt;A title&lt;/b&gt;</title>" in page
    assert "<b>A title" not in page
    assert '<a href="x/report.html">x</a>' in page
    assert 'href="y/report.html"' not in page
    assert '<pre tabindex="0"><code>webdyno list studies deathmatch</code></pre>' in page
    assert page.count("<h2>Machine</h2>") == 1
