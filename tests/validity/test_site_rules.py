"""Under load as well, rows have to be read from the database."""

from dataclasses import replace

import pytest

from builders import SimulatedRun
from evidence.test_databases import BOOKS, run_with
from webdyno.core.judgement import ValidityWarning
from webdyno.core.records import PreflightRecord, Record
from webdyno.validity import warnings_of


def expecting(run: SimulatedRun, reads: int) -> SimulatedRun:
    """The run, at a site each response of which takes so many rows."""

    def reported(record: Record) -> Record:
        if not isinstance(record, PreflightRecord):
            return record
        responses = {
            name: [it.model_copy(update={"expected_reads": reads}) for it in its]
            for name, its in record.responses.items()
        }
        return record.model_copy(update={"responses": responses})

    return replace(run, records=list(map(reported, run.records)))


def found(calls: dict[str, dict[str, float]], reads: int) -> list[ValidityWarning]:
    run = expecting(run_with(calls), reads)
    return [it for it in warnings_of(run.data) if it.rule == "few-reads"]


def test_a_variant_that_reads_too_few_rows_is_refused() -> None:
    (warning,) = found({"honest": {BOOKS: 20.0}, "cache": {BOOKS: 0.5}}, 20)
    assert (warning.variant, warning.severity) == ("cache", "invalid")
    assert "0.500 statements that read for each response" in warning.what
    assert "holds 20 rows" in warning.what


@pytest.mark.parametrize("reads", [0, 1])
def test_enough_is_enough(reads: int) -> None:
    assert found({"honest": {BOOKS: 0.95}, "more": {BOOKS: 3.0}}, reads) == []


def test_what_writes_or_unlocks_does_not_read() -> None:
    update = "UPDATE world SET randomnumber = $1 WHERE id = $2"
    unlock = "SELECT pg_advisory_unlock_all()"
    calls = {"honest": {BOOKS: 1.0, update: 1.0}, "cache": {update: 1.0, unlock: 1.0}}
    (warning,) = found(calls, 1)
    assert warning.variant == "cache"
