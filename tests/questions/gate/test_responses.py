"""What a gate says of what revisions answer: other responses, endpoints of one of them only."""

from hashlib import sha256

import pytest

from builders import SimulatedRun, SimulatedVariant, response
from questions.gate.test_decide import gate_run, judged_whole
from webdyno.comparison import question_of
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, GateAnswer
from webdyno.core.records import PreflightRecord, Response
from webdyno.questions.gate.notes import only_in, response_notes

BEFORE = b'{"items": [{"name": "a"}]}'
AFTER = b'{"items": [{"name": "a", "price": 1, "stock": 2}]}'


def answered(body: bytes = BEFORE, status: int = 200, **more: object) -> Response:
    return response(SimulatedVariant()).replace(
        path="/search",
        expected_sha256=None,
        expected_bytes=None,
        status=status,
        body_bytes=len(body),
        body_sha256=sha256(body).hexdigest(),
        **more,
    )


def checked(
    head: Response, *, baseline: Response | None = None, again: Response | None = None
) -> PreflightRecord:
    before = baseline or answered()
    both = {BASELINE: [before], BASELINE_AGAIN: [again or before]}
    return PreflightRecord(round=0, responses={**both, HEAD: [head]})


def test_other_responses_are_reported_with_their_sizes_and_fields() -> None:
    more = ["items.*.price", "items.*.stock"]
    (note,) = response_notes([checked(answered(AFTER, fields_more=more))], "/search")
    assert note == (
        "/search: responses differ: 26 → 50 bytes, 2 fields more (items.*.price, items.*.stock); "
        "head may do other work"
    )


def test_responses_of_one_length_can_differ() -> None:
    (note,) = response_notes([checked(answered(BEFORE.swapcase()))], "/")
    assert note.startswith("/: responses to /search differ: both 26 bytes;")


def test_pages_that_always_differ_are_not_reported() -> None:
    assert response_notes([checked(answered(AFTER), again=answered(b"other"))], "/search") == []
    same = [checked(answered(AFTER)), checked(answered(AFTER), baseline=answered(b"later"))]
    assert response_notes(same, "/search") == []
    assert response_notes([checked(answered())], "/search") == []


@pytest.mark.parametrize(
    ("baseline", "head", "said"),
    [
        (404, 200, "new in head, and not judged: the baseline answers 404"),
        (200, 404, "gone from head, and not judged: it answers 404"),
        (405, 200, "new in head, and not judged: the baseline answers 405"),
    ],
)
def test_what_only_one_revision_has_is_listed(baseline: int, head: int, said: str) -> None:
    record = checked(answered(status=head), baseline=answered(status=baseline))
    assert response_notes([record], "/search") == [f"/search: {said}"]


@pytest.mark.parametrize(("baseline", "head"), [(404, 404), (500, 200), (200, 500), (200, 200)])
def test_what_is_wrong_is_no_new_endpoint(baseline: int, head: int) -> None:
    record = checked(answered(status=head), baseline=answered(status=baseline))
    assert only_in([record]) is None


def test_what_was_meant_to_be_absent_is_no_new_endpoint() -> None:
    record = checked(answered(), baseline=answered(status=404, expected_status=404))
    assert only_in([record]) is None


def test_an_endpoint_that_only_one_has_is_not_judged() -> None:
    run = gate_run(SimulatedVariant(server_cpu_us=40.0))
    record = checked(answered(), baseline=answered(status=404))
    found = judged_whole(SimulatedRun(run.head, [record]).whole)
    assert found.answer is GateAnswer.INCONCLUSIVE
    assert found.headline == "no endpoint is in both revisions"
    assert found.claims == []
    assert found.notes == ["/hello.txt: new in head, and not judged: the baseline answers 404"]


def test_what_is_other_is_reported_before_anything_is_measured() -> None:
    run = gate_run(SimulatedVariant())
    question = question_of(run.head.experiment)
    assert question.reported_by(run.data, checked(answered(AFTER)))
    assert question.reported_by(run.data, checked(answered())) == []
