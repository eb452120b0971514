"""What to do where a run has no answer yet, or none that counts: for the card of its page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from webdyno.core import format as text
from webdyno.core.judgement import Verdict
from webdyno.core.registry import command
from webdyno.media.document import Headline
from webdyno.report.brief import NOISE_RULES, next_steps
from webdyno.report.show import RunView

UNANSWERED = {Verdict.INCONCLUSIVE, Verdict.INVALID, Verdict.INCOMPLETE}
ADVICE = {"Do", "Or"}
"""Facts of a headline that the card says in its place."""


def what_to_do(view: RunView, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what helps where the answer is open or invalid, in one paragraph for the card."""
    answers = [view.whole.headline] if view.whole else view.answers
    tones = {answer.tone for answer in answers}
    if not tones & UNANSWERED:
        return
    advice = [said for answer in answers for term, said in answer.facts if term in ADVICE]
    noise_matters = not advice and tones & {Verdict.INCONCLUSIVE, Verdict.INCOMPLETE}
    said = [f"{text.upper_first(line).rstrip('.')}." for line in advice]
    said += [
        warning.fix
        for warning in view.warnings
        if warning.tone is Verdict.INVALID or (noise_matters and warning.name in NOISE_RULES)
    ]
    go_on = command("resume")
    said += [f"Type `{typed}`." for _, typed in next_steps(view, folder) if typed.startswith(go_on)]
    if said:
        yield "What to do", " ".join(dict.fromkeys(said))


def without_advice(answers: Sequence[Headline]) -> list[Headline]:
    """Return headlines without what the card says to do."""
    return [
        answer._replace(facts=[fact for fact in answer.facts if fact[0] not in ADVICE])
        for answer in answers
    ]
