"""`webdyno diff`: two runs of one experiment, such as before and after an upgrade."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.core.exit_codes import Exit
from webdyno.interfaces.cli.flags import TEXT, Format, is_json


def diff(
    before: Annotated[Path, Parameter(help="RUN: folder of the earlier run.")],
    after: Annotated[Path, Parameter(help="RUN: folder of the later run.")],
    *,
    format_: Format = TEXT,
) -> Exit:
    """Show what changed between two runs of the same experiment; nothing is measured.

    The exit code goes by the deciding metric of all variants.

    For example

        webdyno run static-hello -o before

        webdyno run static-hello -o after

        webdyno diff before after
    """
    from webdyno.comparison.runs import compare_sweeps
    from webdyno.interfaces.cli.result import exit_of_difference, working_on
    from webdyno.measure.folder import RunFolder
    from webdyno.media.console import plain_console
    from webdyno.media.terminal import print_document
    from webdyno.report.run_comparison import comparison_document

    as_json = is_json(format_)
    runs = [RunFolder.open(path) for path in (before, after)]
    with working_on("reading and judging", *runs):
        compared = compare_sweeps(*(run.data() for run in runs))
    console = plain_console()
    if as_json:
        console.out(compared.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, comparison_document(runs[1].head, compared))
    return exit_of_difference(compared.verdict)
