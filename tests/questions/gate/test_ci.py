"""What CI reads of a gate: each format as its reader takes it."""

import json
from xml.etree import ElementTree as Xml

from hypothesis import given
from hypothesis import strategies as st

from builders import machine
from webdyno.core.base import Interval
from webdyno.core.limits import ClaimAnswer, GateAnswer, GateClaim, GateJudgement
from webdyno.questions.gate.ci import (
    annotations,
    as_json,
    bencher,
    gitlab_load_performance,
    junit,
)
from webdyno.questions.gate.claims import gate_headline
from webdyno.questions.gate.comment import gate_markdown
from webdyno.questions.gate.decide import gate_answer


def claim(
    answer: ClaimAnswer = "not worse", metric: str = "server_cpu_us", endpoint: str = "/"
) -> GateClaim:
    shift = 0.3 if answer == "worse" else 0.0
    return GateClaim(
        endpoint=endpoint,
        metric=metric,
        tolerance=0.05,
        answer=answer,
        because="wide-interval",
        why="inconclusive after 30 rounds",
        worse=Interval(low=0.982 + shift, estimate=1.0 + shift, high=1.021 + shift),
        noise=0.016,
        baseline=100.0,
        head=100.0 * (1 + shift),
        rounds=8,
    )


def gate(*claims: GateClaim, notes: tuple[str, ...] = ()) -> GateJudgement:
    answer = gate_answer([it.answer for it in claims])
    return GateJudgement(
        answer=answer,
        headline=gate_headline(answer, claims),
        baseline="main (1a2b3c4)",
        head="the working tree",
        claims=list(claims),
        notes=list(notes),
        took_s=61.0,
        machine=machine(),
    )


PASS = gate(claim(), claim(metric="throughput_rps"))
FAIL = gate(claim(endpoint="/a"), claim("worse", endpoint="/b_c"))
OPEN = gate(claim("inconclusive"), claim())


def test_the_comment_says_it_in_its_first_line() -> None:
    first = gate_markdown(PASS).splitlines()[0]
    assert first == (
        "### ✓ PASS: 2 checks within limits; closest: / CPU per request "
        "−1.8 to +2.1% (limit +5%)"
    )
    assert gate_markdown(FAIL).startswith(
        "### ✗ FAIL: 1 of 2 checks worse: /b\\_c CPU per request +28 to +32%"
    )
    assert "| 130 µs | +28 to +32% | +5% | ✗ worse |" in gate_markdown(FAIL)
    assert gate_markdown(OPEN).startswith("### ? INCONCLUSIVE: ")


def test_one_table_names_each_endpoint_once() -> None:
    rows = [line for line in gate_markdown(FAIL).splitlines() if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in rows] == ["", "---", "/a", "/b\\_c"]
    assert len({row.count("|") for row in rows}) == 1


def test_the_comment_says_how_noisy_equal_code_is() -> None:
    assert "A/A check: two copies of baseline differ by at most 1.6% in" in gate_markdown(PASS)


def test_at_a_rate_all_formats_for_people_say_what_it_costs() -> None:
    at_rate = FAIL.replace(rate_rps=2_000.0)
    costs = "/a 0.100 against 0.100 and /b_c 0.130 against 0.100 cores per 1,000 requests/s"
    for medium in (gate_markdown, annotations, junit):
        assert "at 2,000 requests/s" in medium(at_rate)
        assert costs in medium(at_rate).replace("\\", "")
        assert "cores" not in medium(FAIL)
    none = gate(claim("invalid")).replace(rate_rps=2_000.0)
    assert "cores" not in gate_markdown(none), "what doesn't keep the rate has no cost there"


def test_annotations_are_commands_of_one_line() -> None:
    lines = annotations(FAIL).splitlines()
    assert lines[0].startswith("::error title=webdyno gate%3A fail::1 of 2 checks worse")
    assert lines[1].startswith("::error title=/b_c is worse::")
    assert annotations(OPEN).startswith("::warning ")
    assert annotations(PASS).startswith("::notice ")


def test_junit_is_red_for_what_is_worse_alone() -> None:
    (suite,) = Xml.fromstring(junit(FAIL))  # noqa: S314 (our own)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    red = [case.get("classname") for case in suite if case.find("failure") is not None]
    assert red == ["/b_c"]
    (suite,) = Xml.fromstring(junit(OPEN))  # noqa: S314 (our own)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_what_cannot_be_believed_has_no_figures() -> None:
    invalidated = gate(
        claim("invalid").model_copy(update={"why": "variant head: it ended:\n+ log"})
    )
    assert gate_markdown(invalidated).startswith("### ✕ INVALID: /: variant head: it ended\n")
    assert "| invalid | +5% | ✕ invalid |" in gate_markdown(invalidated)
    (suite,) = Xml.fromstring(junit(invalidated))  # noqa: S314 (our own)
    (error,) = suite.iter("error")
    assert error.get("message", "").startswith("variant head: it ended")


def test_bencher_has_a_benchmark_for_each_endpoint() -> None:
    assert json.loads(bencher(PASS)) == {
        "/": {"server-cpu-us": {"value": 100.0}, "throughput-rps": {"value": 100.0}}
    }


def test_gitlab_reads_it_as_a_summary_of_k6() -> None:
    metrics = json.loads(gitlab_load_performance(PASS))["metrics"]
    assert metrics["checks"] == {"passes": 2, "fails": 0, "value": 1.0}
    assert metrics["http_reqs"]["rate"] == 100.0


def test_json_can_be_read_again() -> None:
    assert GateJudgement.model_validate_json(as_json(FAIL)) == FAIL


@given(st.text(max_size=40), st.sampled_from(list(GateAnswer)))
def test_no_name_breaks_a_format(name: str, answer: GateAnswer) -> None:
    invalidated = claim("worse", endpoint=name)
    found = GateJudgement(
        answer=answer, headline=name, baseline=name, head=name, claims=[invalidated], notes=[name]
    )
    Xml.fromstring(junit(found))  # noqa: S314 (our own)
    assert all(line.startswith("::") for line in annotations(found).split("\n") if line)
    rows = [line for line in gate_markdown(found).split("\n") if line.startswith("| ")]
    assert len(rows) >= 1
    json.loads(bencher(found))
