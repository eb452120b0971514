"""Shows what a run's folder says: judges it, writes the report beside it, prints the table."""

from rich.console import Console

from webdyno.cli.exits import Exit
from webdyno.model.judgement import Verdict
from webdyno.model.records import Record
from webdyno.run.folder import RunFolder


def show_result(folder: RunFolder) -> Exit:
    """Judge a run, write `report.html` and `summary.csv` into its folder, print the verdict.

    Of an experiment with factors every point is judged; one without a verdict is enough for the
    exit code to say so.
    """
    records = folder.records()
    verdicts = _show_sweep if folder.head.experiment.factors else _show_report
    return Exit.INVALID if Verdict.INVALID in verdicts(folder, records) else Exit.OK


def _show_report(folder: RunFolder, records: list[Record]) -> list[Verdict]:
    from webdyno.judge import judge
    from webdyno.report import print_report, render_report

    judgement = judge(folder.head, records)
    render_report(folder.path, folder.head, records, judgement)
    print_report(Console(), folder.path, folder.head, records, judgement)
    return [judgement.verdict]


def _show_sweep(folder: RunFolder, records: list[Record]) -> list[Verdict]:
    from webdyno.judge.sweep import judge_sweep
    from webdyno.report import print_sweep, render_sweep

    sweep = judge_sweep(folder.head, records)
    render_sweep(folder.path, folder.head, records, sweep)
    print_sweep(Console(), folder.path, folder.head, records, sweep)
    return [at.judgement.verdict for at in sweep.points]
