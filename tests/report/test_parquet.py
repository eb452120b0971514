"""Slots as a Parquet table."""

import sys
from pathlib import Path

import duckdb
import pytest

from builders import SimulatedVariant, simulated_run
from webdyno.core.errors import OperationError
from webdyno.core.records import SlotRecord
from webdyno.report.exports import write_parquet

RUN = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=2)
SLOTS = [record for record in RUN.records if isinstance(record, SlotRecord)]


def test_every_slot_is_a_row_with_its_figures(tmp_path: Path) -> None:
    path = tmp_path / "slots.parquet"
    write_parquet(RUN.records, path)
    rows = (
        duckdb.read_parquet(str(path))
        .project(
            'variant, phase, "load.requests.completed", "load.throughput_rps", '
            '"servers.cpu_user_s", epoch(started_at)'
        )
        .fetchall()
    )
    assert rows == [
        (
            slot.variant,
            slot.phase,
            slot.load.requests.completed,
            slot.load.throughput_rps,
            slot.servers.cpu_user_s,
            slot.started_at.timestamp(),
        )
        for slot in SLOTS
    ]


def test_columns_have_types(tmp_path: Path) -> None:
    path = tmp_path / "slots.parquet"
    write_parquet(RUN.records, path)
    table = duckdb.read_parquet(str(path))
    types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert types["round"] == "BIGINT"
    assert types["load.throughput_rps"] == "DOUBLE"
    assert types["load.keepalive.requested"] == "VARCHAR"
    assert types["started_at"] == "TIMESTAMP WITH TIME ZONE"


def test_a_run_without_slots_gives_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "slots.parquet"
    write_parquet([], path)
    assert duckdb.read_parquet(str(path)).fetchall() == []


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="can't be written"):
        write_parquet(RUN.records, tmp_path / "missing" / "slots.parquet")


def test_a_missing_duckdb_is_reported_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(OperationError, match="takes duckdb: install it next to webdyno"):
        write_parquet(RUN.records, tmp_path / "slots.parquet")
