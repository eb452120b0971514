"""Shows what a run's folder says: judges it, prints the answer, writes the report beside it."""

from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.model.judgement import Verdict
from webdyno.model.run import PAGE_FILE
from webdyno.run.folder import RunFolder


def show_result(folder: RunFolder) -> Exit:
    """Judge a run, print the answer, write `report.html` and `summary.csv` into its folder.

    Of an experiment with factors every point is judged; one without a verdict is enough for the
    exit code to say so.
    """
    from webdyno.judge.sweep import judge_sweep
    from webdyno.report.terminal import print_report
    from webdyno.report.view import run_view

    records = folder.records()
    judged = judge_sweep(folder.head, records)
    view = run_view(folder.head, records, judged)
    print_report(plain_console(), view, folder.path / PAGE_FILE)
    # Who waits for the answer needn't wait for the charts as well: importing what draws them alone
    # takes most of a second.
    from webdyno.report.page import write_report

    write_report(folder.path, view)
    verdicts = {at.judgement.verdict for at in judged.points}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK
