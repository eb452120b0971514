"""What tuning did and found: its time, its best so far, what each setting was worth."""

from collections.abc import Iterator, Sequence
from math import log

import tomli_w

from webdyno.comparison.sentences import with_verdict
from webdyno.core import format as text
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.setting import TunedVariant, TuningStep
from webdyno.media import document as doc
from webdyno.report.show import PointView, RunView, Show

MOST_SHARES = 6
UNCONFIRMED = (
    "Unconfirmed: no final comparison was run yet. This is what the search saw, and the best of "
    "many noisy values looks better than it is."
)
MOST_STEPS = 12
"""Batches that are shown of those in which a better setting was found."""
LONGEST_BAR = 30
JUST_TUNED = 2
"""Variants of which the verdict says what tuning was worth: a default and what it became."""


class TuningShow(Show):
    """What tuning did, where variants were tuned."""

    def pairs(self, experiment: Experiment) -> Sequence[tuple[str, str]] | None:
        """Return each tuned variant with what it was before."""
        if not experiment.tuning:
            return None
        return [
            (tuned.variant, tuned.default_variant)
            for tuned in experiment.tuning
            if tuned.variant in experiment.variants
        ]

    def about_run(self, view: RunView, *, to_paste: bool) -> Iterator[doc.Section]:
        """Yield what tuning was worth, and what was done for it."""
        tuning = view.head.experiment.tuning
        if tuning and (view.several or len(view.head.experiment.variants) > JUST_TUNED):
            gains = (line for point in view.points for line in tuning_gains(point))
            yield from doc.said_section("What tuning was worth", gains)
        for tuned in tuning:
            code = [doc.Code(settings_toml(tuned))] if to_paste and tuned.settings else []
            yield doc.Section(
                f"How {tuned.name} was tuned", [doc.FactList(tuned_facts(tuned)), *code]
            )

    def figures(self, point: PointView) -> Iterator[doc.Figure]:
        yield from filter(None, [tuning_figure(point)])


def tuning_gains(point: PointView) -> Iterator[str]:
    """Yield what tuning was worth for each variant, by the rounds that came after it."""
    judgement, metric = point.judgement, point.data.measure.decide_on
    compared = judgement.ranking.pairs if judgement.ranking else judgement.comparisons
    known = {(each.a, each.b): each for each in reversed(compared) if each.metric == metric}
    for tuned in point.data.experiment.tuning:
        if comparison := known.get((tuned.variant, tuned.default_variant)):
            yield with_verdict(comparison)


def tuned_facts(tuned: TunedVariant) -> doc.Facts:
    """Return what was done for one variant."""
    rounds = f"{text.count(tuned.rounds, 'round')}, {text.count(tuned.measurements, 'measurement')}"
    tried = f"{text.count(tuned.tried, 'combination')} tried in {rounds}"
    settings = []
    for name, value in tuned.settings.items():
        written = f'"{value}"' if isinstance(value, str) else text.setting_value(value)
        settings.append(f"{name} = {written}")
    facts = [
        ("search", f"{text.duration(round(tuned.used_s))}, {tried}"),
        ("searched", ", ".join(tuned.searched)),
        ("found", ", ".join(settings) or "nothing better than the default"),
    ]
    shares = []
    for share in tuned.shares[:MOST_SHARES]:
        ends = f"{text.percent(share.low)} to {text.percent(share.high)}"
        shares.append(f"{share.setting} {text.percent(share.share)} ({ends})")
    if shares:
        facts.append(("what mattered", ", ".join(shares)))
    return facts


def settings_toml(tuned: TunedVariant) -> str:
    """Return what was found as lines for an experiment's file."""
    settings = {
        name: float(f"{value:g}") if isinstance(value, float) else value
        for name, value in tuned.settings.items()
    }
    return tomli_w.dumps({"variants": {tuned.name: {"settings": settings}}}).rstrip()


def search_document(tuning: Sequence[TunedVariant]) -> doc.Document:
    """Return what a search that fresh rounds haven't judged yet did, and what came of it."""
    highest = max((step.gain for tuned in tuning for step in tuned.steps), default=1.0)
    blocks: list[doc.Block] = [doc.Paragraph(UNCONFIRMED, tone=Verdict.INCONCLUSIVE)]
    for tuned in tuning:
        about: list[doc.Block] = [doc.FactList(tuned_facts(tuned))]
        before, steps = 1.0, []
        for step in tuned.steps:
            if step.gain != before:
                steps.append(step)
            before = step.gain
        if steps:
            about.append(doc.Heading("Best so far, as a multiple of the default"))
            rows = [_step(step, highest) for step in steps[-MOST_STEPS:]]
            columns = [doc.Column("", "value"), doc.Column("", "ratio"), doc.Column("")]
            about.append(doc.Table(columns, [doc.RowGroup(rows)]))
        if tuned.settings:
            about.append(doc.Heading("Unconfirmed settings, to paste"))
            about.append(doc.Code(settings_toml(tuned)))
        blocks.append(doc.Section(f"How {tuned.name} was tuned so far", about))
    return doc.Document("", "", blocks)


def _step(step: TuningStep, highest: float) -> tuple[str, str, str]:
    share = log(step.gain) / log(highest) if step.gain > 1 else 0.0
    return (
        f"after {text.duration(round(step.used_s))}",
        f"{text.number(step.gain, 2)}{text.TIMES}",
        "█" * round(LONGEST_BAR * share),
    )


def tuning_figure(point: PointView) -> doc.Figure | None:
    """The best so far, as the search saw it, against the time used."""
    import altair as alt

    from webdyno.media.drawing import GROUPED, TOOLTIP, panel, values, variant_encodings

    tuning = point.data.experiment.tuning
    rows = [
        {
            "variant": tuned.variant,
            "minutes": float(f"{step.used_s / 60:.4g}"),
            "gain": float(f"{step.gain:.4g}"),
            "told": f"{tuned.variant}: {text.number(step.gain, 2)}{text.TIMES} the default after "
            f"{text.duration(round(step.used_s))}",
        }
        for tuned in tuning
        for step in tuned.steps
    ]
    if not rows:
        return None
    color, shape, dash = variant_encodings(point.variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("minutes:Q", title="Measuring time used, minutes").axis(
            labelExpr=GROUPED, grid=False
        ),
        y=alt.Y("gain:Q", title="Best so far, as a multiple of the default")
        .scale(zero=False, nice=True)
        .axis(labelExpr=GROUPED),
        color=color,
    )
    chart = alt.layer(
        base.mark_line(interpolate="step-after", strokeWidth=2, aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=46, opacity=1).encode(shape=shape, description=TOOLTIP),
    )
    return doc.Figure(
        name="tuning",
        title="The search, batch by batch",
        caption="The best settings known by then, as the search saw them.",
        note="The best of many noisy values looks better than it is: the result is what the fresh "
        "rounds say.",
        panels=(panel("tuning", f"{'; '.join(str(row['told']) for row in rows)}.", chart),),
        by_variant=True,
    )
