"""What grew where a gate fails: by function from profile rounds, or by what the kernel counted."""

from random import Random

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from questions.gate.test_decide import gate_run, judged_whole
from webdyno.core.limits import BASELINE, HEAD, CostGrowth, GateAnswer
from webdyno.core.metrics import responses
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, RunData
from webdyno.questions.gate.growth import (
    NOT_MEASURED,
    TOO_FEW,
    grown_parts,
    growth_at,
    growth_line,
    growth_tables,
)

SLOWER = SimulatedVariant(server_cpu_us=26.0)
BEFORE = {"handle (app.js)": 12.0, "kernel: sending": 6.0, "tiny (app.js)": 0.01}
AFTER = {"handle (app.js)": 12.0, "search (app.js)": 6.0, "kernel: sending": 6.0}


def profiled(before: dict[str, float], after: dict[str, float], rounds: int = 6) -> SimulatedRun:
    """Profile rounds of a gate, by µs per response of each function."""
    variants = {BASELINE: SimulatedVariant(), HEAD: SLOWER}
    run = simulated_run(variants, rounds=rounds)
    random = Random(1)
    spent = {BASELINE: before, HEAD: after}

    def sampled(record: SlotRecord) -> SlotRecord:
        functions = {
            name: us * 1e-6 * responses(record) * random.gauss(1, 0.02)
            for name, us in spent[record.variant].items()
        }
        return record.replace(functions=functions)

    records = [sampled(it) if isinstance(it, SlotRecord) else it for it in run.records]
    return SimulatedRun(run.head, records)


def growth(profile: PointData | None, lacking: str = "") -> CostGrowth:
    return growth_at(gate_run(SLOWER).data, "/search", profile, lacking)


def test_a_function_that_was_added_is_named_with_its_time() -> None:
    found = growth(profiled(BEFORE, AFTER).data)
    assert found.rounds == 6
    assert found.lacking == ""
    assert found.sampled
    (more,) = grown_parts(found.sampled, 0.05)
    assert more.what == "search (app.js)"
    assert more.more_us.low < 6.0 < more.more_us.high
    assert more.b_us == 0
    assert sum(it.more_us.estimate for it in found.sampled.parts) == pytest.approx(
        found.sampled.whole.more_us.estimate
    )
    line = growth_line(found)
    assert line.startswith("/search +"), line
    assert "µs CPU per request (95% CI " in line
    assert "): search (app.js) +" in line
    assert "handle" not in line


def test_what_has_next_to_nothing_of_either_revision_has_no_part_of_its_own() -> None:
    found = growth(profiled(BEFORE, AFTER).data).sampled
    assert found
    names = {part.what for part in found.parts}
    assert "tiny (app.js)" not in names
    assert "all else" in names


def test_without_profile_rounds_the_kernel_s_counters_say_it_and_why() -> None:
    found = growth(None, "profiles take `perf`")
    assert found.sampled is None
    assert found.counted
    line = growth_line(found)
    assert "own code +" in line, line
    assert line.endswith("functions unknown: profiles take `perf`")
    assert growth(None).lacking == NOT_MEASURED
    assert list(growth_tables([found])) == []


def test_rounds_without_samples_are_too_few() -> None:
    run = simulated_run({BASELINE: SimulatedVariant(), HEAD: SLOWER}, rounds=6)
    assert growth(run.data).lacking == TOO_FEW
    other = simulated_run({"nginx": SimulatedVariant(), "apache": SLOWER}, rounds=6)
    assert growth(other.data).sampled is None


@pytest.mark.parametrize(
    ("largest", "why"),
    [
        ("_PyEval_EvalFrameDefault (python3.11)", "3.12 and newer name theirs"),
        ("libpython3.9's own code", "3.12 and newer name theirs"),
        ("_PyEval_EvalFrameDefault (python3.12)", "without frame pointers"),
        ("ruby's own code", "no methods of Ruby"),
        ("php-fpm8.2's own code", "no functions of PHP"),
        ("search (python3.11.py)", ""),
    ],
)
def test_runtimes_that_name_no_functions_are_reported(largest: str, why: str) -> None:
    found = growth(profiled({largest: 10.0}, {largest: 16.0}).data)
    assert why in found.lacking
    assert bool(found.lacking) is bool(why)


def test_other_counts_that_differ_are_reported() -> None:
    larger = SimulatedVariant(server_cpu_us=26.0, body=b"x" * 400)
    found = growth_at(gate_run(larger).data, "/search", None)
    assert [other.what for other in found.others] == ["size of a response, head included"]
    assert "size of a response, head included 251 → 638" in growth_line(found)


def test_a_gate_that_fails_says_what_grew_and_others_do_not() -> None:
    run = gate_run(SLOWER)
    found = judged_whole(RunData(run.head, run.records, {0: profiled(BEFORE, AFTER).whole}))
    assert found.answer is GateAnswer.FAIL
    (grew,) = found.grew
    assert grew.endpoint == "/hello.txt"
    assert grew.sampled
    why = judged_whole(RunData(run.head, run.records, {0: "no perf"})).grew[0]
    assert why.lacking == "no perf"
    assert judged_whole(gate_run(SimulatedVariant()).whole).grew == []


def test_waiting_is_reported_where_cpu_time_has_not_grown() -> None:
    found = growth_at(gate_run(SimulatedVariant(throughput_rps=20_000)).data, "/", None)
    assert "CPU per request hasn't grown (95% confidence), waiting has" in growth_line(found)
