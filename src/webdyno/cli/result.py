"""Shows what a run's folder says: judges it, writes the report beside it, prints the answer."""

from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.model.judgement import Verdict
from webdyno.run.folder import RunFolder


def show_result(folder: RunFolder) -> Exit:
    """Judge a run, write `report.html` and `summary.csv` into its folder, print the answer.

    Of an experiment with factors every point is judged; one without a verdict is enough for the
    exit code to say so.
    """
    from webdyno.judge.sweep import judge_sweep
    from webdyno.report.page import write_report
    from webdyno.report.terminal import print_report
    from webdyno.report.view import run_view

    records = folder.records()
    judged = judge_sweep(folder.head, records)
    view = run_view(folder.head, records, judged)
    page = write_report(folder.path, view)
    print_report(plain_console(), view, page)
    verdicts = {at.judgement.verdict for at in judged.points}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK
