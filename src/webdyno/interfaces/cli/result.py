"""Measures for a command and shows what came of it: the answer, and the report next to it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.config import Catalogue
from webdyno.core.errors import MEANINGS, Exit, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import MIB
from webdyno.core.format import size
from webdyno.core.judgement import Judgement, Verdict
from webdyno.core.limits import Limit, limit_answers, read_limits
from webdyno.core.metrics import INSTRUCTIONS
from webdyno.core.registry import command
from webdyno.core.run import PAGE_FILE, RUNS_FOLDER
from webdyno.interfaces.cli.flags import LAST, RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.measure import (
    MeasuredRun,
    has_enough,
    measure_again,
    measure_on,
    measure_sweeps,
    what_is_kept,
)
from webdyno.measure.folder import RunFolder, newest_run
from webdyno.measure.records_file import RECORDS_FILE
from webdyno.media.console import notify, plain_console
from webdyno.probes.instructions import check_counted

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.report.view import JudgedRun

LONG_BYTES = 8 * MIB
"""Records of which judging and drawing take ten seconds or more."""
Show = Callable[[RunFolder], Exit]
"""Shows what was measured, and gives the exit code that fits."""
Afterwards = Callable[[Path], Exit]
"""What is asked of a run that came to its end, by its folder; what the run came to is known by
then, and its exit code stays unless this one is interrupted."""


def measure_and_show(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    how: RunFlags,
    *,
    fail_if: Sequence[str] = (),
    show: Show | None = None,
    afterwards: Afterwards | None = None,
) -> Exit:
    """Run an experiment from its first round on, and show what came of it."""
    limits = _read_fail_if(fail_if, experiment)
    experiment = _count_for(limits, experiment)
    measured = measure_again(name, experiment, catalogue, out, at_terminal(how))
    show = show or showing(how, limits)
    return show_measured(measured, show, afterwards)


def go_on_and_show(
    path: Path, how: RunFlags, more_s: float | None = None, afterwards: Afterwards | None = None
) -> Exit:
    """Continue a run where it was interrupted, or for so long, and show what came of it."""
    measured = measure_on(path, at_terminal(how), more_s)
    return show_measured(measured, showing(how), afterwards)


def show_measured(measured: MeasuredRun, show: Show, afterwards: Afterwards | None = None) -> Exit:
    """Show what was measured; where it didn't come to its end, how to continue."""
    folder = measured.folder
    if measured.interrupted:
        if has_enough(folder):
            show(folder)
        notify(f"\ninterrupted; {what_is_kept(folder)}")
        return Exit.INTERRUPTED
    code = show(folder)
    if measured.end == "died":
        notify(f"a server died; {what_is_kept(folder)}")
        return code
    if afterwards is not None and (end := afterwards(folder.path)) is Exit.INTERRUPTED:
        return end
    return code


def showing(how: RunFlags, limits: Sequence[Limit] = ()) -> Show:
    return partial(show_result, fail_if=limits, report=how.report, verbose=how.verbosity.verbose)


def sweeps_afterwards(how: RunFlags) -> Afterwards:
    """Return what measures, or continues, the sweeps next to a search, in its folder."""

    def sweep(run: Path) -> Exit:
        show = showing(how)
        for measured in measure_sweeps(run, at_terminal(how)):
            if show_measured(measured, show) is Exit.INTERRUPTED:
                return Exit.INTERRUPTED
        if how.report and (folder := RunFolder.open(run)).head.experiment.sweep_s is not None:
            draw(folder)  # again: now with links to what stands next to it
        return Exit.OK

    return sweep


def draw(run: RunFolder) -> None:
    """Judge a run and write its report, without printing an answer."""
    from webdyno.report.result_page import write_report

    view = judged_run(run).view
    with working_on("drawing", run):
        write_report(run.path, view)


def judged_run(folder: RunFolder) -> "JudgedRun":
    """Read a run and judge it."""
    from webdyno.report.view import see

    with working_on("reading and judging", folder):
        return see(folder.data())


