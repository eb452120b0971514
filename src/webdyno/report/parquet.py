"""A run's slots as one Parquet table, a row for each slot, for notebooks and databases.

DuckDB writes it, being a third of the size of pyarrow or polars, and reads it as well. It is an
extra of webdyno's, since few need it:

    select variant, avg("load.throughput_rps") from 'slots.parquet' group by variant
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from webdyno.core.errors import OperationError
from webdyno.core.files import replaced, writing
from webdyno.core.records import Record, SlotRecord

COLUMN_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "VARCHAR",
    datetime: "TIMESTAMPTZ",
}


def write_parquet(records: Iterable[Record], path: Path) -> None:
    """Write all slots, warm-ups included, replacing the file as a whole.

    Columns are named by their path in slots.jsonl, such as `load.requests.completed`; units are in
    the names. Lists (failure samples, samples of the host) and functions are excluded. Raise
    OperationError when the file can't be written.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise OperationError(
            "writing Parquet takes DuckDB, an extra of webdyno: install 'webdyno[parquet]', "
            f"or in a checkout run .dyno/uv/bin/uv pip install --python {sys.executable} duckdb"
        ) from None
    rows = flat_slots(record for record in records if isinstance(record, SlotRecord))
    columns = _columns(rows)
    with duckdb.connect() as database:
        fields = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
        database.execute(f"CREATE TABLE slots ({fields})")
        if rows:
            places = ", ".join("?" * len(columns))
            values = [[row.get(name) for name in columns] for row in rows]
            database.executemany(f"INSERT INTO slots VALUES ({places})", values)  # noqa: S608
        with writing(path), replaced(path) as unfinished:
            try:
                database.table("slots").write_parquet(str(unfinished), compression="zstd")
            except duckdb.Error as error:
                raise OSError(str(error)) from error


def flat_slots(slots: Iterable[SlotRecord]) -> list[dict[str, Any]]:
    """Give each slot as a row, by column; lists are excluded, and functions."""
    return [dict(_flat("", slot.model_dump(exclude={"kind", "functions"}))) for slot in slots]


def _flat(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif not isinstance(value, Sequence) or isinstance(value, str):
        yield name, value


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Give each column's type: the widest that its values need."""
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update([type(value)] if value is not None else [])
    return {name: _column_type(types) for name, types in kinds.items()} or {"round": "BIGINT"}


def _column_type(kinds: set[type]) -> str:
    if kinds == {int, float} or not kinds:
        return COLUMN_TYPES[float]
    return COLUMN_TYPES[kinds.pop()] if len(kinds) == 1 else COLUMN_TYPES[str]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
