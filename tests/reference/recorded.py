"""Recorded runs as they are kept: what the judge reads of a run's folder, in one small archive."""

import io
import lzma
import tarfile
from pathlib import Path

from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.records_file import RECORDS_FILE

RUNS = Path(__file__).parent / "runs"
ENDING = ".tar.xz"


def names() -> list[str]:
    """Name all runs that are kept."""
    return sorted(file.name.removesuffix(ENDING) for file in RUNS.glob(f"*{ENDING}"))


def unpacked(name: str, below: Path) -> RunFolder:
    """Lay a run's folder into another one, and open it."""
    folder = below / name
    with tarfile.open(RUNS / f"{name}{ENDING}") as archive:
        archive.extractall(folder, filter="data")
    return RunFolder.open(folder)


def pack(name: str, files: dict[str, str]) -> None:
    """Keep a run's files: the same bytes for the same texts."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for file in (HEAD_FILE, RECORDS_FILE):
            content = files[file].encode()
            entry = tarfile.TarInfo(file)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    RUNS.mkdir(exist_ok=True)
    (RUNS / f"{name}{ENDING}").write_bytes(lzma.compress(raw.getvalue(), preset=9))
