"""What tuning did and found: its time, its best so far, what each knob was worth."""

from collections.abc import Iterator, Sequence
from math import log

import tomli_w

from webdyno.judge.sentences import with_verdict
from webdyno.model import format as text
from webdyno.model.judgement import Comparison, Verdict
from webdyno.model.knob import KnobValue, TunedSide, TuningStep
from webdyno.report import document as doc
from webdyno.report.view import PointView

MOST_SHARES = 6
UNCONFIRMED = (
    "Unconfirmed: no final comparison was run yet. This is what the search saw, and the best of "
    "many noisy values looks better than it is."
)
MOST_STEPS = 12
"""Rounds that are shown of those in which a better setting was found."""
LONGEST_BAR = 30


def tuning_gains(point: PointView) -> Iterator[str]:
    """Say what tuning was worth for each side, by the blocks that came after it."""
    for side in point.data.experiment.tuning:
        found = _of_pair(point, side.arm, side.default_arm)
        if found is not None:
            yield with_verdict(found)


def _of_pair(point: PointView, arm: str, other: str) -> Comparison | None:
    judgement, metric = point.judgement, point.data.measure.decide_on
    known = judgement.league.pairs if judgement.league else judgement.comparisons
    return next((it for it in known if (it.metric, it.a, it.b) == (metric, arm, other)), None)


def side_facts(side: TunedSide) -> doc.Facts:
    """Give what was done for one side."""
    blocks = f"{text.count(side.blocks, 'block')}, {text.count(side.measurements, 'measurement')}"
    tried = f"{text.count(side.tried, 'setting')} tried in {blocks}"
    facts = [
        ("search", f"{text.duration(round(side.used_s))}, {tried}"),
        ("turned", ", ".join(side.knobs)),
        ("found", _written(side.settings) or "nothing better than the default"),
    ]
    if side.shares:
        facts.append(("what mattered", ", ".join(_shares(side))))
    return facts


def _shares(side: TunedSide) -> Iterator[str]:
    for it in side.shares[:MOST_SHARES]:
        ends = f"{text.percent(it.low)} to {text.percent(it.high)}"
        yield f"{it.knob} {text.percent(it.share)} ({ends})"


def _written(settings: dict[str, KnobValue]) -> str:
    return ", ".join(f"{knob} = {_value(value)}" for knob, value in settings.items())


def settings_toml(side: TunedSide) -> str:
    """Give what was found as lines for an experiment's file."""
    knobs = {knob: _short(value) for knob, value in side.settings.items()}
    return tomli_w.dumps({"arms": {side.name: {"knobs": knobs}}}).rstrip()


def _short(value: KnobValue) -> KnobValue:
    return float(f"{value:g}") if isinstance(value, float) else value


def _value(value: KnobValue) -> str:
    return f'"{value}"' if isinstance(value, str) else text.setting_value(value)


def search_document(sides: Sequence[TunedSide]) -> doc.Document:
    """Say of a search that fresh blocks haven't judged yet what it did and what came of it."""
    highest = max((step.gain for side in sides for step in side.steps), default=1.0)
    parts = [
        doc.Section(f"How {side.name} was tuned so far", list(_so_far(side, highest)))
        for side in sides
    ]
    return doc.Document("", "", [doc.Paragraph(UNCONFIRMED, tone=Verdict.INCONCLUSIVE), *parts])


def _so_far(side: TunedSide, highest: float) -> Iterator[doc.Block]:
    yield doc.FactList(side_facts(side))
    if steps := _better(side.steps):
        yield doc.Heading("Best so far, as a multiple of the default")
        rows = [_step(step, highest) for step in steps]
        columns = [doc.Column("", "value"), doc.Column("", "ratio"), doc.Column("")]
        yield doc.Table(columns, [doc.RowGroup(rows)])
    if side.settings:
        yield doc.Heading("Unconfirmed settings, to paste")
        yield doc.Code(settings_toml(side))


def _better(steps: Sequence[TuningStep]) -> list[TuningStep]:
    """Keep the rounds after which the best so far was another than before."""
    before, kept = 1.0, []
    for step in steps:
        if step.gain != before:
            kept.append(step)
        before = step.gain
    return kept[-MOST_STEPS:]


def _step(step: TuningStep, highest: float) -> tuple[str, str, str]:
    """Set the best so far against the time used, with a bar as long as its logarithm."""
    share = log(step.gain) / log(highest) if step.gain > 1 else 0.0
    return (
        f"after {text.duration(round(step.used_s))}",
        f"{text.number(step.gain, 2)}{text.TIMES}",
        "█" * round(LONGEST_BAR * share),
    )
