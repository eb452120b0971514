"""Whether variants keep the rules of their sites, which make programs comparable."""

from collections.abc import Iterator

from webdyno.core.experiment import Experiment
from webdyno.core.format import significant
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import responses
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.rule import RunRule, uncomparable

KEEP_RULES = (
    "Correct the program: docs/reference/catalog.md has the rules of sites, which make what "
    "answers them comparable."
)
ENOUGH = 0.9
"""Share of the rows that have to be read: counters and responses don't begin at one moment."""
READING = ("SELECT", "WITH", "(SELECT")
CATALOG = "pg_"
"""In statements by which drivers ask for types, and let go of locks: `pg_advisory_unlock_all`."""


def broken_rules(preflight: PreflightRecord, experiment: Experiment) -> Iterator[ValidityWarning]:
    """Report rules that the check before the load saw broken."""
    for variant, what in preflight.broken_rules.items():
        yield uncomparable(
            "broken-rule",
            variant,
            f"variant {variant} breaks a rule of site {experiment.site_of(variant)}: {what}",
            KEEP_RULES,
        )


def _few_reads(data: PointData) -> Iterator[ValidityWarning]:
    """Find variants whose database was asked for fewer rows than their responses hold."""
    for variant in data.experiment.variants:
        slots = [slot for slot in data.of_variant(variant) if slot.readings]
        counted = [slot for slot in slots if slot.readings and slot.readings.databases]
        answered, expected = sum(map(responses, counted)), _expected_reads(data, variant)
        reads = sum(map(_reads, counted))
        if answered and reads < ENOUGH * expected * answered:
            yield uncomparable(
                "few-reads",
                variant,
                f"its database answered {significant(reads / answered, 3)} statements that read "
                f"for each response, and each response holds {expected} rows that have to be read "
                "by a statement each: rows are cached, or several read by one statement",
                KEEP_RULES,
            )


def _expected_reads(data: PointData, variant: str) -> int:
    """Give the fewest rows that a response to any of the load's requests takes."""
    answers = (preflight.responses.get(variant, []) for preflight in data.preflights)
    return min((response.expected_reads for its in answers for response in its), default=0)


def _reads(slot: SlotRecord) -> int:
    databases = slot.readings.databases.values() if slot.readings else ()
    return sum(
        statement.calls
        for database in databases
        for statement in database.statements
        if statement.text.upper().startswith(READING) and CATALOG not in statement.text
    )


FEW_READS = RunRule("few-reads", _few_reads)
