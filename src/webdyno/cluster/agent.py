"""What webdyno does on a host for a webdyno elsewhere, whatever carries the orders.

Orders are values, never words for a shell: an agent starts nothing but the webdyno that it is a
part of. That has a kernel's promise to be interrupted when the agent dies in any way, and cleans up
after itself as at Ctrl-C.
"""

import io
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from platform import node

from webdyno.bench import open_bench
from webdyno.definitions import Catalogue
from webdyno.generator import find_loadgen
from webdyno.model.bench import BenchSettings
from webdyno.model.cluster import Ended, HostFacts, Piece
from webdyno.model.experiment import Experiment
from webdyno.model.run import CATALOGUE_FOLDER, EXPERIMENT_FILE
from webdyno.run.folder import HEAD_FILE, RECORDS_FILE
from webdyno.run.repeat import keep_for_repeating

NEWS_EVERY_S = 0.5
PIECE_BYTES = 2**20
SAID_BYTES = 4000
ENDS_WITHIN_S = 30
"""Servers get some seconds to stop."""


def webdyno_version() -> str:
    """Tell the version, before anything is said whose form depends on it."""
    return version("webdyno")


def look() -> HostFacts:
    """Look at this host. Raises Mistake or Trouble where nothing could be measured on it."""
    with open_bench(BenchSettings(), find_loadgen()) as bench:
        machine = bench.describe()
    return HostFacts(name=node(), webdyno_version=webdyno_version(), machine=machine)


def parcel_of(experiment: Experiment, catalogue: Catalogue) -> bytes:
    """Pack all that another host needs to run an experiment, as a tar file."""
    with tempfile.TemporaryDirectory(prefix="webdyno-") as name:
        keep_for_repeating(Path(name), experiment, catalogue)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as file:
            file.add(name, arcname=".")
        return packed.getvalue()


def replicate(parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
    """Run an experiment here; give what is measured as it comes, the rest at the end.

    With `yes` what the host lacks is installed, and servers of other people's catalogues start.
    Closing the iterator interrupts the run.
    """
    with tempfile.TemporaryDirectory(prefix="webdyno-") as name:
        place = Path(name)
        with tarfile.open(fileobj=io.BytesIO(parcel)) as file:
            # Python before 3.11.4 has no filter.
            file.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            file.extractall(place / "parcel")  # noqa: S202 (see the filter)
        run, log = place / "run", place / "said"
        with log.open("wb") as said:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", *_command(place / "parcel", run, yes=yes)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=place,
            )
        try:
            yield from _news(process, run)
            yield Ended(process.wait(), log.read_bytes()[-SAID_BYTES:].decode("utf-8", "replace"))
        finally:
            _end(process)


def _command(parcel: Path, run: Path, *, yes: bool) -> list[str | Path]:
    """Give the words that repeat the parcel's experiment; it has just the points that it needs."""
    catalogue = ("--catalog", parcel / CATALOGUE_FOLDER)
    how = ("--full", "--out", run, "--no-report", *(("--yes",) if yes else ()))
    return [sys.executable, "-m", "webdyno.cli", "run", parcel / EXPERIMENT_FILE, *catalogue, *how]


def _news(process: subprocess.Popen[bytes], run: Path) -> Iterator[Piece]:
    """Give what is measured while the process lives, and all other files when it has ended."""
    sent: dict[Path, int] = {}
    while process.poll() is None:
        yield from _unsent([run / HEAD_FILE, run / RECORDS_FILE], run, sent)
        time.sleep(NEWS_EVERY_S)
    yield from _unsent(sorted(path for path in run.rglob("*") if path.is_file()), run, sent)


def _unsent(files: Iterable[Path], run: Path, sent: dict[Path, int]) -> Iterator[Piece]:
    for path in files:
        if not path.exists():
            continue
        with path.open("rb") as file:
            file.seek(sent.get(path, 0))
            while (data := file.read(PIECE_BYTES)) or path not in sent:
                start = sent.get(path, 0)
                sent[path] = start + len(data)
                yield Piece(PurePosixPath(path.relative_to(run)), start, data)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
