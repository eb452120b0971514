"""Which commit made it worse: a gate at commits halfway between a good and a bad one.

The commits are chosen as `git bisect` does (https://git-scm.com/docs/git-bisect-lk2009): one that
isn't worse than the good one clears all before it, one that is clears all after it, and one without
an answer is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import NamedTuple

from webdyno.lab.caller import Caller
from webdyno.model.errors import OperationError, UserError
from webdyno.model.format import count, percent
from webdyno.model.gate import GateAnswer, GateJudgement
from webdyno.report import document as doc
from webdyno.report.gate import HEADLINES
from webdyno.revisions.repository import Commit, Repository

RISK = 0.05
"""Of a gate: how often its answer is wrong at most."""
FLAG = "--bisect"

AskGate = Callable[[str, str], GateJudgement]
"""Asks whether a revision is worse than another, both by their names; raises OperationError where
one can't be built or started, and KeyboardInterrupt."""


class BisectionStep(NamedTuple):
    """A commit, and what its gate answered."""

    commit: Commit
    answer: GateAnswer
    why: str


@dataclass
class Bisection:
    """What was found so far."""

    good: str
    bad: Commit
    tried: list[BisectionStep] = field(default_factory=list)
    suspects: Sequence[Commit] = ()
    """The commits among which the first bad one is, the newest first; one where it was found."""

    @property
    def answer(self) -> GateAnswer:
        """`fail` where the commit was found, `pass` where nothing is worse."""
        first = self.tried[0].answer
        if first is not GateAnswer.FAIL:
            return first
        return GateAnswer.FAIL if len(self.suspects) == 1 else GateAnswer.INCONCLUSIVE

    @property
    def headline(self) -> str:
        """Say what was found."""
        if self.tried[0].answer is not GateAnswer.FAIL:
            return f"{self.bad.name} compared with {self.good}: {self.tried[0].why}"
        if len(self.suspects) == 1:
            return f"the first commit that is worse than {self.good} is {self.suspects[0].name}"
        return (
            f"the first commit that is worse than {self.good} is one of {len(self.suspects)}: "
            "those between couldn't be measured"
        )

    @property
    def small_print(self) -> str:
        """Say how sure that is: the risks of all gates add up at most."""
        risk = min(RISK * len(self.tried), 1.0)
        return (
            f"{count(len(self.tried), 'gate')}, each wrong in at most {percent(RISK)}; so this "
            f"answer is wrong in at most {percent(risk)}. Small steps add up: it is the first "
            "commit that is worse by more than the limit, compared with the good one."
        )


def bisection_document(found: Bisection) -> doc.Document:
    """Give the answer, and each commit that was measured."""
    head = doc.Headline(*HEADLINES[found.answer], found.headline)
    suspects = [
        doc.Paragraph(suspect.name) for suspect in found.suspects if len(found.suspects) > 1
    ]
    table = doc.Table(
        columns=[doc.Column("commit", "name"), doc.Column("answer", "verdict")],
        groups=[doc.RowGroup([[step.commit.name, str(step.answer)] for step in found.tried])],
        style="listed",
    )
    small = doc.Paragraph(found.small_print, look="soft")
    return doc.Document("", "", [doc.Headlines([head]), *suspects, table, small])


def bisect(between: str, repository: Repository, ask: AskGate, caller: Caller) -> Bisection:
    """Find the first commit of `GOOD..BAD` that is worse than GOOD."""
    good, bad = _ends(between)
    first_good = repository.revision(good, FLAG).commit
    newest = repository.commit(repository.revision(bad, FLAG).commit)
    cleared, left_out = [first_good], set[str]()
    between_them = repository.halfway(newest.hash, cleared)
    if not between_them:
        raise UserError(f"{FLAG} {between}: there are no commits between them")
    gates = ceil(log2(len(between_them))) + 1
    caller.tell(f"{count(len(between_them), 'commit')}: about {count(gates, 'gate')}")
    found = Bisection(good, newest)

    def answer_at(commit: Commit) -> GateAnswer:
        caller.tell(f"gate {len(found.tried) + 1}: {commit.name}")
        tried = _tried(commit, lambda: ask(first_good, commit.hash))
        found.tried.append(tried)
        caller.tell(f"{commit.name}: {tried.answer}: {tried.why}")
        return tried.answer

    if answer_at(newest) is not GateAnswer.FAIL:
        return found
    worst = newest.hash
    while True:
        inside = [commit for commit in repository.halfway(worst, cleared) if commit != worst]
        possible = [commit for commit in inside if commit not in left_out]
        if not possible:
            found.suspects = [repository.commit(commit) for commit in (worst, *inside)]
            return found
        match answer_at(repository.commit(possible[0])):
            case GateAnswer.PASS:
                cleared.append(possible[0])
            case GateAnswer.FAIL:
                worst = possible[0]
            case _:
                left_out.add(possible[0])


def _tried(commit: Commit, ask: Callable[[], GateJudgement]) -> BisectionStep:
    try:
        judged = ask()
    except OperationError as error:  # it doesn't build or start, which says nothing of the others
        return BisectionStep(commit, GateAnswer.INVALID, str(error))
    return BisectionStep(commit, judged.answer, judged.headline)


def _ends(between: str) -> tuple[str, str]:
    good, dots, bad = between.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise UserError(f"{FLAG} {between}: should look like GOOD..BAD, such as v1.2..HEAD")
    return good, bad
