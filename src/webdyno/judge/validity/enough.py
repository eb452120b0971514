"""Whether enough was measured for what is shown."""

from collections.abc import Sequence
from math import ceil, log

from webdyno.judge.evidence import Evidence
from webdyno.judge.words import number, plural
from webdyno.model.experiment import Measure
from webdyno.model.judgement import Finding

CONFIDENCE = 0.95
PERCENTILES = {"response_p50_us": 0.5, "response_p99_us": 0.99}


def samples_for(quantile: float) -> int:
    """Give how many times are needed so that the largest lies above the quantile, 95 % sure.

    The binomial bound: quantile^n <= 5 %. 299 for the 99th percentile.
    """
    return ceil(log(1 - CONFIDENCE) / log(quantile))


def few_samples(evidence: Evidence, arms: Sequence[str]) -> list[Finding]:
    """Find arms whose percentiles stand on too few requests in some block."""
    if not any(slot.load.response_time_us.histogram for slot in evidence.slots):
        return []  # the load generator gave no distribution of times
    return [
        finding
        for arm in arms
        if evidence.blocks and (finding := _few_samples_of(arm, evidence)) is not None
    ]


def _few_samples_of(arm: str, evidence: Evidence) -> Finding | None:
    fewest = min(
        sum(slot.load.requests.completed for slot in block.of(arm)) for block in evidence.blocks
    )
    short = {m: quantile for m, quantile in PERCENTILES.items() if fewest < samples_for(quantile)}
    if not short:
        return None
    highest = max(short.values())
    return Finding(
        rule="few-samples",
        severity="invalid",
        arm=arm,
        what=f"arm {arm}: a block has only {plural(fewest, 'answer')}, but the "
        f"{highest * 100:.0f}th percentile needs {number(samples_for(highest))}",
        remedy="Make slots longer (--set measure.slot_s=5) or more "
        "(--set measure.slots_per_arm=8).",
        metrics=list(short),
    )


def few_blocks(evidence: Evidence, measure: Measure) -> list[Finding]:
    """Note a run that ended before a verdict was possible."""
    finished = len(evidence.blocks)
    if finished >= measure.min_blocks:
        return []
    return [
        Finding(
            rule="few-blocks",
            severity="note",
            arm=None,
            what=f"only {plural(finished, 'finished block')}; a verdict needs at least "
            f"{measure.min_blocks}",
            remedy="Go on with `webdyno resume`, or run again with a longer --budget.",
        )
    ]
