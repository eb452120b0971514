"""`webdyno gate`: is this revision worse than that one? For people, and for CI."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, UserError
from webdyno.interfaces.cli.experiment_flags import (
    AS_SET_UP,
    PLAIN_REQUESTS,
    RequestFlags,
    SetupFlags,
)
from webdyno.interfaces.cli.flags import (
    PLAIN_RUN,
    USUAL_TIME,
    CatalogDirs,
    FailIf,
    Output,
    Paths,
    RunFlags,
    TimeFlag,
    flag,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue, Override
    from webdyno.core.limits import GateJudgement
    from webdyno.launch.caller import Caller
    from webdyno.measure.folder import RunFolder
    from webdyno.questions.gate.experiment import AskedGate

ORIGIN, WORKING_TREE = "origin/main", "."
HISTORY = "--history"


def gate(
    *,
    base: Annotated[
        str, flag("REVISION: what HEAD is compared with, or a system as in compare.")
    ] = ORIGIN,
    head: Annotated[
        str, flag("REVISION: what is asked about [default: the working tree]")
    ] = WORKING_TREE,
    bisect: Annotated[
        str | None,
        flag("RANGE: find the first commit of GOOD..BAD that is worse than GOOD."),
    ] = None,
    history: Annotated[
        Path | None,
        flag("FILE: add the result; --base must be the same each time."),
    ] = None,
    rate: Annotated[
        str | None,
        flag("RATE: judge CPU per request, at so many requests/s on each endpoint."),
    ] = None,
    fail_if: FailIf = (),
    path: Paths = (),
    request: RequestFlags = PLAIN_REQUESTS,
    endpoint: Annotated[
        Sequence[str],
        flag("NAME: only this one of the requests in webdyno.toml or --traffic."),
    ] = (),
    site: Annotated[str | None, flag("NAME: what stacks serve, if such are compared.")] = None,
    time: TimeFlag = USUAL_TIME,
    confirm: Annotated[
        bool, flag("Fail only if a second measurement, from fresh builds, fails as well.")
    ] = False,
    setup: SetupFlags = AS_SET_UP,
    output: Output = None,
    catalog: CatalogDirs = (),
    run: RunFlags = PLAIN_RUN,
) -> Exit:
    """Fail if HEAD is slower than BASE by more than a limit.

    Exit code 0: pass, 4: fail, 5: inconclusive in the time given (10 min). Each answer is wrong in
    at most 5% of gates. Each --path is an endpoint with answers of its own. Limits, unless given:
    'cpu > +5%', 'throughput < -5%', 'p99 > +25%'; with --rate 'cpu > +5%', as long as no request
    waits longer. The run's folder has files for CI.

    For example

        webdyno gate --base origin/main

        webdyno gate --base v1.2 --head v1.3 --path / --path /search --fail-if 'cpu > +3%'

        webdyno gate --traffic shop.http -o results     # with gate.md, junit.xml and others

        webdyno gate --rate 200 --path /search          # what does a request cost at your load?

        webdyno gate --bisect v1.2..HEAD --path /search

        webdyno gate --base v1.2 --history performance.jsonl
    """
    from webdyno.config import Catalogue
    from webdyno.core.limits import GateJudgement
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import show_measured, show_result
    from webdyno.launch.measure import measure_again
    from webdyno.media.console import plain_console
    from webdyno.media.terminal import print_document
    from webdyno.questions.gate.experiment import AskedGate, asked_gate, measure_confirmation
    from webdyno.questions.gate.show import EXITS, GateWhole, gate_document

    if run.target_is_mine and rate is not None:
        raise UserError("--rate is about servers here: others' CPU can't be read")
    at_rate = [] if rate is None else list(_at_rate(rate))
    setup = request.added_to(setup, path)
    asked = AskedGate(
        base=base,
        head=head,
        fail_if=fail_if,
        paths=() if request.gives_requests else path,
        endpoints=endpoint,
        confirm=confirm,
        site=site,
        traffic=setup.traffic.read().words,
        overrides=[*time.overrides(), *setup.overrides([*at_rate, *request.overrides()])],
        history=history,
    )
    caller = at_terminal(run)
    if bisect is not None:
        if history is not None:
            raise UserError(f"{HISTORY} {history}: takes one gate, and --bisect asks many; omit it")
        return _bisect(bisect, asked, Catalogue.load(catalog), caller, output)
    catalogue = Catalogue.load(catalog)
    arranged = asked_gate(asked, catalogue, caller)
    if isinstance(arranged, GateJudgement):
        leave_behind(arranged, output)
        print_document(plain_console(), gate_document(arranged))
        return EXITS[arranged.answer]

    def show(folder: "RunFolder") -> Exit:
        from webdyno.questions.gate.failed import measure_growth
        from webdyno.report.view import see

        measure_growth(folder, arranged.catalogue, caller)
        seen = see(folder.data())
        if run.report:
            _draw_profiles(folder.path)
        code = show_result(folder, report=run.report, verbose=run.verbosity.verbose, seen=seen)
        if isinstance(seen.view.whole, GateWhole):
            answer = seen.view.whole.gate
            leave_behind(answer, folder.path)
            if history is not None:
                _add_to_history(history, answer)
        return code

    first = measure_again(*arranged, output, caller)
    return show_measured(measure_confirmation(first, asked, catalogue, caller), show)


def _at_rate(text: str) -> "Iterator[Override]":
    """Yield an open loop at a rate; raise UserError for several."""
    from webdyno.config import Override
    from webdyno.config.reading import written_value

    flag = f"--rate {text}"
    if "," in text:
        raise UserError(f"{flag}: a gate takes one rate, without commas; ask a gate at each")
    yield Override(("load", "loop"), "open", flag)
    yield Override(("load", "rate_per_s"), written_value(text.strip(), flag), flag)


def _bisect(
    between: str, asked: "AskedGate", catalogue: "Catalogue", caller: "Caller", output: Path | None
) -> Exit:
    from webdyno.core.run import folder_under_runs
    from webdyno.media.console import plain_console
    from webdyno.media.terminal import print_document
    from webdyno.questions.gate.experiment import measured_gate
    from webdyno.questions.gate.failed import FLAG, bisect, bisection_document
    from webdyno.questions.gate.show import EXITS
    from webdyno.systems.repository import Repository

    if (asked.base, asked.head) != (ORIGIN, WORKING_TREE):
        raise UserError(f"{FLAG} {between}: names both ends; omit --base and --head")
    below = output or folder_under_runs("bisect", datetime.now().astimezone())
    repository = Repository.around(Path.cwd(), FLAG)
    if repository.tracks(below):
        raise UserError(
            f"-o {below}: what a commit brings there would be taken for measurements; name a "
            "folder without files of the repository"
        )

    def ask(good: str, head: str) -> "GateJudgement":
        one = replace(asked, base=good, head=head)
        return measured_gate(one, catalogue, below / head[:10], caller)

    bisection = bisect(between, repository, ask, caller)
    print_document(plain_console(), bisection_document(bisection), [("Runs", str(below))])
    return EXITS[bisection.answer]


def _draw_profiles(run: Path) -> None:
    from webdyno.core.run import EXPLAIN_FOLDER
    from webdyno.interfaces.cli.result import draw
    from webdyno.measure.folder import RunFolder, run_folders

    for path in sorted(run_folders(run / EXPLAIN_FOLDER)):
        draw(RunFolder.open(path))


def _add_to_history(file: Path, answer: "GateJudgement") -> None:
    from webdyno.core.registry import command
    from webdyno.history import add_to_history
    from webdyno.media.console import notify

    if add_to_history(file, answer):
        notify(f"added to {file}; see it by: {command('report', file)}")
    else:
        notify(f"{HISTORY} {file}: nothing was added, as no ratio is known well enough")


def leave_behind(answer: "GateJudgement", folder: Path | None) -> None:
    """Leave behind what CI reads, and what GitHub's runner does where it is one."""
    from webdyno.core.files import append_text
    from webdyno.questions.gate.ci import annotations
    from webdyno.questions.gate.comment import gate_markdown

    if folder is not None:
        write_files(answer, folder)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append_text(Path(summary), gate_markdown(answer))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(annotations(answer))


def write_files(answer: "GateJudgement", folder: Path) -> None:
    """Write an answer into a run's folder, in all forms that CI reads."""
    from webdyno.core.files import make_folder, write_whole, writing
    from webdyno.questions.gate.ci import FILES

    with writing(folder):
        make_folder(folder)
    # Else what is left here would be a change of the working tree to the next gate.
    write_whole(folder / ".gitignore", "*\n")
    for name, made in FILES.items():
        write_whole(folder / name, made(answer))
