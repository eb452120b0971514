"""What a tool answers: the verdict with its interval, and what it does not say.

An agent rephrases what it reads. So an answer has the verdict as one word, the sentence that may be
made of it, and the scope: "inconclusive" must not become "slightly faster".
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from webdyno.lab.result import Result
from webdyno.model.errors import UserError
from webdyno.model.gate import GateAnswer
from webdyno.model.judgement import Verdict
from webdyno.model.run import PAGE_FILE
from webdyno.run.folder import HEAD_FILE

MAY_SAY = {
    Verdict.FASTER: "A difference is shown. Quote the ratio with its interval.",
    Verdict.SLOWER: "A difference is shown. Quote the ratio with its interval.",
    Verdict.EQUIVALENT: "The two count as equal here. Don't report a difference.",
    Verdict.INCONCLUSIVE: "Nothing is shown. Don't say which is faster; more time may decide it.",
    Verdict.INVALID: "The measurement can't be trusted. Quote no figure; fix the cause first.",
    Verdict.INCOMPLETE: "Too little was measured for a verdict. Resume the run.",
    Verdict.MEASURED: "Values without a comparison. They say nothing about other systems.",
    GateAnswer.PASS: "Not worse than the limits allow (95% confidence). That is not 'faster'.",
    GateAnswer.FAIL: "Worse than a limit. Name the claims whose answer is 'worse'.",
}
"""What an answer supports. A gate's other answers read like the verdicts of that name."""


class AnswerWarning(BaseModel):
    """What is wrong with a measurement, and what to do."""

    what: str
    fix: str


class Answer(BaseModel):
    """What was found, how sure it is, and what was not tested."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    answer: str
    """The verdict: faster, slower, equivalent, inconclusive, invalid, incomplete, measured; of a
    gate pass, fail, inconclusive or invalid. Several points have an answer each, in `rows`."""
    headline: str
    """The answer in one sentence."""
    may_say: str
    """What the answer supports. Say no more than this."""
    not_tested: str = ""
    """What was measured, and what the answer says nothing about."""
    rows: list[dict[str, Any]] = Field(default_factory=list)
    """Each metric's ratio to the baseline with its interval, or a gate's claims, or values."""
    warnings: list[AnswerWarning] = Field(default_factory=list)
    text: str = ""
    """What a terminal shows of it."""
    run: str = ""
    """The run's folder; empty where nothing had to be measured."""
    report: str = ""
    """The page for people, where it was written."""


def answer_of(result: Result) -> Answer:
    """Give the answer of a run."""
    gate = result.gate
    answer = gate.answer if gate else _verdict(result)
    page = result.path / PAGE_FILE
    return Answer(
        answer=answer or "several",
        headline=gate.headline if gate else result.headline,
        may_say=_may_say(answer),
        not_tested=result.scope,
        rows=(gate.claims() if gate else result.ratios()) or result.values(),
        warnings=[AnswerWarning(what=warning.what, fix=warning.fix) for warning in result.warnings],
        text=result.text(),
        run=str(result.path),
        report=str(page) if page.is_file() else "",
    )


def answer_without_run(headline: str) -> Answer:
    """Give the answer of a gate that had nothing to measure: it passes, and says why."""
    return Answer(
        answer=GateAnswer.PASS,
        headline=headline,
        may_say="Nothing that is measured has changed, so nothing was measured.",
    )


def runs_below(folder: Path) -> list[Path]:
    """Give the runs in a folder, itself included, the first made first."""
    heads = sorted(folder.rglob(HEAD_FILE), key=lambda path: path.stat().st_mtime)
    return [head.parent for head in heads]


def _verdict(result: Result) -> Verdict | None:
    try:
        return result.verdict
    except UserError:  # several points
        return None


def _may_say(answer: Verdict | GateAnswer | None) -> str:
    if answer is None:
        return "Each point has an answer of its own: quote them with their intervals."
    return MAY_SAY.get(answer) or MAY_SAY[Verdict(str(answer))]
