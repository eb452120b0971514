"""Records that somebody else made: whatever they are, reading them takes so much memory at most."""

import gc
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from builders import SimulatedVariant, simulated_run
from webdyno.core.errors import OperationError, UserError
from webdyno.core.records import Record
from webdyno.measure.folder import RunFolder
from webdyno.measure.records_file import MOST_OBJECTS, records_of

RUN = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=20)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run with its records."""
    with RunFolder.create(tmp_path / "run", RUN.head) as made:
        for record in RUN.records:
            made.append(record)
    return made


def test_records_are_not_held_with_their_file_nor_with_names_of_their_own(
    folder: RunFolder,
) -> None:
    file = folder.path / "slots.jsonl"
    whole, records = file.stat().st_size, folder.records()  # all that is made once is made
    tracemalloc.start()
    try:
        records = folder.records()
        gc.collect()
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert records == RUN.records
    assert held < 3.5 * whole
    assert most < held + whole / 2


def test_a_line_with_more_objects_than_any_of_ours_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "slots.jsonl"
    file.write_text('{"kind": "preflight", "a": [' + "{}," * MOST_OBJECTS + "{}]}\n")
    with pytest.raises(UserError, match=r"slots\.jsonl:1: .*so much in it"):
        list(records_of(file))


def test_records_that_take_too_much_memory_are_refused(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.measure.records_file.MOST_HELD_BYTES", -1)
    with pytest.raises(UserError, match=r"slots\.jsonl:1: .*memory"):
        folder.records()


def test_a_run_that_is_full_ends_with_what_can_be_read(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (folder.path / "slots.jsonl").stat().st_size
    for place in ("folder", "records_file"):
        monkeypatch.setattr(f"webdyno.measure.{place}.MOST_RECORDS_BYTES", size)
    with pytest.raises(OperationError, match=r"full: .*`webdyno report`"):
        folder.append(RUN.records[0])
    folder.close()
    assert folder.records() == RUN.records


def test_two_threads_don_t_count_each_other_s_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: list[Path] = []

    def slowly(file: Path, _below: Path | None) -> Iterator[Record]:
        reading.append(file)
        sleep(0.05)
        assert reading == [file]
        reading.clear()
        yield from ()

    monkeypatch.setattr("webdyno.measure.folder.records_of", slowly)
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    folders = [RunFolder(tmp_path / name, head) for name in "ab"]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(RunFolder.records, folders)) == [[], []]
