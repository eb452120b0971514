"""Whether the run was one piece, every server lived through it, and enough was measured."""

from collections.abc import Iterator, Sequence

from webdyno.judge.differences import surroundings
from webdyno.judge.order_statistics import exceeded_by_largest
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.rule import TOO_MANY_LEFT_OUT, RunRule
from webdyno.model.format import count, number
from webdyno.model.judgement import Finding
from webdyno.model.metrics import METRICS
from webdyno.model.records import IncidentRecord

SHOWN_DIFFERENCES = 3


def _sessions(data: PointData) -> Iterator[Finding]:
    """Find what changed between the starts of measuring: figures across it can't be compared."""
    told = {
        difference.what: f"{difference.what} was {difference.before}, then {difference.after}"
        for session in data.sessions
        for difference in surroundings(data.head, session)
    }
    if told:
        more = len(told) - SHOWN_DIFFERENCES
        shown = "; ".join(list(told.values())[:SHOWN_DIFFERENCES])
        yield Finding(
            rule=SESSIONS.name,
            severity="invalid",
            arm=None,
            what="the run was resumed under other conditions: "
            f"{shown}{f'; and {number(more)} more' if more > 0 else ''}",
            remedy="Measure anew with the same experiment in a new folder; `webdyno compare` can "
            "then set the two beside each other.",
        )


SESSIONS = RunRule("mixed-sessions", _sessions)


def _incidents(data: PointData) -> Iterator[Finding]:
    """Give a finding for the load generator and each arm with incidents; the first is told.

    An incident spoils its block. Where that was measured again from its start, the run is whole:
    unless it happens so often that what is left was chosen by luck.
    """
    for arm in (None, *data.experiment.arms):
        finished = {block.record.block for block in data.blocks if arm is None or block.of(arm)}
        mine = [incident for incident in data.incidents if incident.arm == arm]
        if not mine:
            continue
        lost = [incident for incident in mine if incident.block not in finished]
        too_many = len(mine) > max(1.0, TOO_MANY_LEFT_OUT * len(finished))
        first = lost[0] if lost else mine[0]
        more = f" (and {count(len(mine) - 1, 'more incident')})" if len(mine) > 1 else ""
        nobody = "between hosts" if first.of_hosts else "the load generator"
        whose = nobody if arm is None else f"arm {arm}"
        again = "" if lost else "; measured again since, from the block's start"
        yield Finding(
            rule=INCIDENT.name,
            severity="invalid" if arm is not None and (lost or too_many) else "note",
            arm=arm,
            what=f"{whose}, block {first.block}: {first.what}{more}{again}",
            remedy=_remedy(first, resume=bool(lost)),
        )


def _remedy(incident: IncidentRecord, *, resume: bool) -> str:
    log = f"Its log ends: {' | '.join(incident.log_tail[-3:])}. " * bool(incident.log_tail)
    go_on = "What was measured before is kept: go on with `webdyno resume`. " * resume
    if incident.of_hosts:
        return f"{log}{go_on}If it happens again, look at that host, and at the network to it."
    if incident.arm is None:
        return (
            f"{log}{go_on}If it happens again, see whether the kernel killed it (`dmesg`: out of "
            "memory?), and tell the makers of the load generator."
        )
    return (
        f"{log}The whole log is in the run's folder; try the server by hand with `webdyno up`. "
        f"{go_on}".rstrip()
    )


INCIDENT = RunRule("incident", _incidents)


def _few_samples(data: PointData) -> Iterator[Finding]:
    """Find arms whose percentiles stand on too few requests in some block."""
    if not any(slot.load.response_time_us.histogram for slot in data.slots):
        return  # the load generator gave no distribution of times
    quantiles = {rule.name: rule.quantile for rule in METRICS.values() if rule.quantile}
    for arm in data.experiment.arms:
        by_block = [slots for block in data.blocks if (slots := block.of(arm))]
        if not by_block:
            continue
        fewest = min(sum(slot.load.requests.completed for slot in slots) for slots in by_block)
        short = {name: it for name, it in quantiles.items() if fewest < exceeded_by_largest(it)}
        if short:
            highest = max(short.values())
            yield Finding(
                rule=FEW_SAMPLES.name,
                severity="invalid",
                arm=arm,
                what=f"arm {arm}: a block has only {count(fewest, 'answer')}, but the "
                f"{highest * 100:g}th percentile needs {number(exceeded_by_largest(highest))}",
                remedy="Make slots longer (--set measure.slot_s=5) or more "
                "(--set measure.slots_per_arm=8).",
                metrics=list(short),
            )


FEW_SAMPLES = RunRule("few-samples", _few_samples)


def _few_blocks(data: PointData) -> Sequence[Finding]:
    """Note a run that ended before a verdict was possible."""
    finished, fewest = len(data.blocks), data.measure.min_blocks
    if finished >= fewest:
        return []
    return [
        Finding(
            rule=FEW_BLOCKS.name,
            severity="note",
            arm=None,
            what=f"only {count(finished, 'finished block')}; a verdict needs at least {fewest}",
            remedy="Go on with `webdyno resume`, or run again with a longer --budget.",
        )
    ]


FEW_BLOCKS = RunRule("few-blocks", _few_blocks)
