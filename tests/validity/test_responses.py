"""Rules about answers: each fires on its cause, names variant and figures, and says what to do."""

from dataclasses import replace

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from validity.broken import VARIANTS, found_in, load_with, run_with
from webdyno.core.load_result import Failures
from webdyno.core.records import PreflightRecord, Record, SlotRecord
from webdyno.validity import responses, warnings_of
from webdyno.validity.rule import SlotRule


def test_a_clean_run_has_no_warnings() -> None:
    run = simulated_run(VARIANTS, rounds=6)
    assert warnings_of(run.data) == []


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("status", responses.NON_2XX),
        ("body", responses.WRONG_BODY),
        ("truncated", responses.TRUNCATED),
        ("malformed", responses.MALFORMED),
        ("timeout", responses.TIMEOUTS),
        ("reset", responses.RESETS),
        ("connect", responses.REFUSED),
    ],
)
def test_each_kind_of_failure_breaks_its_own_rule(kind: str, rule: SlotRule) -> None:
    change = load_with(
        failures={kind: 7}, failure_samples=["GET /hello.txt: what went wrong in words"]
    )
    (warning,) = found_in(run_with(change)).values()
    assert (warning.rule, warning.severity, warning.variant) == (rule.name, "invalid", "apache")
    assert warning.what.startswith("variant apache: 168 ")
    assert "what went wrong in words" in warning.what
    assert warning.fix


def test_every_kind_of_failure_has_a_rule() -> None:
    for kind in Failures.model_fields:
        run = run_with(load_with(failures={kind: 1}))
        assert len(found_in(run)) == 1


def test_non_2xx_shows_the_codes_and_their_share() -> None:
    variants = {
        "nginx": SimulatedVariant(),
        "apache": SimulatedVariant(wrong_status=503, wrong_share=0.25),
    }
    run = simulated_run(variants, rounds=6)
    under_load: list[Record] = [it for it in run.records if it.kind != "preflight"]
    found = found_in(SimulatedRun(run.head, under_load))
    what = found["non-2xx"].what
    assert "(503)" in what
    assert " of " in what
    assert "no-responses" not in found


def test_an_expected_redirect_is_no_failure() -> None:
    run = run_with(load_with(by_status={"301": 20_000}))
    assert found_in(run) == {}


def test_a_variant_without_answers_is_reported() -> None:
    found = found_in(run_with(load_with(requests={"completed": 0, "drained": 0})))
    assert found["no-responses"].severity == "invalid"
    assert "24 slots" in found["no-responses"].what


def test_a_page_slower_than_a_slot_is_answered_in_its_drain() -> None:
    found = found_in(run_with(load_with(requests={"completed": 0, "drained": 64})))
    assert "no-responses" not in found


@pytest.mark.parametrize(
    ("refusal", "what", "fix"),
    [
        ("limiting requests, excess: 20.5", "its log says: limiting requests", "limit_req"),
        ("", "(503)", "fewer connections"),
    ],
)
def test_statuses_that_come_under_load_alone_are_not_looked_for_with_curl(
    refusal: str, what: str, fix: str
) -> None:
    variants = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(wrong_status=503)}
    run = simulated_run(variants, rounds=6)
    under_load: list[Record] = [
        it.model_copy(update={"refusal": refusal}) if isinstance(it, SlotRecord) else it
        for it in run.records
        if it.kind != "preflight"
    ]
    found = found_in(SimulatedRun(run.head, under_load))["non-2xx"]
    assert what in found.what
    assert fix in found.fix
    assert "curl" not in found.fix


@pytest.mark.parametrize(
    ("under_load", "refused"), [(0, True), (8, False), (14, False), (40, False), (400, True)]
)
def test_other_responses_under_load_than_those_looked_at_are_refused(
    under_load: int, refused: bool
) -> None:
    """As of a program that answers the first requests, or an error page with status 200."""
    honest = SimulatedVariant(body=b"Hello, world!\n")
    run = simulated_run({"a": honest, "b": honest}, rounds=6)

    def reported(record: Record) -> Record:
        if isinstance(record, PreflightRecord):
            responses = {
                name: [it.replace(wire_bytes=it.body_bytes) for it in its]
                for name, its in record.responses.items()
            }
            return record.replace(responses=responses)
        if isinstance(record, SlotRecord) and record.variant == "b":
            whole = record.load.bytes.model_copy(
                update={"body": under_load * record.load.requests.completed}
            )
            load = record.load.model_copy(update={"bytes": whole})
            return record.model_copy(update={"load": load})
        return record

    data = replace(run, records=list(map(reported, run.records))).data
    found = [each for each in warnings_of(data) if each.rule == "other-size-under-load"]
    assert [each.variant for each in found] == (["b"] if refused else [])
    assert all("with 14 when its responses were looked at" in each.what for each in found)
