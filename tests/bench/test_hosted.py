"""bench/hosted.py: its repositories, the table of recorded gates, and a gate from first to last."""

from argparse import Namespace
from pathlib import Path

import pytest

import bisections
import hosted
from bench.outcomes import KEPT
from e2e.commands import environment
from rig import lab
from truth import own_program
from webdyno.core.base import Interval
from webdyno.core.limits import GateAnswer, GateClaim, GateJudgement
from webdyno.questions.gate.settings import DEFAULT_TOLERANCES

EQUAL, _, LIMIT, SLOWER = hosted.KINDS
PASS, FAIL = GateAnswer.PASS, GateAnswer.FAIL
WIDTHS = "cpu ±{}, throughput unknown, p99 ±8.4%"


def gate(
    kind: hosted.Kind, answer: GateAnswer | None, took_s: float, cpu: float
) -> hosted.Answered:
    own = {"case": kind.name, "took_s": took_s, "machine": "Xeon, 4 cores, load average 0.1"}
    widths = {"server_cpu_us": cpu, "latency_p99_us": 0.0842} if answer else {}
    return hosted.Answered.model_validate({**KEPT, **own, "answer": answer, "half_widths": widths})


RECORDED = (
    gate(EQUAL, PASS, 30.0, 0.011),
    gate(EQUAL, PASS, 50.0, 0.013),
    gate(EQUAL, GateAnswer.INCONCLUSIVE, 640.0, 0.021),
    gate(EQUAL, None, 3.0, 0.0),
    gate(LIMIT, FAIL, 60.0, 0.01),
    gate(SLOWER, FAIL, 31.0, 0.009),
    gate(SLOWER, GateAnswer.INVALID, 33.0, 0.009),
    gate(SLOWER, PASS, 35.0, 0.04),
)


def test_the_table_counts_answers_and_gives_medians(tmp_path: Path) -> None:
    files = [tmp_path / "part-1.jsonl", tmp_path / "part-2.jsonl"]
    for place, found in enumerate(RECORDED):
        lab.append(files[place % 2], found)
    found_all = hosted.known(Namespace(results=files))
    assert hosted.rows(found_all) == [
        ["equal", "4", "0% (0.0–60.2)", "2", "0", "1", "0", "1", "40", WIDTHS.format("1.3%")],
        ["+5% CPU", "1", "–", "0", "1", "0", "0", "0", "60", WIDTHS.format("1.0%")],
        ["+10% CPU", "3", "33.3% (0.8–90.6)", "1", "1", "0", "1", "0", "33", WIDTHS.format("0.9%")],
    ]
    page = hosted.page(found_all)
    assert "| equal | 4 | 0% (0.0–60.2) | 2 | 0 | 1 | 0 | 1 | 40 | cpu ±1.3%, " in page
    assert "Xeon, 4 cores (8 gates)" in page
    assert "no gates yet" in hosted.page([])


def test_what_is_there_is_not_measured_again_and_jobs_share_the_rest(tmp_path: Path) -> None:
    results = [tmp_path / "gates.jsonl"]
    lab.append(results[0], RECORDED[0])
    left = {
        (gates, jobs): [
            hosted.lacking(kind, Namespace(gates=gates, jobs=jobs, results=results))
            for kind in hosted.KINDS
        ]
        for gates, jobs in ((None, 1), (None, 5), (1, 1), (1, 5))
    }
    assert left == {
        (None, 1): [19, 10, 10, 10],
        (None, 5): [3, 2, 2, 2],
        (1, 1): [0, 1, 1, 1],
        (1, 5): [0, 1, 1, 1],
    }


def test_what_is_wrong_hangs_on_the_limit() -> None:
    assert [kind.wrong for kind in hosted.KINDS] == [FAIL, FAIL, None, PASS]


def test_only_cis_with_bounds_have_a_width() -> None:
    def claim(metric: str, low: float, high: float) -> GateClaim:
        worse = Interval(low=low, estimate=1.0, high=high, confidence=0.95)
        known = {"endpoint": "/", "metric": metric, "tolerance": 0.05, "answer": "inconclusive"}
        rest = {
            "why": "",
            "worse": worse,
            "noise": None,
            "baseline": 1.0,
            "head": 1.0,
            "rounds": 6,
            "because": "wide-interval",
        }
        return GateClaim.model_validate({**known, **rest})

    claims = [claim("server_cpu_us", 0.99, 1.01), claim("throughput_rps", 1e-12, 1e12)]
    judged = GateJudgement(answer=PASS, headline="h", baseline="b", head="h", claims=claims)
    seen = hosted.seen_in(judged.model_dump_json())
    assert seen["answer"] is PASS
    assert seen["half_widths"] == {"server_cpu_us": pytest.approx(0.01, rel=0.02)}


def test_head_costs_more_than_base_by_its_share(tmp_path: Path) -> None:
    hosted.repository_of(tmp_path / "repository", 0.03, Path("/srv/dialed"))
    served = {
        name: bisections.git(tmp_path / "repository", "show", f"{name}:serve.sh")
        for name in ("base", "head")
    }
    assert served["base"].endswith("--cost-us 100\n")
    assert served["head"].endswith("--cost-us 103\n")
    hosted.repository_of(tmp_path / "equal", 0.0, Path("/srv/dialed"))
    changed = bisections.git(tmp_path / "equal", "diff", "--name-only", "base", "head")
    assert changed == "serve.sh\n", "else there would be nothing to measure"


def test_gates_leave_the_jobs_own_summary_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    assert not [name for name in hosted.environment(tmp_path) if name.startswith("GITHUB_")]


@pytest.mark.measures
@pytest.mark.timeout(600)
def test_a_gate_runs_from_first_to_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    with own_program() as program:
        found = hosted.run(SLOWER._replace(more=1.0), program, "40s", tmp_path / "runs")
    assert (found.answer, found.problem) == (FAIL, "")
    assert found.half_widths.keys() <= DEFAULT_TOLERANCES.keys()
    (kept,) = (tmp_path / "runs").iterdir()
    assert (kept / "slots.jsonl").exists()
