"""Reports of the file that `webdyno gate --history` adds to."""

from collections.abc import Sequence
from pathlib import Path

from webdyno.core.command import command
from webdyno.core.errors import UserError
from webdyno.core.exit_codes import Exit

FORMATS = ("html",)


class HistorySource:
    """The history of one program, in a file."""

    def has(self, paths: Sequence[Path]) -> bool:
        """Whether the first one is a file; runs have folders."""
        return paths[0].is_file()

    def report(self, paths: Sequence[Path], formats: Sequence[str], output: Path | None) -> Exit:
        """Print what changed and when; write the page with its curves."""
        from webdyno.core.files import write_whole
        from webdyno.history.file import read_history
        from webdyno.history.levels import curves_of
        from webdyno.history.show import history_document, history_page
        from webdyno.media.console import notify, plain_console
        from webdyno.media.terminal import print_document

        file = paths[0]
        if len(paths) > 1:
            raise UserError(f"{file}: is the history of one program; give it alone")
        if unable := [name for name in formats if name not in FORMATS]:
            raise UserError(f"--format {unable[0]}: a history is written as {' or '.join(FORMATS)}")
        history = read_history(file)
        curves = curves_of(history)
        print_document(plain_console(), history_document(history, curves))
        if formats:
            page = output or file.with_suffix(".html")
            again = command("report", file, "--format", "html", "-o", page)
            write_whole(page, history_page(history, curves, again))
            notify(f"written: {page}")
        return Exit.OK
