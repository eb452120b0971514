"""Whether every server lived through the run."""

from collections.abc import Sequence

from webdyno.judge.evidence import Evidence
from webdyno.judge.words import plural
from webdyno.model.judgement import Finding


def findings(evidence: Evidence, arms: Sequence[str]) -> list[Finding]:
    """Give a finding for each arm with incidents; the first incident is told."""
    found = []
    for arm in arms:
        mine = [incident for incident in evidence.incidents if incident.arm == arm]
        if mine:
            first = mine[0]
            said = f"Its log ends: {' | '.join(first.log_tail[-3:])}. " * bool(first.log_tail)
            more = f" (and {plural(len(mine) - 1, 'more incident')})" if len(mine) > 1 else ""
            found.append(
                Finding(
                    rule="incident",
                    severity="invalid",
                    arm=arm,
                    what=f"arm {arm}, block {first.block}: {first.what}{more}",
                    remedy=f"{said}The whole log is in the run's folder; try the server by hand "
                    "with `webdyno up`.",
                )
            )
    return found
