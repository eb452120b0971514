"""`webdyno report` and `webdyno diff`: what runs say, from their folders; nothing is measured."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.interfaces.cli.flags import LAST, TEXT, Format, flag, is_json, run_folder

if TYPE_CHECKING:  # pydantic and numpy take a while to import
    from webdyno.measure.folder import RunFolder
    from webdyno.report.view import JudgedRun

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PRINTED_WITHIN_S = 120.0
FORMATS = {
    "html": "report.html",
    "md": "report.md",
    "json": "report.json",
    "csv": "summary.csv",
    "parquet": "slots.parquet",
    "pdf": "report.pdf",
    "charts": "charts",
    "autobench": "autobench.csv",
}
"""What a run is written as, and the name of the file; `charts` is a folder of SVG and PNG."""


def report(
    *runs: Annotated[
        Path,
        flag(
            "RUN: folder of a run [default: last]; several: one experiment on several machines; or "
            "the file of gate --history."
        ),
    ],
    format_: Annotated[
        str, flag(f"FORMAT,…: what is written: {', '.join(FORMATS)}.", "--format")
    ] = "",
    output: Annotated[
        Path | None,
        flag(
            "FILE: for several formats a folder [default: in the run's folder; JSON of several "
            "machines is printed]",
            "-o",
            "--output",
        ),
    ] = None,
    comment: Annotated[
        str,
        flag(
            "NAME: in GitHub Actions or GitLab CI, post a gate's answer as the pull request's "
            "comment of that name, or rewrite it."
        ),
    ] = "",
    verbose: Annotated[bool, flag("Also print what else is known.")] = False,
) -> Exit:
    """Judge runs again and write reports; nothing is measured.

    Runs of several machines are judged together, each machine once: the average ratio, the range
    for another machine of this kind, and on how many the verdict is the same.

    For example

        webdyno report runs/2026-11-21-093000-static-hello

        webdyno report runs/2026-11-21-093000-static-hello --format md -o summary.md

        webdyno report runs/2026-11-21-093000-static-hello --format pdf,csv,charts -o for-my-boss

        webdyno report machine-a machine-b machine-c --format html -o fleet.html

        webdyno report gate-results --comment performance

        webdyno report performance.jsonl --format html
    """
    from webdyno.interfaces.cli.cluster import is_fleet, is_spread, report_fleet, show_spread
    from webdyno.measure.folder import RunFolder
    from webdyno.media.console import notify

    runs = tuple(run_folder(run) for run in runs or [LAST])
    if comment:
        from webdyno.interfaces.pull_request import post_comment

        if len(runs) > 1:
            raise UserError(f"--comment {comment}: takes the folder of one gate")
        notify(post_comment(runs[0], comment))
        return Exit.OK
    formats = list(dict.fromkeys(name for name in format_.lower().split(",") if name))
    for name in formats:
        if name not in FORMATS:
            raise UserError(
                f"--format {format_}: there is no format {name!r}; {', '.join(FORMATS)}"
            )
    if output is not None and not formats:
        raise UserError(f"-o {output}: say with --format what is written, such as --format html")
    if runs[0].is_file():
        return _history(runs, formats, output)
    if is_fleet(runs):
        return report_fleet(runs, formats, output)
    if is_spread(runs[0]):
        if formats:
            raise UserError(f"{runs[0]} has a run for each point: give the folder of one of them")
        return show_spread(runs[0])
    return _of_run(RunFolder.open(runs[0]), formats, output, verbose=verbose)


def _history(files: Sequence[Path], formats: Sequence[str], output: Path | None) -> Exit:
    """Print what the file of a history says changed and when; write the page with its curves."""
    from webdyno.core.files import write_whole
    from webdyno.core.registry import command
    from webdyno.history import curves_of, read_history
    from webdyno.history.show import history_document, history_page
    from webdyno.media.console import notify, plain_console
    from webdyno.media.terminal import print_document

    file = files[0]
    if len(files) > 1:
        raise UserError(f"{file}: is the history of one program; give it alone")
    if unable := [name for name in formats if name != "html"]:
        raise UserError(f"--format {unable[0]}: a history is written as html")
    history = read_history(file)
    curves = curves_of(history)
    print_document(plain_console(), history_document(history, curves))
    if formats:
        page = output or file.with_suffix(".html")
        again = command("report", file, "--format", "html", "-o", page)
        write_whole(page, history_page(history, curves, again))
        notify(f"written: {page}")
    return Exit.OK


def _of_run(
    folder: "RunFolder", formats: Sequence[str], output: Path | None, *, verbose: bool
) -> Exit:
    from webdyno.core.files import make_folder, writing
    from webdyno.interfaces.cli.result import judged_run, show_result
    from webdyno.media.console import notify

    seen = judged_run(folder)
    in_folder = output is not None and (len(formats) > 1 or output.is_dir())
    code = show_result(folder, seen=seen, verbose=verbose)
    for name in formats:
        default = (output if in_folder and output else folder.path) / FORMATS[name]
        file = default if in_folder or output is None else output
        with writing(file):
            make_folder(file.parent)
        for written in _write(name, folder, seen, file):
            notify(f"written: {written}")
    return code


def _write(name: str, folder: "RunFolder", seen: "JudgedRun", file: Path) -> Sequence[Path]:
    """Write a run as one of FORMATS; return the files."""
    from webdyno.core.files import write_whole
    from webdyno.report.brief import summary
    from webdyno.report.exports import autobench_sheet, summary_csv, write_parquet
    from webdyno.report.result_page import html_page, write_charts

    match name:
        case "charts":
            return write_charts(file, seen.view)
        case "parquet":
            write_parquet(folder.records(), file)
        case "pdf":
            _print(folder, seen, file)
        case "html":
            # What lies in the folder was drawn before.
            if file.resolve() != (folder.path / FORMATS["html"]).resolve():
                write_whole(file, html_page(folder.path, seen.view))
        case "md":
            write_whole(file, summary(seen.view))
        case "json":
            write_whole(file, seen.judged.model_dump_json(indent=2) + "\n")
        case "csv":
            write_whole(file, summary_csv(seen.view))
        case "autobench":
            write_whole(file, autobench_sheet(folder.data()))
    return [file]


def _print(folder: "RunFolder", seen: "JudgedRun", pdf: Path) -> None:
    """Print the page by a browser; raise OperationError where there is none, or it doesn't.

    It prints a page of our own: from the run's folder, which may be somebody else's, it would as
    well read what a link there leads to, and run what stands in a page of theirs.
    """
    from webdyno.core.files import write_whole
    from webdyno.host.children import run_program
    from webdyno.report.result_page import html_page

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise OperationError(
            f"printing takes a browser, and none of {', '.join(BROWSERS)} is installed (Debian: "
            f"apt-get install chromium); or open {folder.path / FORMATS['html']} and print it from "
            "there"
        )
    with tempfile.TemporaryDirectory(prefix="webdyno-print-") as profile:
        page, printed = Path(profile, FORMATS["html"]), Path(profile, pdf.name)
        write_whole(page, html_page(folder.path, seen.view))
        words = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--no-pdf-header-footer", f"--user-data-dir={profile}"),
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        done = run_program(words, within_s=PRINTED_WITHIN_S)
        if not printed.exists():
            raise OperationError(f"{browser} didn't print {pdf}: {done.stderr.strip()[-300:]}")
        write_whole(pdf, printed.read_bytes())


def diff(
    before: Annotated[Path, flag("RUN: folder of the earlier run.")],
    after: Annotated[Path, flag("RUN: folder of the later run.")] = LAST,
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
    runs = [RunFolder.open(run_folder(path)) for path in (before, after)]
    with working_on("reading and judging", *runs):
        compared = compare_sweeps(*(run.data() for run in runs))
    console = plain_console()
    if as_json:
        console.out(compared.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, comparison_document(runs[1].head, compared))
    return exit_of_difference(compared.verdict)
