"""`webdyno compare`: two runs of one experiment, such as before and after an upgrade."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console
from webdyno.cli.flags import Json
from webdyno.lab.ending import Exit
from webdyno.model.judgement import Verdict
from webdyno.run.folder import RunFolder

EXITS = {
    Verdict.FASTER: Exit.OK,
    Verdict.EQUIVALENT: Exit.OK,
    Verdict.SLOWER: Exit.WORSE,
    Verdict.INCONCLUSIVE: Exit.INCONCLUSIVE,
    Verdict.INVALID: Exit.INVALID,
    Verdict.INCOMPLETE: Exit.INCONCLUSIVE,
    Verdict.MEASURED: Exit.OK,
}


def compare(
    before: Annotated[Path, Parameter(help="The folder of the earlier run.")],
    after: Annotated[
        Path, Parameter(help="The folder of the later run: is it faster than the earlier one?")
    ],
    *,
    json: Json = False,
) -> Exit:
    """Say what changed between two runs of the same experiment; nothing is measured.

    The exit code is for scripts, by the deciding metric of all variants: 0 no change or better, 4
    worse, 5 too close to call, 1 one of the runs can't be believed or they aren't the same
    experiment.

    For example

        webdyno run static-hello --out before

        webdyno run static-hello --out after

        webdyno compare before after
    """
    from webdyno.judge.runs import compare_sweeps
    from webdyno.report.run_comparison import comparison_document
    from webdyno.report.terminal import print_document

    runs = [RunFolder.open(path) for path in (before, after)]
    compared = compare_sweeps(*(run.data() for run in runs))
    console = plain_console()
    if json:
        console.out(compared.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, comparison_document(runs[1].head, compared))
    return EXITS[compared.verdict]
