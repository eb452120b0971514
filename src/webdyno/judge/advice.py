"""What a run shows that settings could mend, and what another setting turned out to do."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from webdyno.judge.point_data import PointData
from webdyno.judge.validity import SLOT_RULES
from webdyno.model.advice import Advice, Gain
from webdyno.model.interval import Interval
from webdyno.model.judgement import Comparison, Verdict
from webdyno.model.knob import Sign
from webdyno.model.metrics import answer_bytes, metric_rule

LARGE_BYTES = 16_384
"""An answer that takes several packets and system calls: more than a TLS record holds."""
SURELY_MENDED = 6
"""Blocks that broke a rule, against none: by a sign test chance does that in 2 × 2⁻⁶ = 3 % of
cases."""
BUSY = 0.9
"""Share of their CPUs from which on servers have no time left."""


@dataclass(frozen=True)
class AdviceEvidence:
    """What a run shows of an arm."""

    answer_bytes: float | None
    keeps_connections: bool
    busy: float | None
    """Share of the servers' CPUs that was used while they were loaded; None: not counted."""
    broken: frozenset[str] = frozenset()
    """Rules that too many of its slots break for its figures to count."""


SIGNS: dict[Sign, Callable[[AdviceEvidence], bool]] = {
    "large answers": lambda it: it.answer_bytes is not None and it.answer_bytes >= LARGE_BYTES,
    "new connections": lambda it: not it.keeps_connections,
    "idle CPUs": lambda it: it.busy is not None and it.busy < BUSY,
}


def evidence(data: PointData, arm: str) -> AdviceEvidence:
    """Gather it from an arm's slots."""
    slots = data.of_arm(arm)
    loaded_s = sum(slot.load.all_of_it.length_s for slot in slots)
    used_s = sum(slot.servers.cpu_s + slot.servers.interrupts_s for slot in slots)
    cpus = data.experiment.arms[arm].cpus or len(data.head.machine.split.servers)
    return AdviceEvidence(
        answer_bytes=answer_bytes(slots),
        keeps_connections=data.experiment.load_of(arm).keepalive == "always",
        busy=used_s / (loaded_s * cpus) if loaded_s and used_s else None,
        broken=frozenset(rule.name for rule in SLOT_RULES if rule.too_many(slots)),
    )


def gains(comparisons: Sequence[Comparison], data: PointData) -> Iterator[Gain]:
    """Give what each piece of advice was worth, where the arm and its baseline have a ratio."""
    decide_on = data.measure.decide_on
    for it in comparisons:
        advice = data.experiment.advice.get(it.a)
        if advice is not None and it.metric == decide_on and it.sure is not None:
            mended = _mended_blocks(advice, it, data)
            yield Gain(
                arm=it.b,
                advice=advice,
                is_sure=it.verdict is Verdict.FASTER or mended >= SURELY_MENDED,
                mended_blocks=mended,
                ratio=_of_goodness(it.sure, decide_on),
            )


def _mended_blocks(advice: Advice, found: Comparison, data: PointData) -> int:
    """Count the blocks in which the arm broke a rule, provided that with the advice none did."""
    rule = next((it for it in SLOT_RULES if it.name == advice.mends), None)
    if rule is None:
        return 0
    broken, still_broken = (
        {slot.block for slot in data.of_arm(arm) if rule.broken(slot)} for arm in (found.b, found.a)
    )
    return 0 if still_broken else len(broken)


def _of_goodness(ratio: Interval, metric: str) -> Interval:
    """Turn a ratio so that more of it is better."""
    if metric_rule(metric).metric.better == "higher":
        return ratio
    return ratio.inverse()
