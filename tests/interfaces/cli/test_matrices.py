"""Libraries for matrices have one thread: more of them spin while they wait for each other."""

import os
import subprocess
import sys
from pathlib import Path

from builders import SimulatedVariant, simulated_run

THREADS = "OPENBLAS_NUM_THREADS"
COUNTED = """
import atexit, os, sys
from webdyno.interfaces.cli import main
atexit.register(lambda: print(len(os.listdir("/proc/self/task")), file=sys.stderr))
main()
"""


def test_judging_has_one_thread(tmp_path: Path) -> None:
    for run in ("before", "after"):
        simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6).stored(
            tmp_path / run
        )
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, "diff", tmp_path / "before", tmp_path / "after"],
        env={name: value for name, value in os.environ.items() if name != THREADS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "1"
