"""Counts the files of webdyno that a slot passes on its way to the report, by the functions called.

    .venv/bin/python bench/report_files.py RUN

Makes the report of a run's folder anew. What is only imported, such as types, is not counted.
"""

import sys
from pathlib import Path
from types import FrameType

import webdyno
from webdyno.cli.report import report

HOME = Path(webdyno.__file__).parent


def main(run: Path) -> None:
    """Make a run's report, and print the files whose functions that took."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        inside = code.co_filename.startswith(str(HOME)) and code.co_filename.endswith(".py")
        if event == "call" and inside and not is_import(frame):
            called.add(code.co_filename)

    sys.setprofile(note)
    report(run)
    sys.setprofile(None)
    names = sorted(str(Path(file).relative_to(HOME)) for file in called)
    sys.stdout.write("\n    ".join([f"{len(names)} files", *names]) + "\n")


def is_import(frame: FrameType) -> bool:
    """Whether a function is called because a module is imported: on its outermost level."""
    while frame.f_back is not None:
        if frame.f_code.co_name == "<module>" and "importlib" in frame.f_back.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
