"""The time within which a clear difference is to be told: what `measure.answer_within_s` comes to.

It moves when a run ends and how long short slots are, and nothing else: no interval and no verdict
looks at it. `docs/method.md` says what it costs.
"""

from webdyno.model.measure import Measure

OWN_S = 1.3
"""Of that time, what isn't measuring: to start, to judge, to print. 1.2 s were seen (nginx against
Apache on two CPUs), and 0.1 s are for luck."""
ARMS = 2
"""The time is that of so many arms; each further one gets as much as one of these."""


def seconds_for_an_arm(measure: Measure) -> float | None:
    """Give how long an arm's pilot and slots may take where a difference is clear.

    None for as long as they take.
    """
    if not measure.answer_within_s:
        return None
    return (measure.answer_within_s - OWN_S) / ARMS
