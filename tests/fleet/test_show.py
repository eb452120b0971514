"""A fleet of more machines than anybody wants to read of, one by one."""

import re

from builders import SimulatedVariant, simulated_run
from report.in_terminal import in_terminal
from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison, Verdict
from webdyno.fleet import (
    FleetJudgement,
    JudgedMachine,
    JudgedPoint,
    judge_fleet,
    judge_machine,
)
from webdyno.fleet.show import fleet_document, fleet_page, list_some, shared_values, shown_machines

VARIANTS = {"apache": SimulatedVariant(), "nginx": SimulatedVariant(throughput_rps=80_000)}
RUN = simulated_run(VARIANTS, rounds=6)
JUDGED = judge_machine(RUN.whole)


def fleet_of(machines: int) -> FleetJudgement:
    """Judge machines of which each answers a little faster than the one before."""
    return judge_fleet({f"host{n}": _machine(n) for n in range(machines)})


def _machine(number: int) -> JudgedMachine:
    """Give one; every 40th is invalid, and every 50th has another kernel."""
    at = JUDGED.points[0]
    here = {"identity": str(number), "cpu_model": f"CPU {number}"}
    here |= {"kernel": "7.0"} if number % 50 == 1 else {}
    machine = JUDGED.head.machine.model_copy(update=here)
    compared = [_times(it, 1 + number / 1e4) for it in at.compared]
    if number % 40 == 39:
        invalid = {"verdict": Verdict.INVALID, "why": "No verdict: it broke."}
        compared = [it.model_copy(update=invalid) for it in compared]
    head = JUDGED.head.model_copy(update={"machine": machine})
    return JudgedMachine(head, [JudgedPoint(at.levels, compared)])


def _times(it: Comparison, factor: float) -> Comparison:
    def scaled(found: Interval | None) -> Interval | None:
        ends = ("low", "estimate", "high")
        return found and found.model_copy(
            update={name: factor * getattr(found, name) for name in ends}
        )

    return it.model_copy(
        update={
            "ratio": scaled(it.ratio),
            "worst_case": scaled(it.worst_case),
            "by_round": [factor * each for each in it.by_round],
        }
    )


def printed(fleet: FleetJudgement) -> str:
    return in_terminal(fleet_document(RUN.head, fleet))


def test_each_of_a_few_machines_is_shown() -> None:
    (pair,) = fleet_of(20).points[0].comparisons
    assert [it.label for it in shown_machines(pair.replicates)] == [f"host{n}" for n in range(20)]


def test_of_many_machines_both_ends_and_where_half_of_them_lie() -> None:
    (pair,) = fleet_of(1000).points[0].comparisons
    shown = shown_machines(pair.replicates)
    assert [it.label for it in shown] == [
        *(f"host{n}" for n in range(5)),
        "half of all 975",
        *(f"host{n}" for n in range(994, 999)),
        "host39, host79, host119, host159 and 21 more",
    ]
    half = shown[5]
    assert half.ratio
    assert half.reach
    assert half.reach[0] < half.ratio.low < half.ratio.estimate < half.ratio.high < half.reach[1]
    assert shown[-1].verdict is Verdict.INVALID


def test_the_terminal_has_no_more_lines_for_a_thousand_machines_than_for_a_hundred() -> None:
    hundred, thousand = (printed(fleet_of(n)).splitlines() for n in (100, 1000))
    assert 20 < len(hundred) <= len(thousand) < 50
    assert "7.0 (host1, host51, host101, host151 and 16 more)" in " ".join(
        " ".join(thousand).split()
    )


def test_the_page_of_a_thousand_machines_folds_them() -> None:
    few, many = (fleet_page(RUN.head, fleet_of(n), {}, "again") for n in (100, 1000))
    folded = re.compile(r"<details>.*?</details>", re.DOTALL)
    assert folded.search(many)
    seen = [folded.sub("", page) for page in (few, many)]
    assert len(seen[1]) < 1.1 * len(seen[0])
    assert len(many) - len(few) < 900 * 250
    assert many.count("<tr>") == 1001


def test_values_that_machines_share_are_reported_once() -> None:
    assert shared_values({"a": "1", "b": "2", "c": "1"}) == [("1", "a, c"), ("2", "b")]
    reported = shared_values({f"m{n}": str(max(n, 5)) for n in range(20)})
    assert reported[0] == ("5", "m0, m1, m2, m3 and 2 more")
    assert reported[-1] == ("7 other values", "7 machines")


def test_one_more_name_is_as_short_as_saying_so() -> None:
    assert list_some(list("abcde")) == "a, b, c, d, e"
    assert list_some(list("abcdef")) == "a, b, c, d and 2 more"
