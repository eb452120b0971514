"""Shows what a run's folder says: judges it, prints the answer, writes the report beside it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webdyno.cli.console import plain_console, tell
from webdyno.cli.exits import Exit
from webdyno.model.command import command
from webdyno.model.gate import GateAnswer
from webdyno.model.judgement import Judgement, Verdict
from webdyno.model.limits import Limit, limit_answers
from webdyno.model.run import PAGE_FILE
from webdyno.run.folder import RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.report.view import JudgedRun


def show_result(
    folder: RunFolder,
    fail_on: Sequence[Limit] = (),
    *,
    report: bool = True,
    seen: "JudgedRun | None" = None,
) -> Exit:
    """Judge a run, print the answer, write `report.html` and `summary.csv` into its folder.

    Those two not without `report`.

    Of an experiment with factors every point is judged; one without a verdict is enough for the
    exit code to say so; then comes what the user wants to fail on. A gate has one answer for all
    points, which is printed alone.
    """
    from webdyno.report.result import digest
    from webdyno.report.terminal import print_document
    from webdyno.report.view import see

    judged, view = seen or see(folder.data())
    page = str(folder.path / PAGE_FILE) if report else command("report", folder.path)
    print_document(plain_console(), digest(view), page)
    if view.gate:
        code = GATE_EXITS[view.gate.answer]
    else:
        code = _exit(fail_on, [at.judgement for at in judged.points])
    # Who waits for the answer needn't wait for the charts as well: importing what draws them alone
    # takes most of a second.
    if report:
        from webdyno.report.result_page import write_report

        write_report(folder.path, view)
    return code


def _exit(fail_on: Sequence[Limit], judged: Sequence[Judgement]) -> Exit:
    if any(it.verdict is Verdict.INVALID for it in judged):
        return Exit.INVALID
    found = limit_answers(fail_on, judged)
    for it in found:
        words = {"yes": "is true", "no": "is not so", "undecided": "can't be told"}[it.holds]
        tell(f"--fail-on '{it.limit.text}' {words}{f': {it.ratio}' if it.ratio else ''}")
    held = {it.holds for it in found}
    return Exit.WORSE if "yes" in held else Exit.UNDECIDED if "undecided" in held else Exit.OK


GATE_EXITS = {
    GateAnswer.PASS: Exit.OK,
    GateAnswer.FAIL: Exit.WORSE,
    GateAnswer.CANT_TELL: Exit.UNDECIDED,
    GateAnswer.INVALID: Exit.INVALID,
}
