"""`webdyno tune`: what each system can do when all are tuned with equal effort."""

from typing import Annotated

from webdyno.core.errors import Exit
from webdyno.interfaces.cli.experiment_flags import (
    NOTHING_SAID,
    AskedFlags,
    Objectives,
    refuse_loop,
)
from webdyno.interfaces.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Output, flag


def tune(
    system: Annotated[str, flag("SYSTEM: a stack, or your own that has settings.")],
    baseline: Annotated[str | None, flag("BASELINE: another system, tuned for as long.")] = None,
    *,
    slo: Objectives = (),
    asked: AskedFlags = NOTHING_SAID,
    output: Output = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Find better settings with equal effort, then compare default and tuned.

    All systems get the same time, and all settings that the catalog marks as tunable. The best of
    many noisy values looks better than it is, so new rounds judge what was found, in the last 5 min
    of 20 for one system and of 35 for two. With --slo it tunes for the capacity. What is in
    --output already is continued.

    For example

        webdyno tune nginx-phpfpm

        webdyno tune nginx-phpfpm apache-prefork-modphp --site wordpress --time 1h

        webdyno tune nginx apache-event --set measure.decide_on=server_cpu_us

    To leave a setting alone, set it: --set nginx-phpfpm.children=16
    """
    from webdyno.config import Catalogue
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import go_on_and_show, measure_and_show
    from webdyno.media.console import notify, plain_console
    from webdyno.media.terminal import print_document
    from webdyno.questions.tune.show import search_document
    from webdyno.questions.tune.tune import FINAL, Tuning, search_in_turns

    if slo:
        refuse_loop(asked.flags.setup.set_)
    caller, known = at_terminal(run.how), Catalogue.load(run.catalog)
    tuning = Tuning.of(system, baseline, slo, asked.read(), known, output, caller)
    times = tuning.times(asked.flags.time.seconds)
    is_over = search_in_turns(tuning.contenders, times.each_s, caller)
    if not tuning.has_final:
        print_document(plain_console(), search_document(tuning.tunings()))
    if not is_over:
        notify(f"interrupted; the same command with -o {tuning.folder} continues")
        return Exit.INTERRUPTED
    final = tuning.final(times)
    if final is None:
        notify(
            "no settings were found that are better than the default: nothing is left to compare"
        )
        return Exit.OK
    path = tuning.folder / FINAL
    if tuning.has_final:
        return go_on_and_show(path, run.how)
    return measure_and_show(FINAL, final, tuning.catalogue, path, run.how, fail_if=run.fail_if)
