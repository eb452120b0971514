"""Whatever is printed is text: neither markup in it is heeded nor a control character."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

import webdyno
from webdyno.core.text import printable
from webdyno.media.console import plain_console, print_notice

HOSTILE = "[red]hot[/red] [/] [link=x]y :smile: \x1b[2J\x1b]0;title\x07 \x9b31m"


@pytest.mark.parametrize("terminal", [False, True])
def test_foreign_text_is_printed_as_it_is(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
    monkeypatch.setenv("COLUMNS", "200")
    printed = plain_console()
    table = Table()
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    for each in (HOSTILE, Text(HOSTILE, style="bold"), table):
        printed.print(each)
    reported = capsys.readouterr().out
    shown = "[red]hot[/red] [/] [link=x]y :smile: ␛[2J␛]0;title"
    assert reported.count(shown) == 4
    assert "\x1b[2J" not in reported
    assert "\x1b]0" not in reported
    assert "\x9b" not in reported
    assert ("\x1b[1m" in reported) == terminal  # our own styles stay


def test_what_went_wrong_is_reported_alike() -> None:
    program = "from webdyno.interfaces.cli import main; main()"
    command = [sys.executable, "-c", program, "report", "\x1b[2J[/]"]
    reported = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert reported.startswith("webdyno: ␛[2J[/] holds no run")


def test_lines_and_tabs_stay() -> None:
    assert printable("a\n\tb\r\x00") == "a\n\tb␍␀"


def test_nothing_turns_a_line_around_but_letters() -> None:
    assert printable("a\u202ecod.exe\u2066 שלום") == "a\ufffdcod.exe\ufffd שלום"


def test_the_live_line_of_a_run_is_printed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    live = plain_console(stderr=True)
    live.file = io.StringIO()
    with Progress(TextColumn("{task.description}", markup=False), console=live) as progress:
        progress.add_task("[/] variant")
    assert "[/] variant" in live.file.getvalue()


def test_no_command_has_a_console_of_its_own() -> None:
    """A console made elsewhere would take square brackets in names for styles."""
    home = Path(webdyno.__file__).parent
    own, page = (
        home / "media/console.py",
        home / "interfaces/ui/app.py",
    )  # which prints for a web page
    made = [
        str(file.relative_to(home))
        for file in home.rglob("*.py")
        if file not in {own, page} and "Console(" in file.read_text(encoding="utf-8")
    ]
    assert made == []


@pytest.mark.parametrize("width", [40, 80])
def test_notes_end_lines_with_words_in_a_terminal_and_long_words_stay_whole(width: int) -> None:
    path = f"/work/{'folder/' * 12}python"
    note = f"rounds take longer here, as {path} says of itself, so give --time 39s or more to it"
    for terminal in (True, False):
        out = io.StringIO()
        print_notice(Console(file=out, force_terminal=terminal, width=width), note)
        printed = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
        assert printed.split() == note.split()
        assert (len(printed.splitlines()) > 1) == terminal
