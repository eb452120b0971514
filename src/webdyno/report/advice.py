"""What to do after an answer, and where there is none yet, or none that counts."""

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from webdyno.comparison import question_of
from webdyno.comparison.comparison import asked_about
from webdyno.comparison.sentences import MOST_MINUTES
from webdyno.core import format as text
from webdyno.core.experiment import OWN_GENERATOR, Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.registry import command
from webdyno.media.document import Facts, Headline
from webdyno.report.brief import NOISE_RULES, is_invalid
from webdyno.report.headlines import is_beyond_judging
from webdyno.report.show import RunView
from webdyno.validity import SHORT_RUN

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


def next_steps(view: RunView, run: Path) -> Facts:
    """Return the commands that are worth a thought after this answer."""
    if view.whole:
        return view.whole.next_steps(run)
    incomplete = Verdict.INCOMPLETE in {*view.counts, *(answer.tone for answer in view.answers)}
    if incomplete or any(warning.name == SHORT_RUN for warning in view.warnings):
        measure = view.head.experiment.measure
        more = ["--time", text.typed_duration(measure.budget_s)] if measure.budget_is_limit else []
        return [("Next", command("resume", run, *more))]
    asked = asked_about([comparison for table in view.deciding for comparison in table.comparisons])
    if view.several or not asked or is_invalid(view):
        return []
    if any(is_beyond_judging(comparison) for comparison in asked):
        return []
    lacking = [comparison.more_minutes for comparison in asked if comparison.more_minutes]
    if lacking and max(lacking) <= MOST_MINUTES:
        return [("Next", command("resume", run, "--time", f"{ceil(max(lacking))}m"))]
    if all(comparison.verdict is Verdict.INCONCLUSIVE for comparison in asked):
        return []
    return list(_explained(view.head.experiment, run))


def _explained(experiment: Experiment, run: Path) -> Iterator[tuple[str, str]]:
    """Yield the command that finds why, as far as it takes a run's load."""
    if not question_of(experiment).loading.has_windows or experiment.generator != OWN_GENERATOR:
        return
    loops = {experiment.load_of(name).loop for name in experiment.variants}
    if "open" in loops:
        yield "Next", f"{command('explain', run, '--profile')}     what their CPU time goes into"
    else:
        yield "Next", f"{command('explain', run)}     what limits each of them"
