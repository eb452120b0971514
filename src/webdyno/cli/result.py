"""Shows what a run's folder says: judges it, writes the report beside it, prints the table."""

from rich.console import Console

from webdyno.cli.exits import Exit
from webdyno.model.judgement import Verdict
from webdyno.run.folder import RunFolder


def show_result(folder: RunFolder) -> Exit:
    """Judge a run, write `report.html` and `summary.csv` into its folder, print the verdict."""
    from webdyno.judge import judge
    from webdyno.report import print_report, render_report

    records = folder.records()
    judgement = judge(folder.head, records)
    render_report(folder.path, folder.head, records, judgement)
    print_report(Console(), folder.path, folder.head, records, judgement)
    return Exit.INVALID if judgement.verdict is Verdict.INVALID else Exit.OK


def tell_where(folder: RunFolder) -> None:
    """Say where the slots of an interrupted run are, and what can be done with them."""
    Console(stderr=True).print(
        f"\ninterrupted; every finished slot is in {folder.path}\n"
        f"webdyno resume {folder.path}   goes on\n"
        f"webdyno report {folder.path}   judges what is there"
    )
