"""Whether all arms answered the same before the load: different pages can't be compared."""

from collections.abc import Iterator, Sequence

from webdyno.judge.evidence import Evidence
from webdyno.judge.words import number, plural
from webdyno.model.judgement import Finding
from webdyno.model.records import Answer

SIZE_TOLERANCE = 0.05
"""How much larger one arm's body may be where bodies may differ from answer to answer."""


def findings(evidence: Evidence, arms: Sequence[str]) -> list[Finding]:
    """Check every certificate; a mistake that several blocks show is told once."""
    found: dict[tuple[str, str | None, str], Finding] = {}
    for certificate in evidence.certificates:
        by_arm = {arm: certificate.answers.get(arm, []) for arm in arms}
        for finding in [*_unlike_expected(by_arm), *_unlike_each_other(by_arm)]:
            found.setdefault((finding.rule, finding.arm, finding.what), finding)
    return list(found.values())


def _unlike_expected(by_arm: dict[str, list[Answer]]) -> Iterator[Finding]:
    for arm, answers in by_arm.items():
        for answer in answers:
            if answer.status is None:
                yield _finding(
                    "no-answer",
                    arm,
                    f"arm {arm} gave no answer to {answer.path}: {answer.error or 'no reason'}",
                )
            elif answer.status != answer.expected_status:
                yield _finding(
                    "wrong-status",
                    arm,
                    f"arm {arm} answered {answer.status} to {answer.path}, "
                    f"{answer.expected_status} was expected",
                )
            elif answer.expected_sha256 not in {None, answer.body_sha256}:
                expected = (
                    ""
                    if answer.expected_bytes in {None, answer.body_bytes}
                    else f", {number(answer.expected_bytes)} were expected"
                )
                yield _finding(
                    "different-body",
                    arm,
                    f"arm {arm} answered {answer.path} with another body than the site's "
                    f"({plural(answer.body_bytes, 'byte')}{expected})",
                )


def _unlike_each_other(by_arm: dict[str, list[Answer]]) -> Iterator[Finding]:
    """Compare the arms' answers one by one, in the order in which the load asks for them."""
    baseline, *others = by_arm
    for arm in others:
        if len(by_arm[baseline]) != len(by_arm[arm]):
            yield _finding(
                "different-body",
                arm,
                f"arms {baseline} and {arm} are asked for different numbers of paths: "
                f"{len(by_arm[baseline])} and {len(by_arm[arm])}",
            )
            continue
        for ours, theirs in zip(by_arm[baseline], by_arm[arm], strict=True):
            if _as_expected(ours) and _as_expected(theirs) and not _alike(ours, theirs):
                paths = " and ".join(dict.fromkeys((ours.path, theirs.path)))
                yield _finding(
                    "different-body",
                    arm,
                    f"arms {baseline} and {arm} answered {paths} with different bodies: "
                    f"{number(ours.body_bytes)} and {plural(theirs.body_bytes, 'byte')}",
                )


def _as_expected(answer: Answer) -> bool:
    """Whether an answer is what its site promises; if not, that has been told of already."""
    return answer.status == answer.expected_status and (
        answer.expected_sha256 in {None, answer.body_sha256}
    )


def _alike(one: Answer, other: Answer) -> bool:
    """Whether two bodies are the same, or of about one size where the site lets them vary."""
    if one.expected_sha256 or other.expected_sha256:
        return one.body_sha256 == other.body_sha256
    smaller, larger = sorted((one.body_bytes, other.body_bytes))
    return larger <= smaller * (1 + SIZE_TOLERANCE)


def _finding(rule: str, arm: str, what: str) -> Finding:
    return Finding(
        rule=rule,
        severity="invalid",
        arm=arm,
        what=what,
        remedy="See what it sends with `webdyno up` and curl, and correct the site or the server's "
        "settings until all arms answer alike.",
    )
