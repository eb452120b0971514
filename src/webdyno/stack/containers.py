"""To which of an arm's containers a process belongs, by its control group."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from webdyno.model.service import ID_FILE


def container_of(pids: Collection[int], home: Path) -> str | None:
    """Name the container that the first of some processes is in; None where that isn't known."""
    ids = {file.read_text().strip(): file.stem for file in home.glob(f"*{ID_FILE}")}
    for pid in pids:
        with suppress(OSError):
            groups = Path(f"/proc/{pid}/cgroup").read_text()
            return next((name for each, name in ids.items() if each and each in groups), None)
    return None
