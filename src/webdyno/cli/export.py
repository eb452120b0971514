"""`webdyno export`: a run's slots as a table for notebooks and databases."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from webdyno.cli.exits import Exit
from webdyno.run.folder import RunFolder


def export(
    run: Annotated[Path, Parameter(help="The run's folder, as named at the end of the run.")],
    *,
    parquet: Annotated[
        Path | None, Parameter(help="The file to write; else slots.parquet in the run's folder.")
    ] = None,
) -> Exit:
    """Write a run's slots as one Parquet table: a row for each slot, warm-ups included.

    For example

        webdyno export runs/2026-11-21-093000-static-hello --parquet slots.parquet

        duckdb -c 'select arm, median("load.rate_rps") from "slots.parquet" group by arm'
    """
    from webdyno.run.parquet import PARQUET_FILE, write_parquet

    folder = RunFolder.open(run)
    file = parquet or run / PARQUET_FILE
    write_parquet(folder.records(), file)
    Console().print(f"slots written to {file}", markup=False, highlight=False, soft_wrap=True)
    return Exit.OK
