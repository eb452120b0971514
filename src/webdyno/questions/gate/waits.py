"""Whether a gate's head saves CPU time by having requests wait."""

from collections.abc import Iterator

from webdyno.core.format import latency, listed
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import CPU_TIME
from webdyno.evidence.point_data import PointData
from webdyno.questions.gate.settings import GateSettings
from webdyno.statistics.verdict import RISK
from webdyno.validity import valid_for
from webdyno.validity.rule import uncomparable
from webdyno.validity.servers import LONGER, LONGER_US, WAITING, Wait, longer_waits

LONGER_RULE = "waits-longer"


def made_to_wait(data: PointData, gate: GateSettings) -> ValidityWarning | None:
    """Return a warning about a head that keeps requests waiting; it invalidates a pass on CPU time.

    CPU time that is saved while requests wait is no saving. Head keeps them waiting, at an arrival
    rate, where they wait longer than those of both copies of the baseline. All endpoints and
    percentiles share the risk that this is only bad luck.
    """
    if data.experiment.load.offered_rps is None or CPU_TIME not in gate.worse_than:
        return None
    waits = list(_waits(data, gate))
    if not waits:
        return None
    baseline, _, head = data.experiment.variants
    percentile = waits[0].percentile
    warning = uncomparable(
        LONGER_RULE,
        head,
        f"requests of {head} wait longer than those of {baseline}: "
        f"{listed(wait.words for wait in waits)} (more than {LONGER:g} times as long, and "
        f"{latency(LONGER_US)})",
        f"If that may be, give latency a limit of its own: --fail-if '{percentile} > +100%'.",
    )
    return warning.replace(metrics=[CPU_TIME])


def _waits(data: PointData, gate: GateSettings) -> Iterator[Wait]:
    """Yield those that are longer than with both copies, but for what has a limit of its own."""
    baseline, again, head = data.experiment.variants
    confidence = 1 - RISK / (gate.endpoints * len(WAITING))
    valid = valid_for(data, WAITING["p50"])
    than_again = [wait.percentile for wait in longer_waits(valid, head, again, confidence)]
    for wait in longer_waits(valid, head, baseline, confidence):
        if wait.percentile in than_again and WAITING[wait.percentile] not in gate.worse_than:
            yield wait
