"""A gate by instructions per request, on simulated records, as machines with counters have them."""

from random import Random

from builders import SimulatedRun, SimulatedVariant
from questions.gate.test_decide import gate_run, judged
from validity.broken import readings_with
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.limits import GateAnswer
from webdyno.core.metrics import INSTRUCTIONS, METRICS, metrics_reported_by, responses
from webdyno.core.records import Record, SlotRecord
from webdyno.questions.gate.comment import gate_markdown
from webdyno.questions.gate.settings import GateSettings

PER_REQUEST = {"baseline": 250_000, "baseline again": 250_000, "head": 250_000}
HEAD_MORE = {**PER_REQUEST, "head": 265_000}
SCATTER = 0.001
FAULT = "others use the counters, which were free 50% of the time"


def counted(run: SimulatedRun, per_request: dict[str, int], *, lost: int = 0) -> SimulatedRun:
    """The run with counts in its slots; in `lost` of ten slots others had the counter."""
    rng = Random(1)

    def with_count(record: Record) -> Record:
        if not isinstance(record, SlotRecord):
            return record
        if record.round % 10 < lost:
            return record.replace(uncounted=FAULT)
        each = per_request[record.variant] * rng.gauss(1.0, SCATTER)
        return record.replace(instructions=round(each * responses(record)))

    settings = GateSettings(worse_than={INSTRUCTIONS: 0.02})
    measure = run.head.experiment.measure.replace(decide_on=INSTRUCTIONS)
    experiment = run.head.experiment.replace(asks=settings, measure=measure)
    head = run.head.replace(experiment=experiment)
    return SimulatedRun(head, [with_count(record) for record in run.records])


def test_head_that_executes_more_fails_and_an_equal_one_passes() -> None:
    run = gate_run(SimulatedVariant())
    more = judged(counted(run, HEAD_MORE))
    assert more.answer is GateAnswer.FAIL
    assert "/hello.txt needs 6% more instructions per request (" in more.headline
    (claim,) = more.claims
    assert claim.worse
    assert claim.worse.low < 1.06 < claim.worse.high
    assert judged(counted(run, PER_REQUEST)).answer is GateAnswer.PASS
    said = gate_markdown(more)
    assert "instructions per request 250,000 → 265,000" in said
    assert "waiting" not in said


def test_stolen_time_takes_nothing_from_the_answer() -> None:
    run = counted(gate_run(SimulatedVariant()), PER_REQUEST)
    stolen = readings_with(host={"servers": {"steal_s": 0.5}})
    busy = [stolen(record) if isinstance(record, SlotRecord) else record for record in run.records]
    assert judged(SimulatedRun(run.head, busy)).answer is GateAnswer.PASS


def test_slots_whose_counter_others_had_are_left_out_or_too_many() -> None:
    run = gate_run(SimulatedVariant())
    few = counted(run, PER_REQUEST, lost=2)
    assert judged(few).answer is GateAnswer.PASS
    many = counted(run, PER_REQUEST, lost=8)
    found = judged(many)
    assert found.answer is not GateAnswer.PASS
    assert FAULT in " ".join([found.headline, *found.notes, *(it.why for it in found.claims)])
    by_metric = {it.metric: it.verdict for it in judge(many.data).comparisons if it.a == "head"}
    assert by_metric[INSTRUCTIONS] is Verdict.INVALID
    assert by_metric["server_cpu_us"] is Verdict.EQUIVALENT


def test_the_metric_shows_only_where_it_was_counted() -> None:
    run = gate_run(SimulatedVariant())
    slots = [record for record in run.records if isinstance(record, SlotRecord)]
    assert METRICS[INSTRUCTIONS] not in metrics_reported_by(slots, "server_cpu_us")
    assert METRICS[INSTRUCTIONS] not in metrics_reported_by([], "server_cpu_us")
    with_counts = counted(run, PER_REQUEST).records
    slots = [record for record in with_counts if isinstance(record, SlotRecord)]
    assert METRICS[INSTRUCTIONS] in metrics_reported_by(slots, "server_cpu_us")
