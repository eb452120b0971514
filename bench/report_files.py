"""Counts the files of webdyno that a slot passes on its way to the report, by the functions called.

    .venv/bin/python bench/report_files.py RUN

Makes the report of a run's folder again. What is only imported, such as types, is not counted.
"""

import sys
from pathlib import Path

from rig.calls import CalledFiles, listed
from webdyno import open_run


def main(run: Path) -> None:
    """Make a run's report, and print the files whose functions that took."""
    files = CalledFiles()
    with files.tracing():
        open_run(run).report()
    sys.stdout.write(listed("a report", files.all))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
