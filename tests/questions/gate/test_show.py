"""What a gate prints in a terminal, and what its page says."""

import re
from pathlib import Path

from rich.console import Console

from builders import SimulatedVariant
from questions.gate.test_ci import FAIL, OPEN, PASS
from questions.gate.test_decide import gate_run, judged_whole
from questions.gate.test_growth import AFTER, BEFORE, profiled
from report import questions, runs
from webdyno.core.limits import GateJudgement
from webdyno.evidence.point_data import RunData
from webdyno.media.terminal import print_document
from webdyno.questions.gate.comment import details_markdown
from webdyno.questions.gate.show import GateWhole, gate_document
from webdyno.report.brief import summary
from webdyno.report.result_page import html_page
from webdyno.report.view import see


def printed(found: GateJudgement, width: int = 100) -> str:
    console = Console(width=width, record=True, markup=False, highlight=False)
    print_document(console, gate_document(found))
    return console.export_text()


def test_the_answer_comes_first_and_claims_below() -> None:
    text = printed(FAIL)
    assert text.startswith("✗ FAIL: /b_c needs 30% more CPU per request (95% CI +28 to +32%; ")
    row = next(line for line in text.splitlines() if "130 µs" in line)
    assert "+28 to +32%" in row
    assert row.rstrip().endswith("worse")
    assert "head: the working tree; baseline: main (1a2b3c4)" in text


def test_a_narrow_terminal_gets_a_list_in_the_place_of_the_table() -> None:
    text = printed(FAIL, width=60)
    assert "  CPU per request: ✗ worse" in text
    assert "    main: 100 µs; working tree: 130 µs; change: +30%; 95%" in text


def test_the_other_answers_have_words_of_their_own() -> None:
    assert printed(PASS).startswith("✓ PASS: 2 checks within limits")
    assert printed(OPEN).startswith("? INCONCLUSIVE: / CPU per request may ")


def test_the_page_of_a_gate_begins_with_its_one_answer(tmp_path: Path) -> None:
    page = html_page(tmp_path, runs.seen(questions.gated()))
    reported = re.sub(
        r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition('<main id="summary">')[2])
    )
    assert reported.startswith(" ✗ FAIL /hello.txt has 48% less throughput (95% CI −")
    assert "Compared head: head; baseline: baseline" in reported
    assert "<title>The working tree against main · fail</title>" in page


def test_the_summary_of_a_gate_has_its_answer() -> None:
    assert "### ✗ FAIL: /hello.txt has " in summary(runs.seen(questions.gated()))


def test_a_cause_that_is_only_a_part_says_so() -> None:
    """CPU per request rose by 21% where throughput fell by 48%."""
    text = " ".join(printed(judged_whole(questions.gated().whole)).split())
    part = "by CPU alone throughput would be at −17%, not −48%: the rest is waiting or idle CPUs"
    assert f"in the kernel; {part} Compared" in text
    all_of_it = gate_run(SimulatedVariant(throughput_rps=30_000, server_cpu_us=27))
    assert "by CPU alone" not in printed(judged_whole(all_of_it.whole))


def test_what_grew_stands_in_the_answer_the_page_and_the_comment_s_details(tmp_path: Path) -> None:
    run = questions.gated()
    profiles = {0: profiled(BEFORE, AFTER | {"<b>x</b> (app.js)": 2.0}).whole}
    view = see(RunData(run.head, run.records, profiles)).view
    assert isinstance(view.whole, GateWhole)
    assert "Cause     /hello.txt +" in printed(view.whole.gate)
    page = html_page(tmp_path, view)
    assert "What grew at /hello.txt, by 6 profile rounds" in page
    assert "search (app.js)" in page
    assert "<b>x</b>" not in page
    details = details_markdown(view.whole.gate)
    assert "| search (app.js) |" in details
    assert "\\<b\\>x" in details
    assert "all of it" in details
