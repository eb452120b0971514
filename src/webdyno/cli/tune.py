"""`webdyno tune`: what each variant can do when both are tuned with equal effort."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.capacity import refuse_loop
from webdyno.cli.console import plain_console, tell
from webdyno.cli.experiment_flags import NOTHING_SAID, AskedFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, parse_duration_s
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import go_on_and_show, measure_and_show
from webdyno.definitions import Catalogue
from webdyno.lab.ending import Exit
from webdyno.lab.tune import FINAL, Tuning, search_in_turns


def tune(
    stack: Annotated[
        str, Parameter(help="What is tuned: a stack, or a system of your own that has settings.")
    ],
    baseline: Annotated[
        str | None, Parameter(help="What it is compared with, tuned for as long.")
    ] = None,
    *,
    each: Annotated[
        str, Parameter(help="Time for the search of each variant, such as 30m.")
    ] = "15m",
    slo: Annotated[
        Sequence[str],
        Parameter(
            help="Tune for the capacity under this objective, as in capacity; may be given again."
        ),
    ] = (),
    asked: AskedFlags = NOTHING_SAID,
    out: Annotated[
        Path | None, Parameter(help="Folder of the runs; what is in it already is gone on with.")
    ] = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Look for better settings of one or two stacks, then compare default and tuned again.

    Both variants get the same time, and all settings that their stacks have for it in the
    catalogue, each with its range and the vendor's documentation. What the search thinks of its
    best isn't reported as a result, since the best of many noisy values looks better than it is:
    fresh rounds judge it. --budget is for these (5m).

    For example

        webdyno tune nginx-phpfpm

        webdyno tune nginx-phpfpm apache-prefork-modphp --site wordpress --each 15m

        webdyno tune nginx apache-event --set measure.decide_on=server_cpu_us

        webdyno tune nginx-phpfpm --site wordpress --slo 'p99<500ms' --each 1h

    To leave a setting alone, set it: --set variants.nginx-phpfpm.settings.children=16
    """
    from webdyno.report.terminal import print_document
    from webdyno.report.tuning import search_document

    if slo:
        refuse_loop(asked.flags.setup.set_)
    each_s = parse_duration_s(each, "--each")
    caller, known = at_terminal(run.how), Catalogue.load(run.catalog)
    tuning = Tuning.of(stack, baseline, slo, asked.read(), known, out, caller)
    is_over = search_in_turns(tuning.contenders, each_s, caller)
    if not tuning.has_final:
        print_document(plain_console(), search_document(tuning.found()))
    if not is_over:
        tell(f"interrupted; the same command with --out {tuning.folder} goes on")
        return Exit.INTERRUPTED
    final = tuning.final(usual_budget=asked.flags.budget.given is None and not slo)
    if final is None:
        tell("no settings were found that are better than the default: nothing is left to compare")
        return Exit.OK
    path = tuning.folder / FINAL
    if tuning.has_final:
        return go_on_and_show(path, run.how)
    return measure_and_show(FINAL, final, tuning.catalogue, path, run.how, fail_on=run.fail_on)
