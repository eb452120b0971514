"""What becomes of an exception that nobody foresaw: a defect of webdyno's own."""

import tempfile
import traceback
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

SHOWN_LETTERS = 200


def keep_traceback(error: Exception, command: str) -> str:
    """Write the traceback to a file; give the sentence that asks for a report."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    if len(said) > SHOWN_LETTERS:
        said = f"{said[:SHOWN_LETTERS]}…"
    # Without the arguments, which may hold secrets.
    head = f"webdyno {version('webdyno')}, {command}\n\n"
    kept = _written(head + "".join(traceback.format_exception(error)))
    what = f"{kept}, which holds the traceback" if kept else "what you typed"
    return f"this is a defect of webdyno ({said}); please report it, with {what}"


def _written(text: str) -> Path | None:
    from webdyno.calibrate.store import state_folder

    prefix = f"error-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-"
    for folder in (state_folder, _temporary_folder):
        with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
            there = folder()
            there.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                dir=there, prefix=prefix, suffix=".txt", delete=False
            ) as file:
                file.write(text.encode(errors="backslashreplace"))
            return Path(file.name)
    return None


def _temporary_folder() -> Path:
    return Path(tempfile.gettempdir())
