"""What came of a gate, for Python."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from webdyno.core.gate import GateAnswer, GateClaim, GateJudgement
from webdyno.interfaces.python.result import Result, Row, Rows, ends_of


class GateRun(Result):
    """What was measured for a gate."""

    @cached_property
    def gate(self) -> "GateResult":
        """The answer, which is one for all endpoints."""
        whole: Any = self._seen.view.whole
        return GateResult(whole.gate, self)


@dataclass(frozen=True)
class GateResult:
    """Whether head is worse than the baseline by more than is tolerated."""

    judgement: GateJudgement
    """All of the answer."""
    run: Result | None
    """What was measured; None where no change was left to be measured."""

    @property
    def answer(self) -> GateAnswer:
        """`pass`, `fail`, `inconclusive`, or `invalid` where nothing can be believed."""
        return self.judgement.answer

    @property
    def passed(self) -> bool:
        """Whether head is not worse (95% confidence)."""
        return self.answer is GateAnswer.PASS

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.judgement.headline

    def claims(self) -> Rows:
        """Give a row for each endpoint and metric: how many times worse head is (`low`, `high`).

        Shares (`tolerance`, `noise`) are of 1; `baseline` and `head` are in the metric's unit.
        """
        return Rows(map(_claim_row, self.judgement.claims))

    def _repr_html_(self) -> str:
        """Show the answer in a notebook."""
        from webdyno.media.page import answer_html

        return answer_html(f"{self.answer}: {self.headline}", self.claims())


def _claim_row(claim: GateClaim) -> Row:
    return {
        "endpoint": claim.endpoint,
        "metric": claim.metric,
        "answer": claim.answer,
        "tolerance": claim.tolerance,
        **ends_of("worse", claim.worse),
        "noise": claim.noise,
        "baseline": claim.baseline,
        "head": claim.head,
        "rounds": claim.rounds,
        "why": claim.why,
    }
