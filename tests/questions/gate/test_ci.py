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
from webdyno.questions.gate.comment import gate_markdown
from webdyno.questions.gate.decide import gate_answer
from webdyno.questions.gate.words import gate_headline


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
    assert gate_markdown(PASS).splitlines()[:3] == [
        "### ✅ webdyno: no endpoint got slower",
        "",
        "2 checks within limits; closest: / CPU per request −1.8 to +2.1% (limit +5%)",
    ]
    assert gate_markdown(FAIL).startswith(
        "### ❌ webdyno: /b\\_c needs 30% more CPU per request\n\n"
        "the working tree against main (1a2b3c4)\n"
    )
    assert "| 100 µs | 130 µs | **+30%** (+28 to +32%) | +5% | ❌ worse |" in gate_markdown(FAIL)
    assert gate_markdown(OPEN).startswith("### ⚪ webdyno: can't say on this runner: ")


def test_a_gate_that_passes_is_a_line_and_the_rest_is_folded() -> None:
    before, _, folded = gate_markdown(PASS).partition("<details>")
    assert "|" not in before
    assert folded.count("✅ |") == 2


def test_the_comment_of_a_failure_shows_what_is_worse_and_folds_the_rest() -> None:
    before, _, folded = gate_markdown(FAIL.replace(repeat="webdyno gate --path=/b_c")).partition(
        "<details>"
    )
    rows = [line for line in before.splitlines() if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in rows] == ["endpoint", "---", "/b\\_c"]
    assert len({row.count("|") for row in rows}) == 1
    assert "**Repeat:** `webdyno gate --path=/b_c`" in before
    assert "**Was it meant?** Raise the limit" in before
    assert "1 check within the limit, noise" in folded
    assert "| /a |" in folded


def test_the_comment_links_the_report_of_its_job() -> None:
    assert " · [full report](https://ci/7)\n" in gate_markdown(FAIL, "api", "https://ci/7")
    assert gate_markdown(FAIL, "api").startswith("### ❌ webdyno api: ")


def test_a_large_change_has_its_limit_in_the_same_unit() -> None:
    wide = Interval(low=4.7, estimate=7.5, high=12.0)
    large = gate(claim("worse").model_copy(update={"worse": wide, "head": 750.0}))
    assert large.headline == "/ needs 7.5× the CPU per request (95% CI 4.7–12×; limit 1.05×)"
    assert "| **7.5×** (4.7–12×) | 1.05× | ❌ worse |" in gate_markdown(large)


def test_too_few_responses_are_not_evaluated() -> None:
    few = claim("not asked", "latency_p99_us").model_copy(update={"because": "few-samples"})
    assert "| – | +5% | – too few responses |" in gate_markdown(gate(claim("worse"), few))


def test_the_comment_says_how_noisy_equal_code_is() -> None:
    assert "**Noise:** two copies of main differ by up to 1.6% in" in gate_markdown(PASS)


def test_at_a_rate_all_formats_for_people_say_what_it_costs() -> None:
    at_rate = FAIL.replace(rate_rps=2_000.0)
    costs = "/a 0.100 against 0.100 and /b_c 0.130 against 0.100 cores per 1,000 requests/s"
    for medium in (gate_markdown, annotations, junit):
        assert "at 2,000 requests/s" in medium(at_rate)
        assert costs in medium(at_rate).replace("\\", "")
        assert "cores per" not in medium(FAIL)
    none = gate(claim("invalid")).replace(rate_rps=2_000.0)
    assert "cores per" not in gate_markdown(none), "what doesn't keep the rate has no cost there"


def test_annotations_are_commands_of_one_line() -> None:
    lines = annotations(FAIL).splitlines()
    assert lines[0].startswith("::error title=webdyno gate%3A fail::/b_c needs 30%25 more")
    assert lines[1].startswith("::error title=/b_c is worse::")
    assert annotations(OPEN).startswith("::warning ")
    assert annotations(PASS).startswith("::notice ")


def test_junit_is_red_for_what_is_worse_alone() -> None:
    (suite,) = Xml.fromstring(junit(FAIL))  # noqa: S314 (our own)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    red = [case.get("classname") for case in suite if case.find("failure") is not None]
    assert red == ["webdyno./b_c"]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "100 µs → 130 µs, +30% (95% CI +28 to +32%), limit +5%"
    assert sum(float(case.get("time", "")) for case in suite.iter("testcase")) == 61.0
    (suite,) = Xml.fromstring(junit(OPEN))  # noqa: S314 (our own)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_what_cannot_be_believed_has_no_figures() -> None:
    invalidated = gate(
        claim("invalid").model_copy(update={"why": "variant head: it ended:\n+ log"})
    )
    assert gate_markdown(invalidated).startswith(
        "### ⚠️ webdyno: not measured: /: variant head: it ended\n"
    )
    assert "| – | +5% | ⚠️ not valid |" in gate_markdown(invalidated)
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
