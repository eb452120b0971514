"""Whether slots of a variant become dearer with what its requests leave behind."""

from collections.abc import Iterator
from math import expm1

from webdyno.judge.point_data import PointData
from webdyno.judge.validity.over_time import pace
from webdyno.judge.validity.rule import RunRule, note
from webdyno.judge.validity.state_drift import ALPHA, StateDrift, state_drift
from webdyno.judge.validity.writes import Written, left_behind
from webdyno.model.format import confidence_level, listed, number, percent
from webdyno.model.judgement import ValidityWarning
from webdyno.model.quantities import memory_words

NAME = "state-grows"
PUT_BACK = "Begin each slot alike: --set state.reset=slot puts the database back before each."
PUT_BACK_YOURSELF = (
    "Put back what they leave: state.before_round in an experiment file runs a command of yours "
    'before each round; a database in services (services.db = "postgresql") is put back by itself.'
)
COUNTS = {
    **dict.fromkeys(
        ("cost", "database"),
        "; balanced order cancels what variants have in common of that; what they haven't "
        "counts against the verdict",
    ),
    "throughput": "; how far that can have moved its figures counts against the verdict",
    "run": ", unless the machine became slower",
}
"""By what it was seen in: what that does to the verdict."""


def _grows(data: PointData) -> Iterator[ValidityWarning]:
    for variant in data.experiment.variants:
        drift, left = state_drift(data, variant), left_behind(data, variant)
        if drift is None or left is None:
            continue
        yield note(
            NAME,
            variant,
            f"{_dearer(drift, data, variant)}: {_left(left)}{COUNTS[drift.seen_in]}",
            PUT_BACK if left.held_bytes else PUT_BACK_YOURSELF,
        )


def _dearer(drift: StateDrift, data: PointData, variant: str) -> str:
    """Say by how much a slot costs more than the one before."""
    if drift.seen_in == "run":
        share = percent(drift.change)
        return f"a request costs {share} more CPU in the last round than in the first"
    if drift.seen_in == "throughput":
        falls = percent(drift.change / (1 + drift.change))
        return f"{pace(data, variant)} falls by {falls} from the first to the last slot of a round"
    step = drift.step
    low, centre, high = (percent(expm1(end)) for end in (step.low, step.centre, step.high))
    where = ", in its database" if drift.seen_in == "database" else ""
    level = confidence_level(1 - ALPHA / len(data.experiment.variants))
    return (
        f"each slot of a round costs {centre} more CPU per request than the one before{where} "
        f"({level} CI {low}–{high})"
    )


def _left(left: Written) -> str:
    """Say what requests write, and how often it is put back."""
    if not left.held_bytes:
        names = listed(left.requests)
        return f"its requests may write ({names}), and nothing puts back what they leave"
    before, after = (memory_words(round(held)) for held in left.held_bytes)
    parts = [f"{number(left.rows)} rows in a slot"] if left.rows else []
    parts += [f"most of it in {left.table}"] if left.table else []
    if before != after:
        parts.append(f"its database grows from {before} to {after} over a round")
    return f"its requests write ({', '.join(parts)}), and the state is put back once a round"


STATE_GROWS = RunRule(NAME, _grows)
