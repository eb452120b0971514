"""How fast `webdyno traffic` reads a log, and how much memory that takes.

Combined format; paths by Zipf's law, visitors of some requests each at random times of a day. Each
size is read in a process of its own: peak memory is that of the whole program.
"""

import os
import sys
import tempfile
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rig.lab import WEBDYNO
from rig.options import count
from rig.process import BenchError, Finished, run_pinned
from rig.script import Script

EXAMPLES = """\
  100,000 and a million lines (half a minute)
    .venv/bin/python bench/log_speed.py
  ten million
    .venv/bin/python bench/log_speed.py 10000000
"""

SIZES = (100_000, 1_000_000)
WITHIN_S = 600.0
PATHS, EXPONENT = 20_000, 1.0
REQUESTS_PER_VISITOR = 8
BEGIN_S, DAY_S = 1_763_800_000, 86_400
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument(
        "lines", nargs="*", type=count, default=SIZES, help="of each log (100000 and 1000000)"
    )
    return made


def work(options: Namespace, console: Console) -> None:
    """Print a line for each size."""
    table = Table(title="webdyno traffic access.log -o traffic.toml")
    for heading in ("lines", "MB", "s", "CPU s", "peak memory, MB"):
        table.add_column(heading, justify="right")
    for lines in options.lines:
        with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
            log = Path(scratch) / "access.log"
            write_log(log, lines)
            done = read(log)
            table.add_row(
                f"{lines:,}",
                f"{log.stat().st_size / 1e6:.0f}",
                f"{done.wall_s:.1f}",
                f"{done.cpu_s:.1f}",
                f"{done.peak_bytes / 1e6:.0f}",
            )
    console.print(table)


def write_log(log: Path, lines: int) -> None:
    """Write a day's log of so many lines, in the order of their times."""
    rng = np.random.default_rng(0)
    shares = np.arange(1, PATHS + 1) ** -EXPONENT
    paths = rng.choice(PATHS, lines, p=shares / shares.sum())
    visitors = rng.integers(0, max(1, lines // REQUESTS_PER_VISITOR), lines)
    times_s = np.sort(rng.integers(BEGIN_S, BEGIN_S + DAY_S, lines))
    with log.open("w", encoding="utf-8") as out:
        for path, visitor, time_s in zip(paths, visitors, times_s, strict=True):
            at = datetime.fromtimestamp(int(time_s), UTC)
            out.write(
                f"10.{visitor >> 16 & 255}.{visitor >> 8 & 255}.{visitor & 255} - - "
                f'[{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /articles/{path}/index.html HTTP/1.1" 200 '
                f'{500 + 37 * (path % 400)} "-" "{AGENT}"\n'
            )


def read(log: Path) -> Finished:
    """Have webdyno read a log. Raises BenchError where it doesn't."""
    command = [str(WEBDYNO), "traffic", str(log), "-o", str(log.with_name("traffic.toml"))]
    done = run_pinned(command, sorted(os.sched_getaffinity(0)), WITHIN_S)
    if done.exit_code:
        raise BenchError(done.reason)
    return done


if __name__ == "__main__":
    sys.exit(script().run(work))
