"""What webdyno does on a host for a webdyno elsewhere, whatever carries the orders.

Orders are values, never words for a shell: an agent starts nothing but the webdyno that it is a
part of. The kernel interrupts that when the agent dies in any way, and it cleans up after itself as
at Ctrl-C.
"""

import io
import logging
import os
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from statistics import median

from webdyno.cluster.host import AgentExit, LinkFacts, Piece
from webdyno.core.experiment import Experiment
from webdyno.core.run import CATALOGUE_FOLDER, EXPERIMENT_FILE, ROUNDS_FOLDER
from webdyno.core.testbed import Machine, TestbedSettings
from webdyno.host.children import ending_with_us, input_of, interrupt, words_of
from webdyno.host.netns import open_testbed
from webdyno.load.engine import find_loadgen
from webdyno.measure.folder import HEAD_FILE, LOCK_FILE, RunFolder
from webdyno.measure.records_file import RECORDS_FILE
from webdyno.measure.repeat import kept_folder

logger = logging.getLogger(__name__)

RUN = "run"
"""The run's folder in a parcel, and where an agent unpacks it."""
NEWS_EVERY_S = 0.5
PIECE_BYTES = 2**20
SAID_BYTES = 4000
ENDS_WITHIN_S = 30
"""Includes the seconds that servers get to stop."""
ROUND_TRIPS = 200
SENDS_FOR_S = 1.0
CHUNK = bytes(2**18)
PATIENCE_S = 20.0
"""How long either side waits for the other."""


def webdyno_version() -> str:
    """Report the version, before anything is said whose form depends on it."""
    return version("webdyno")


def look() -> Machine:
    """Look at this host; raise UserError or OperationError where it can't measure."""
    with open_testbed(TestbedSettings(), find_loadgen()) as testbed:
        return testbed.describe()


def parcel_of(fleet: Path, begun: Path | None, experiment: Experiment | None = None) -> bytes:
    """Pack what another host needs to run a fleet's experiment, or a part of it, as a tar file.

    With the folder of a run that was `begun` there it goes on.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        file.add(kept_folder(fleet), arcname=CATALOGUE_FOLDER)
        if experiment is None:
            file.add(fleet / EXPERIMENT_FILE, arcname=EXPERIMENT_FILE)
        else:
            written = experiment.toml().encode()
            named = tarfile.TarInfo(EXPERIMENT_FILE)
            named.size = len(written)
            file.addfile(named, io.BytesIO(written))
        if begun is not None:
            with RunFolder.open(begun) as run:
                run.hold()  # which cuts off a line that was torn
                file.add(begun, arcname=RUN, filter=_without_rounds)
    return packed.getvalue()


def at_usual_priority() -> None:
    """Be no nicer than programs are: Ray's workers are, and servers would be with them."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def unpack_parcel(parcel: bytes, place: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(parcel)) as file:
        # Python before 3.11.4 has no filter.
        file.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        file.extractall(place)  # noqa: S202 (see the filter)


def replicate(parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:
    """Run an experiment here; yield what is measured as it comes, the rest at the end.

    With `yes` what the host lacks is installed, and servers of other people's catalogues start.
    Closing the iterator interrupts the run.
    """
    with tempfile.TemporaryDirectory(prefix="webdyno-") as name:
        place = Path(name)
        unpack_parcel(parcel, place)
        at_usual_priority()
        log = place / "said"
        known = {path: path.stat().st_size for path in _files(place / RUN)}
        call, asked = _call(place, yes=yes)
        # As the other side has agreed.
        with log.open("xb") as said, input_of(asked, allow_commands=True) as arguments:
            process = subprocess.Popen(
                [*ending_with_us("INT"), *words_of(call)],
                stdin=arguments,
                stdout=said,
                stderr=said,
                cwd=place,
            )
        logger.debug("process %d runs the experiment in %s", process.pid, place)
        try:
            yield from _news(process, place / RUN, known)
            yield AgentExit(
                process.wait(), log.read_bytes()[-SAID_BYTES:].decode("utf-8", "replace")
            )
        finally:
            interrupt(process, ENDS_WITHIN_S)


def _without_rounds(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Exclude what servers said in rounds that are over."""
    return None if PurePosixPath(member.name).parts[1:2] == (ROUNDS_FOLDER,) else member


def _call(place: Path, *, yes: bool) -> tuple[str, dict[str, object]]:
    """Return the call that begins the parcel's experiment, or goes on with its run."""
    if (place / RUN / HEAD_FILE).exists():
        return "resume", {"folder": place / RUN, "yes": yes}
    asked = {"experiment": place / EXPERIMENT_FILE, "full": True, "output": place / RUN, "yes": yes}
    asked["catalog"] = [place / CATALOGUE_FOLDER]
    return "run_experiment", asked


def _news(process: subprocess.Popen[bytes], run: Path, sent: dict[Path, int]) -> Iterator[Piece]:
    """Yield the run's files once it has begun, what it measures, and all files at its end.

    Of `sent` the other side has so many bytes already.
    """
    while process.poll() is None:
        if (run / RECORDS_FILE).exists():
            yield from _unsent([run / RECORDS_FILE] if sent else _files(run), run, sent)
        time.sleep(NEWS_EVERY_S)
    yield from _unsent(_files(run), run, sent)


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file() and path.name != LOCK_FILE)


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


def answer_link(address: str) -> Iterator[int]:
    """Yield the port on which one measurement is waited for, then answer it."""
    with closing(socket.create_server((address, 0))) as server:
        server.settimeout(PATIENCE_S)
        yield server.getsockname()[1]
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(ROUND_TRIPS):
                connection.sendall(connection.recv(1))
            while connection.recv(len(CHUNK)):
                pass
            connection.sendall(b".")


def measure_link(address: str, port: int) -> LinkFacts:
    """Measure how long a byte takes to a host and back, and how many get there in a second.

    This side times itself: no figure is a difference of two clocks. Raise OSError where nobody
    answers there.
    """
    with socket.create_connection((address, port), PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        round_trips_s = []
        for _ in range(ROUND_TRIPS):
            began_s = time.monotonic()
            connection.sendall(b".")
            connection.recv(1)
            round_trips_s.append(time.monotonic() - began_s)
        began_s, sent_bytes = time.monotonic(), 0
        while time.monotonic() - began_s < SENDS_FOR_S:
            sent_bytes += connection.send(CHUNK)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # when it has everything
        took_s = time.monotonic() - began_s
    return LinkFacts(
        round_trip_us=median(round_trips_s) * 1e6, rate_bits_per_s=8 * sent_bytes / took_s
    )