@contextmanager
def working_on(doing: str, *folders: RunFolder) -> Iterator[None]:
    """Show what is being done where records are so many that it takes a while."""
    files = [folder.path / RECORDS_FILE for folder in folders]
    records_bytes = sum(file.stat().st_size for file in files if file.is_file())
    if records_bytes < LONG_BYTES:
        yield
        return
    words = f"{doing} {size(records_bytes)} of slots, which takes a while"
    console = plain_console(stderr=True)
    if not console.is_terminal:
        notify(f"{words} …")
        yield
        return
    with console.status(words):
        yield


def _read_fail_if(texts: Sequence[str], experiment: Experiment) -> list[Limit]:
    limits = []
    for text in texts:
        try:
            limits += read_limits(text, experiment)
        except ValueError as error:
            raise UserError(f"--fail-if '{text}': {error}") from None
    return limits


def _count_for(limits: Sequence[Limit], experiment: Experiment) -> Experiment:
    """Have the experiment count what limits are about; raise UserError where it can't."""
    limit = next((limit for limit in limits if limit.metric == INSTRUCTIONS), None)
    if limit is None:
        return experiment
    if experiment.testbed.kind != "cluster":  # its hosts look themselves
        check_counted(f"--fail-if '{limit.text}'")
    return experiment.with_measure(count_instructions=True)


def show_result(
    folder: RunFolder,
    fail_if: Sequence[Limit] = (),
    *,
    report: bool = True,
    verbose: bool = False,
    seen: "JudgedRun | None" = None,
) -> Exit:
    """Judge a run and print the answer; with `report` write `report.html` and `summary.csv`, too.

    With `verbose` all is printed that the page has in words. One point without a verdict is enough
    for the exit code to say so; then comes what the user wants to fail on.
    """
    from webdyno.media.terminal import print_document
    from webdyno.report.brief import brief, in_full
    from webdyno.report.headlines import next_steps

    judged, view = seen or judged_run(folder)
    page = str(folder.path / PAGE_FILE) if report else command("report", folder.path)
    below = [("Report", page), *next_steps(view, _as_typed(folder.path))]
    judgements = [point.judgement for point in judged.points]
    code = view.whole.exit_code if view.whole else _exit_code(fail_if, judgements)
    if view.whole or code:
        below.append(("Exit code", f"{code:d}: {MEANINGS[code]}"))
    print_document(plain_console(), in_full(view) if verbose else brief(view), below)
    if report:  # after the answer: importing what draws charts takes most of a second
        from webdyno.report.result_page import write_report

        with working_on("drawing", folder):
            write_report(folder.path, view)
    return code


def _as_typed(run: Path) -> Path:
    """Return a run's folder as commands take it in the fewest letters: the newest is the last."""
    newest = newest_run(RUNS_FOLDER)
    return LAST if newest and newest.resolve() == run.resolve() else run


def _exit_code(fail_if: Sequence[Limit], judged: Sequence[Judgement]) -> Exit:
    if any(judgement.verdict is Verdict.INVALID for judgement in judged):
        return Exit.INVALID
    answers = limit_answers(fail_if, judged)
    words = {"yes": "is true", "no": "is not so", "inconclusive": "is inconclusive"}
    for answer in answers:
        ratio = f": {answer.ratio}" if answer.ratio else ""
        notify(f"--fail-if '{answer.limit.text}' {words[answer.holds]}{ratio}")
    held = {answer.holds for answer in answers}
    return Exit.WORSE if "yes" in held else Exit.INCONCLUSIVE if "inconclusive" in held else Exit.OK


def exit_of_difference(verdict: Verdict) -> Exit:
    """Return the exit code for what became of the deciding metric."""
    codes = {
        Verdict.SLOWER: Exit.WORSE,
        Verdict.INCONCLUSIVE: Exit.INCONCLUSIVE,
        Verdict.INVALID: Exit.INVALID,
        Verdict.INCOMPLETE: Exit.INCONCLUSIVE,
    }
    return codes.get(verdict, Exit.OK)
