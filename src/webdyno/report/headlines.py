"""What a point comes to, in large letters: the strongest thing that is certain comes first.

Then what to do after an answer, and where there is none yet, or none that counts.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from math import ceil
from pathlib import Path

from webdyno.comparison import WITHOUT_ANSWER, question_of
from webdyno.comparison.comparison import asked_about
from webdyno.comparison.judgement import surest_work
from webdyno.comparison.sentences import (
    MOST_MINUTES,
    clear_change,
    clear_title,
    further_of_verdict,
    known_and_needed,
    sentence,
    verdict_title,
    verdict_word,
)
from webdyno.core import format as text
from webdyno.core.experiment import OWN_GENERATOR, Experiment
from webdyno.core.judgement import ClearFact, Comparison, ValidityWarning, Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.registry import as_called, command
from webdyno.media.document import Facts, Headline
from webdyno.report.brief import NOISE_RULES, is_invalid
from webdyno.report.point_facts import taken_by_others
from webdyno.report.show import PointView, RunView, first
from webdyno.report.words import SIGNS, as_headline, kind_words, sure_ratio
from webdyno.validity import SHORT_RUN

MOST_HEADLINES = 2
"""Variants with a headline each; more of them share one by their verdict."""
MOST_NAMED = 4
COMPARED = {
    Verdict.FASTER: "than",
    Verdict.SLOWER: "than",
    Verdict.EQUIVALENT: "to",
    Verdict.INCONCLUSIVE: "compared with",
}


def answers(point: PointView) -> list[Headline]:
    """Return an answer for each variant that was asked about, one where they are alike."""
    own = first(show.answers(point) for show in point.shows)
    if own is not None:
        return list(own)
    judged, asked = point.judgement, point.decisive
    if not judged.comparisons:
        return [as_headline(judged.verdict, f"{judged.headline}.".replace("..", "."))]
    if all(comparison.verdict is Verdict.INVALID for comparison in asked):
        return list(dict.fromkeys(chain.from_iterable(_invalid(each, point) for each in asked)))
    if len(asked) > MOST_HEADLINES:
        return list(_by_verdict(asked))
    return list(dict.fromkeys(chain.from_iterable(_comparison(each, point) for each in asked)))


def _comparison(comparison: Comparison, point: PointView) -> Iterator[Headline]:
    clear = comparison.clear
    if clear:
        yield _of_clear(comparison, clear, "")
    title = f"{SIGNS[comparison.verdict]} {verdict_title(comparison)}"
    said, facts = sentence(comparison), list(known_and_needed(comparison))
    if is_beyond_judging(comparison):
        said = "it can't be judged on this machine"
        if taken := taken_by_others(point.data):
            said += f": {taken}"
        stop = "Stop what else runs here (`top` shows it), then run the same command again."
        facts = [("Do", stop)]
    if clear and facts:
        work = METRICS[clear.metric].short
        facts.append(("Or", f"If {work} is all that you need, the first line answers it."))
    further = tuple(further_of_verdict(comparison))
    yield Headline(comparison.verdict, title, said, further, tuple(facts))


def is_beyond_judging(comparison: Comparison) -> bool:
    """Whether interference can have done anything, so that a quieter machine is all that helps."""
    wide = comparison.worst_case
    return comparison.verdict is Verdict.INCONCLUSIVE and bool(wide and not text.is_useful(wide))


def _of_clear(comparison: Comparison, clear: ClearFact, before: str) -> Headline:
    title = f"{SIGNS[clear.verdict]} {before}{clear_title(comparison, clear)}"
    return Headline(clear.verdict, title, clear_change(comparison, clear))


def _invalid(comparison: Comparison, point: PointView) -> Iterator[Headline]:
    """Yield what is invalid and what to do, and what is still valid."""
    warnings = [
        each
        for each in point.judgement.warnings
        if each.invalidates(comparison.metric, (comparison.a, comparison.b))
    ]
    why, fix = comparison.why, ""
    if warnings:
        why, fix = _of_all(warnings), as_called(warnings[0].fix)
    valid = surest_work(comparison, point.judgement.comparisons)
    invalid = [
        METRICS[each.metric]
        for each in point.judgement.comparisons
        if each.verdict is Verdict.INVALID and (each.a, each.b) == (comparison.a, comparison.b)
    ]
    is_partial = any(
        METRICS[each.metric].in_brief and each.ratio and each.verdict is not Verdict.INVALID
        for each in point.judgement.comparisons
    )
    about = f" for {text.listed(kind_words(invalid))}" if is_partial else ""
    title = f"{SIGNS[Verdict.INVALID]} INVALID{about}"
    yield Headline(Verdict.INVALID, title, why, facts=(("Do", fix),) if fix else ())
    if valid:
        yield _of_clear(comparison, valid, "Still valid: ")


def _of_all(warnings: Sequence[ValidityWarning]) -> str:
    """Return what the first of them says, of all variants of which its rule says it."""
    worst = warnings[0]
    names = [each.variant for each in warnings if each.rule == worst.rule and each.variant]
    what = as_called(worst.what).removeprefix(f"variant {worst.variant}")
    said = f"{text.listed(dict.fromkeys(names))}{what}" if names else text.upper_first(what)
    return said if said.endswith(("!", "?")) else f"{said.rstrip('.')}."


def _by_verdict(asked: Sequence[Comparison]) -> Iterator[Headline]:
    """Yield what several variants come to, those of one verdict together."""
    alike: dict[Verdict, list[Comparison]] = {}
    for comparison in asked:
        alike.setdefault(comparison.verdict, []).append(comparison)
    for verdict, those in alike.items():
        if verdict is Verdict.INVALID:
            yield from dict.fromkeys(as_headline(verdict, each.why) for each in those)
            continue
        word = verdict_word(verdict, those[0].metric)
        title = f"{SIGNS[verdict]} {word.upper()} {COMPARED.get(verdict, 'for')} {those[0].b}"
        named = [f"{each.a} {sure_ratio(each)}" for each in those if each.ratio]
        others = [each.a for each in those if not each.ratio]
        said = text.listed_to(MOST_NAMED, named)
        without = f"{text.listed(others)}: no ratio yet" if others else ""
        needed = max(those, key=lambda each: each.more_minutes or 0.0)
        facts = [fact for fact in known_and_needed(needed) if fact[0] == "Do"]
        yield Headline(
            verdict,
            title,
            "; ".join(filter(None, [said, without])),
            facts=tuple(facts),
        )


ADVICE = {"Do", "Or"}
"""Facts of a headline that the card says in its place."""


def what_to_do(view: RunView, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what helps where the answer is open or invalid, in one paragraph for the card."""
    answers = view.headlines
    tones = {answer.tone for answer in answers}
    if not tones & WITHOUT_ANSWER:
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
