"""How many statements a request takes, and which, as it is told of variants that differ."""

from dataclasses import replace

from builders import SimulatedRun, SimulatedVariant, simulated_run
from judge.validity.broken import quiet_readings
from webdyno.judge.databases import cpu_apart, other_statements, shortened
from webdyno.model.metrics import responses
from webdyno.model.readings import DatabaseUse, ServiceUse, StatementUse
from webdyno.model.records import Record, SlotRecord
from webdyno.report.point_facts import point_facts
from webdyno.report.view import see

BOOKS, AUTHOR = "SELECT title, author FROM book", "SELECT name FROM author WHERE id = $1"


def run_with(calls: dict[str, dict[str, float]]) -> SimulatedRun:
    """A run in which each response of a variant took so many calls of statements."""
    run = simulated_run(dict.fromkeys(calls, SimulatedVariant()), rounds=6)

    def told(record: Record) -> Record:
        if not isinstance(record, SlotRecord):
            return record
        statements = [
            StatementUse(text=text, calls=round(count * responses(record)), time_s=0.1)
            for text, count in calls[record.variant].items()
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

    return replace(run, records=list(map(told, run.records)))


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
    assert shortened(long).startswith("SELECT column_0, ")
    assert shortened(long).endswith(" FROM book WHERE id = $1")
    assert len(shortened(long)) < 100
