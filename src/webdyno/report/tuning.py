"""What tuning did and found: its time, what its best looked like, what each knob was worth."""

from collections.abc import Iterator

import tomli_w

from webdyno.judge.sentences import with_verdict
from webdyno.model import format as text
from webdyno.model.judgement import Comparison
from webdyno.model.knob import KnobValue, TunedSide
from webdyno.report.conditions import Facts
from webdyno.report.view import PointView

MOST_SHARES = 6


def gains(point: PointView) -> Iterator[str]:
    """Say what tuning was worth for each side, by the blocks that came after it."""
    for side in point.data.experiment.tuning:
        found = _of_pair(point, side.arm, side.default_arm)
        if found is not None:
            yield with_verdict(found)


def _of_pair(point: PointView, arm: str, other: str) -> Comparison | None:
    judgement, metric = point.judgement, point.data.measure.decide_on
    known = judgement.league.pairs if judgement.league else judgement.comparisons
    return next((it for it in known if (it.metric, it.a, it.b) == (metric, arm, other)), None)


def side_facts(side: TunedSide) -> Facts:
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
