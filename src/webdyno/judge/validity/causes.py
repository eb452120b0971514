"""Which findings only follow from others: the cause is shown, with its remedy, and nothing else."""

from collections.abc import Sequence

from webdyno.model.judgement import Finding

WRONG_ANSWERS = ("non-2xx", "wrong-body", "truncated", "malformed", "timeouts", "resets", "refused")
FOLLOWS_FROM = {
    "non-2xx": ("wrong-status",),
    "wrong-body": ("different-body",),
    "malformed": ("no-answer",),
    "truncated": ("no-answer",),
    "resets": ("no-answer",),
    "no-answers": ("wrong-status", "different-body", "no-answer", "incident", *WRONG_ANSWERS),
    "few-samples": ("wrong-status", "no-answer", "no-answers", *WRONG_ANSWERS),
}
"""By rule: those that explain it, if they make the same arm's figures invalid."""
SHORT_RUN = "few-blocks"


def without_consequences(findings: Sequence[Finding], decide_on: str) -> list[Finding]:
    """Leave out what has its cause among the findings.

    That a run is short isn't worth a word where it has no verdict for another reason: more of it
    would show the same.
    """
    causes = {(it.rule, it.arm) for it in findings if it.severity == "invalid"}
    spoilt = any(_spoils(it, decide_on) for it in findings)
    return [
        it
        for it in findings
        if not (it.rule == SHORT_RUN and spoilt)
        and not any((cause, it.arm) in causes for cause in FOLLOWS_FROM.get(it.rule, ()))
    ]


def _spoils(finding: Finding, metric: str) -> bool:
    return finding.severity == "invalid" and (not finding.metrics or metric in finding.metrics)
