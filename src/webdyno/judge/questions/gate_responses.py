"""What a gate's revisions answer: endpoints that only one of them has, and other responses.

Most changes of an application change what it answers. Such endpoints are measured all the same, and
the reader is told: other work may well take other time.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from webdyno.model.format import count, listed_to, number
from webdyno.model.gate import BASELINE, BASELINE_AGAIN, HEAD
from webdyno.model.records import PreflightRecord, Response

ABSENT = {404, 405, 410, 501}
"""Statuses by which a server says that it has no such thing."""
MOST_NAMED = 4

OnlyIn = Literal["baseline", "head"]


def only_in(preflights: Sequence[PreflightRecord]) -> OnlyIn | None:
    """Say which revision alone has what an endpoint asks for; None where that can't be said.

    Whatever is asked there first has to be absent from the other one, and to be right in this one.
    """
    for record in preflights[:1]:
        baseline, head = record.responses.get(BASELINE, []), record.responses.get(HEAD, [])
        if baseline and head and len(baseline) == len(head):
            if all(map(_is_absent, baseline)) and all(map(_is_right, head)):
                return "head"
            if all(map(_is_absent, head)) and all(map(_is_right, baseline)):
                return "baseline"
    return None


def _is_absent(response: Response) -> bool:
    return response.status in ABSENT and not response.has_right_status


def _is_right(response: Response) -> bool:
    return response.has_right_status and response.error is None and response.lacks is None


def absent_words(only: OnlyIn, preflights: Sequence[PreflightRecord]) -> str:
    """Say why an endpoint isn't judged that only one revision has."""
    other = HEAD if only == "baseline" else BASELINE
    responses = [response for record in preflights for response in record.responses.get(other, [])]
    status = next((response.status for response in responses if _is_absent(response)), None)
    if only == "head":
        return f"new in head, and not judged: the baseline answers {status}"
    return f"gone from head, and not judged: it answers {status}"


def other_responses(preflights: Sequence[PreflightRecord], endpoint: str) -> Iterator[str]:
    """Say in what head's responses differ from the baseline's.

    Not of pages that differ from one response of the baseline to the next.
    """
    whole = [record for record in preflights if record.responses.keys() >= {BASELINE, HEAD}]
    if not whole:
        return
    first = whole[0].responses
    for index, (before, after) in enumerate(zip(first[BASELINE], first[HEAD], strict=False)):
        bodies = {
            response.body_sha256
            for record in whole
            for name in (BASELINE, BASELINE_AGAIN)
            for response in record.responses.get(name, [])[index : index + 1]
        }
        is_other = len(bodies) == 1 and after.body_sha256 not in bodies
        if is_other and _is_right(before) and _is_right(after):
            place = "" if before.path == endpoint else f" to {before.path}"
            yield f"responses{place} differ: {_differs(before, after)}; head may do other work"


def _differs(before: Response, after: Response) -> str:
    sizes = f"{number(before.body_bytes)} → {count(after.body_bytes, 'byte')}"
    if before.body_bytes == after.body_bytes:
        sizes = f"both {count(after.body_bytes, 'byte')}"
    changes = (("more", after.fields_more), ("less", after.fields_less))
    fields = [
        f"{count(len(names), 'field')} {word} ({listed_to(MOST_NAMED, names)})"
        for word, names in changes
        if names
    ]
    return ", ".join([sizes, *fields])


def response_notes(preflights: Sequence[PreflightRecord], endpoint: str) -> list[str]:
    """Say what a reader should know of the responses at an endpoint."""
    if only := only_in(preflights):
        return [f"{endpoint}: {absent_words(only, preflights)}"]
    return [f"{endpoint}: {sentence}" for sentence in other_responses(preflights, endpoint)]
