"""`webdyno export`: a run's slots as a table for notebooks and databases."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console
from webdyno.lab.ending import Exit
from webdyno.model.files import writing
from webdyno.run.folder import RunFolder


def export(
    run: Annotated[Path, Parameter(help="The run's folder, as named at the end of the run.")],
    *,
    parquet: Annotated[
        Path | None, Parameter(help="The file to write; else slots.parquet in the run's folder.")
    ] = None,
    autobench: Annotated[
        Path | None,
        Parameter(help="Write this CSV file instead, with autobench's columns: a row per rate."),
    ] = None,
) -> Exit:
    """Write a run's slots as one Parquet table: a row for each slot, warm-ups included.

    A sweep of demanded rates can be written as autobench's CSV instead, with variants for hosts.

    For example

        webdyno export runs/2026-11-21-093000-static-hello --parquet slots.parquet

        webdyno export runs/2026-11-21-093000-deathmatch --autobench deathmatch.csv

        duckdb -c 'select variant, median("load.rate_rps") from "slots.parquet" group by variant'
    """
    from webdyno.run.parquet import PARQUET_FILE, write_parquet

    folder = RunFolder.open(run)
    if autobench:
        return _write_autobench(folder, autobench)
    file = parquet or run / PARQUET_FILE
    write_parquet(folder.records(), file)
    plain_console().print(f"slots written to {file}", soft_wrap=True)
    return Exit.OK


def _write_autobench(folder: RunFolder, file: Path) -> Exit:
    from webdyno.report.csv_files import autobench_sheet

    sheet = autobench_sheet(folder.data())
    with writing(file):
        file.write_text(sheet, encoding="utf-8")
    plain_console().print(f"rates written to {file}", soft_wrap=True)
    return Exit.OK
