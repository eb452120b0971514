"""What a gate prints in a terminal of 80 columns."""

from rich.console import Console

from report.test_ci import FAIL, OPEN, PASS
from webdyno.model.gate import GateJudgement
from webdyno.report.gate import print_gate


def printed(found: GateJudgement) -> str:
    console = Console(width=80, record=True, markup=False, highlight=False)
    print_gate(console, found)
    return console.export_text()


def test_the_answer_comes_first_and_claims_below() -> None:
    text = printed(FAIL)
    assert text.startswith("✗ FAIL  more than 5 % slower: /b_c server CPU time per request")
    row = next(line for line in text.splitlines() if "100.0 → 130.0 µs" in line)
    assert "+28 to +32 %" in row
    assert row.rstrip().endswith("worse")
    assert "the working tree against main (1a2b3c4)" in text


def test_the_other_answers_have_words_of_their_own() -> None:
    assert printed(PASS).startswith("✓ PASS  not more than 5 % slower")
    assert printed(OPEN).startswith("? CAN'T TELL  1 of 2 are open: ")
