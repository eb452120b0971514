"""What is wrong with a whole run."""

from datetime import timedelta
from typing import Any

import pytest

from builders import START, SimulatedRun, SimulatedVariant, run_head, simulated_run
from validity.broken import VARIANTS, found_in, incident
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.records import IncidentRecord, RoundRecord, SessionRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import exceeded_by_largest


def with_incidents(*incidents: IncidentRecord) -> SimulatedRun:
    """A run of six rounds in which they happened, and which ended with them."""
    run = simulated_run(VARIANTS, rounds=6)
    return SimulatedRun(run.head, [*run.records, *incidents])


def resumed_after(*incidents: IncidentRecord) -> SimulatedRun:
    """A run in which they happened before their rounds were measured again and finished."""
    run = simulated_run(VARIANTS, rounds=6)
    return SimulatedRun(run.head, [*incidents, *run.records])


def test_a_server_that_died_makes_its_variant_invalid() -> None:
    run = with_incidents(
        incident(round_number=7, log_tail=["starting", "worker exited on signal 9"])
    )
    (warning,) = found_in(run).values()
    assert (warning.rule, warning.severity, warning.variant) == ("incident", "invalid", "apache")
    assert "service apache ended with signal 9 (round 7)" in warning.what
    assert "worker exited on signal 9" in warning.what
    assert "webdyno resume" in warning.fix


def test_a_round_measured_again_leaves_the_run_whole() -> None:
    run = resumed_after(incident(round_number=0))
    (warning,) = found_in(run).values()
    assert warning.severity == "note"
    assert "measured again since" in warning.what
    assert judge(run.data).verdict is not Verdict.INVALID


def test_a_server_that_dies_again_and_again_invalidates_its_variant_all_the_same() -> None:
    run = resumed_after(
        incident(round_number=0), incident(round_number=0), incident(round_number=1)
    )
    warning = found_in(run)["incident"]
    assert warning.severity == "invalid"
    assert "2 more incidents" in warning.what


def test_slots_before_an_incident_count_for_nothing() -> None:
    run = simulated_run(VARIANTS, rounds=2)
    ends = [at for at, record in enumerate(run.records) if isinstance(record, RoundRecord)]
    torn = run.records[ends[0] + 1 : ends[1] - 2]
    judged = judge(
        PointData.of(run.head, [*run.records[: ends[0] + 1], *torn, incident(round_number=1)])
    )
    assert judged.rounds == 1


def test_a_load_generator_that_ended_is_reported_with_what_to_do() -> None:
    run = with_incidents(incident(None, round_number=6, log_tail=["thread panicked"]))
    (warning,) = found_in(run).values()
    assert (warning.severity, warning.variant) == ("note", None)
    assert warning.what.startswith("the load generator: ")
    assert "(round 6)" in warning.what
    assert "webdyno resume" in warning.fix


def session(**changes: Any) -> SessionRecord:  # noqa: ANN401
    """A start of measuring under the conditions of the run's head, but for the changes."""
    head = run_head({name: variant.stack for name, variant in VARIANTS.items()})
    alike = {
        name: getattr(head, name)
        for name in ("webdyno_version", "machine", "versions", "load_generator")
    }
    return SessionRecord(started_at=START + timedelta(hours=1), **{**alike, **changes})


def resumed(here: SessionRecord) -> SimulatedRun:
    """A run of two sessions."""
    run = simulated_run(VARIANTS, rounds=6)
    half = next(at for at, it in enumerate(run.records, 1) if isinstance(it, RoundRecord))
    return SimulatedRun(run.head, [session(), *run.records[:half], here, *run.records[half:]])


def test_sessions_alike_are_one_run() -> None:
    assert judge(resumed(session()).data).verdict is not Verdict.INVALID


def test_a_little_more_memory_is_the_same_machine() -> None:
    machine = session().machine
    more = machine.model_copy(update={"memory_bytes": machine.memory_bytes + 8_192})
    assert "mixed-sessions" not in found_in(resumed(session(machine=more)))


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"webdyno_version": "0.2.0"}, "webdyno_version was 0.1.0, then 0.2.0"),
        ({"load_generator": "wrk 4.1"}, "load_generator was loadgen 0.1.0, then wrk 4.1"),
        ({"versions": {"nginx": {"nginx": "1.26.0"}}}, "versions.nginx.nginx was 1.22.1"),
        (
            {"machine": session().machine.model_copy(update={"kernel": "6.12"})},
            "machine.kernel was 6.1.0-18-amd64, then 6.12",
        ),
    ],
)
def test_other_conditions_are_never_mixed_in_silence(
    changes: dict[str, Any], reported: str
) -> None:
    run = resumed(session(**changes))
    warning = found_in(run)["mixed-sessions"]
    assert reported in warning.what
    assert judge(run.data).verdict is Verdict.INVALID


@pytest.mark.parametrize(("quantile", "needed"), [(0.5, 5), (0.99, 299), (0.999, 2_995)])
def test_samples_follow_the_binomial_bound(quantile: float, needed: int) -> None:
    assert exceeded_by_largest(quantile) == needed


def test_a_slow_site_has_too_few_answers_for_its_99th_percentile() -> None:
    variants = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=100)}
    warning = found_in(simulated_run(variants, rounds=6))["few-samples"]
    assert warning.metrics == ["latency_p99_us"]
    assert "needs 299" in warning.what


def test_too_few_rounds_are_noted() -> None:
    warning = found_in(simulated_run(VARIANTS, rounds=5))["few-rounds"]
    assert warning.severity == "note"
    assert "5 finished rounds" in warning.what
