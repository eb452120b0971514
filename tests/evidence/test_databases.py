"""How many statements a request takes, and which, as it is said of variants that differ."""

from dataclasses import replace

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from validity.broken import quiet_readings
from webdyno.comparison.time_spent import counted_parts, in_short
from webdyno.core.metrics import responses
from webdyno.core.readings import DatabaseUse, ServiceUse, StatementUse
from webdyno.core.records import Record, SlotRecord
from webdyno.evidence.cost import cpu_apart, other_statements, shorten
from webdyno.report.point_facts import point_facts
from webdyno.report.view import see

BOOKS, AUTHOR = "SELECT title, author FROM book", "SELECT name FROM author WHERE id = $1"


def run_with(
    calls: dict[str, dict[str, float]], took_us: dict[str, float] | None = None
) -> SimulatedRun:
    """A run in which each response of a variant took so many calls of statements.

    `took_us`: by variant, how long each of its calls took.
    """
    run = simulated_run(dict.fromkeys(calls, SimulatedVariant()), rounds=6)
    each_us = dict.fromkeys(calls, 50.0) | (took_us or {})

    def reported(record: Record) -> Record:
        if not isinstance(record, SlotRecord):
            return record
        statements = [
            StatementUse(text=text, calls=called, time_s=called * each_us[record.variant] / 1e6)
            for text, count in calls[record.variant].items()
            for called in [round(count * responses(record))]
        ]
        use = DatabaseUse(
            calls=sum(it.calls for it in statements),
            statements=statements,
            bytes_before=1,
            bytes_after=1,
        )
        readings = quiet_readings(record).model_copy(
            update={"databases": {"db": use}, "services": {"db": service(record)}}
        )
        return record.model_copy(update={"readings": readings})

    return replace(run, records=list(map(reported, run.records)))


def service(slot: SlotRecord) -> ServiceUse:
    """A database that takes half of the CPU time."""
    half_s = slot.servers.cpu_s / 2
    counts = dict.fromkeys(
        ("switches_voluntary", "switches_involuntary", "faults_minor", "faults_major"), 0
    )
    more = dict.fromkeys(("processes", "threads", "started", "ended", "peak_rss_bytes"), 1)
    none = dict.fromkeys(("disk_read_bytes", "disk_written_bytes", "pss_bytes"))
    return ServiceUse.model_validate(
        {"cpu_user_s": half_s, "cpu_sys_s": 0.0, **counts, **more, **none}
    )


def test_a_query_for_each_row_is_named() -> None:
    run = run_with({"main": {BOOKS: 1.0}, "head": {BOOKS: 1.0, AUTHOR: 50.0}})
    said = f"head: 51.0 statements per request, main: 1.00: {AUTHOR} 50.0×"
    assert list(other_statements(run.data)) == [said]
    facts = dict(point_facts(see(run.whole).view.points[0]))
    assert facts["Database"].startswith(said)


def test_of_fewer_statements_those_that_are_saved_are_named() -> None:
    run = run_with({"main": {BOOKS: 1.0, AUTHOR: 50.0}, "head": {BOOKS: 1.0}})
    assert list(other_statements(run.data)) == [
        f"head: 1.00 statements per request, main: 51.0: {AUTHOR} 50.0× of main"
    ]


def test_a_statement_that_takes_longer_is_named() -> None:
    """A dropped index: as many statements, of which one reads the whole table."""
    calls = {BOOKS: 1.0, AUTHOR: 2.0}
    run = run_with({"main": calls, "head": calls}, {"main": 100.0, "head": 4_000.0})
    author = f"{AUTHOR} takes 8.00 ms per request, main: 200 µs"
    books = f"{BOOKS} takes 4.00 ms per request, main: 100 µs"
    assert list(other_statements(run.data)) == [f"head: {author}; {books}"]
    run = run_with({"main": calls, "head": calls}, {"main": 100.0, "head": 110.0})
    assert list(other_statements(run.data)) == []


def test_the_time_of_a_database_is_no_code_of_its_application() -> None:
    """Half of the CPU time is the database's, in a run of which one costs more."""
    run = run_with({"main": {BOOKS: 1.0}, "head": {BOOKS: 1.0}})
    parts = counted_parts(run.data)
    assert list(parts) == ["in the programs", "in the kernel", "in interrupts", "in db"]
    slot = next(slot for slot in run.data.slots if slot.phase == "measure")
    assert parts["in db"](slot) == pytest.approx(slot.servers.cpu_s / 2)
    whole_s = parts["in the programs"](slot) + parts["in db"](slot)
    assert whole_s == pytest.approx(slot.servers.cpu_user_s)
    assert in_short("in db") == "db"


def test_the_same_statements_are_not_worth_a_word() -> None:
    run = run_with({"main": {BOOKS: 1.0}, "head": {BOOKS: 1.01}})
    assert list(other_statements(run.data)) == []
    (said,) = cpu_apart(run.data)
    assert said.startswith("CPU per request in db: 10")
    assert said.endswith(" µs (head)")


def test_without_a_database_nothing_is_said() -> None:
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6)
    assert [*other_statements(run.data), *cpu_apart(run.data)] == []


def test_long_statements_keep_their_ends() -> None:
    columns = ", ".join(f"column_{it}" for it in range(50))
    long = f"SELECT {columns} FROM book WHERE id = $1"  # noqa: S608 (nobody runs it)
    assert shorten(long).startswith("SELECT column_0, ")
    assert shorten(long).endswith(" FROM book WHERE id = $1")
    assert len(shorten(long)) < 100
