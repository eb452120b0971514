"""`webdyno report`: verdict and report made again from a run's folder."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.cli.console import tell
from webdyno.cli.result import show_result
from webdyno.host.children import run_program
from webdyno.lab.ending import Exit
from webdyno.model.cluster import SPREAD_FILE
from webdyno.model.errors import OperationError, UserError
from webdyno.model.files import writing
from webdyno.model.run import PAGE_FILE
from webdyno.run.folder import RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.report.view import JudgedRun

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PRINTED_WITHIN_S = 120.0


def report(
    run: Annotated[Path, Parameter(help="The run's folder, as named at the end of the run.")],
    *,
    markdown: Annotated[
        Path | None, Parameter(help="Write a summary for a pull request or a wiki to this file.")
    ] = None,
    json: Annotated[
        Path | None, Parameter(help="Write the judgement of each point to this file.")
    ] = None,
    charts: Annotated[
        Path | None, Parameter(help="Write each chart as SVG and PNG to this folder.")
    ] = None,
    pdf: Annotated[
        Path | None,
        Parameter(help="Print the report to this file, by the Chromium that is installed."),
    ] = None,
) -> Exit:
    """Judge a run again and write its report again; nothing is measured.

    Of points that were spread over hosts (`run --spread`) each is told with its machine.

    For example

        webdyno report runs/2026-11-21-093000-static-hello

        webdyno report runs/2026-11-21-093000-static-hello --pdf report.pdf --charts figures

        webdyno report runs/2026-11-21-093000-static-hello --markdown summary.md --json result.json
    """
    if (run / SPREAD_FILE).exists():
        if markdown or json or charts or pdf:
            raise UserError(f"{run} has a run for each point: give the folder of one of them")
        from webdyno.cli.fleet import show_spread

        return show_spread(run)
    from webdyno.report.view import see

    folder = RunFolder.open(run)
    seen = see(folder.data())
    code = show_result(folder, seen=seen)
    written: list[Path] = []
    if markdown or charts or json:
        written += _write(seen, markdown, json, charts)
    if pdf is not None:
        _print(run / PAGE_FILE, pdf)
        written.append(pdf)
    for file in written:
        tell(f"written: {file}")
    return code


def _write(
    seen: "JudgedRun", markdown: Path | None, json: Path | None, charts: Path | None
) -> list[Path]:
    from webdyno.report.result import summary
    from webdyno.report.result_page import write_charts

    judged, view = seen
    written = []
    if markdown is not None:
        with writing(markdown):
            markdown.write_text(summary(view), encoding="utf-8")
        written.append(markdown)
    if json is not None:
        with writing(json):
            json.write_text(judged.model_dump_json(indent=2) + "\n", encoding="utf-8")
        written.append(json)
    if charts is not None:
        written += write_charts(charts, view)
    return written


def _print(page: Path, pdf: Path) -> None:
    """Have a browser print the page; raise OperationError where there is none, or it doesn't."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise OperationError(
            f"printing takes a browser, and none of {', '.join(BROWSERS)} is installed "
            f"(Debian: apt-get install chromium); or open {page} and print it from there"
        )
    with writing(pdf):
        pdf.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="webdyno-print-") as profile:
        words = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--no-pdf-header-footer", f"--user-data-dir={profile}"),
            f"--print-to-pdf={pdf.absolute()}",
            page.absolute().as_uri(),
        ]
        done = run_program(words, within_s=PRINTED_WITHIN_S)
    if not pdf.exists():
        raise OperationError(f"{browser} didn't print {page}: {done.stderr.strip()[-300:]}")
