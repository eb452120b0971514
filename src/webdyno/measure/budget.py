"""How long a run takes at least, and how many levels of its factors fit into a time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, prod
from types import MappingProxyType

from webdyno.comparison import question_of
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level
from webdyno.core.format import DASH, count, duration, typed_duration
from webdyno.core.load import Load
from webdyno.core.looks import BURSTS_TAKE
from webdyno.core.service import Service
from webdyno.core.sweep import plan_points
from webdyno.measure.pilot import needs_pilot
from webdyno.planning import settings
from webdyno.planning.fitting import LEAST_WINDOW_S, wake_ups_s

OWN_S = 2.0
"""Estimate of what webdyno itself takes to begin, and to judge at the end."""

COUNTED_RPS, COUNTED_S = 4_000.0, 1.0
"""Estimates for slots with a number of requests: throughput, and the longest time they take."""

START_S = 0.2
"""Estimate for starting a service, reading counters around its slots and stopping it. With one CPU
for the servers it is 0.15 s for nginx or Apache, 0.4 s for PHP with MariaDB."""

PROGRAM_START_S = 1.2
"""The same of a program, the catalog's or a user's own, or of a container: from 0.1 s for Go to
tens of seconds for a JVM."""

PILOT_S, LEAST_PILOT_S = 2.4, 1.3
"""Estimates of a pilot, without the start of the servers: as long as it needs, and where time is a
limit."""

USUAL = (0.1, 0.55, 0.02)
"""Ramp-up, window and warm-up that a pilot usually finds, in seconds."""
WITHOUT_PILOT = (settings.RAMP_UP_S, settings.WINDOW_S, settings.WARMUP_S)

TOLERANCE = 0.1
"""Share by which a point or a budget may be too short: estimates are no better."""

First = Mapping[str, Sequence[Level]]
"""The levels that matter most, by factor."""


def least_s(experiment: Experiment, catalogue: Catalogue, *, shortest: bool = False) -> float:
    """Return how long an experiment takes at least, at all of its points, about, in seconds.

    `shortest`: with slots and trials as short as a limit makes them.
    """
    plans = plan_points(experiment)
    return OWN_S + sum(point_s(plan.experiment, catalogue, shortest=shortest) for plan in plans)


def refuse_too_short(experiment: Experiment, catalogue: Catalogue) -> None:
    """Raise UserError where a time, which is a limit, is too short to measure anything."""
    budget_s = experiment.measure.budget_s
    plans = [plan.experiment for plan in plan_points(experiment)]
    each_s = min(
        point_s(there, catalogue, 1, shortest=True) - _starts_s(there, catalogue) for there in plans
    )
    if budget_s / len(plans) < each_s:
        takes = duration(ceil(each_s * len(plans)))
        would_do = typed_duration(least_s(experiment, catalogue, shortest=True))
        raise UserError(
            f"--time {typed_duration(budget_s)} is too short to measure anything: one round takes "
            f"{takes} at least, and a verdict about {would_do}"
        )


def point_s(
    experiment: Experiment,
    catalogue: Catalogue,
    rounds: int | None = None,
    *,
    shortest: bool = False,
) -> float:
    """Return the least time that a point takes, about, in seconds.

    With so many rounds, or the fewest for a verdict; `shortest` as in `least_s`.
    """
    question = question_of(experiment)
    rounds = rounds or question.fewest_rounds
    measure, variants = experiment.measure, len(experiment.variants)
    looks_s = variants * question.long_look_s if measure.soak_s is None else 0.0
    searches_s = question.loading.rounds_s(
        rounds, variants, measure.budget_s - looks_s, shortest=shortest
    )
    if searches_s is not None:
        return searches_s + (0.0 if shortest else looks_s)
    piloted = needs_pilot(experiment)
    usual = USUAL if piloted else WITHOUT_PILOT
    ramp_up_s, window_s, usual_warmup_s = (
        usual_s if given_s is None else given_s
        for given_s, usual_s in zip((measure.ramp_up_s, measure.slot_s, None), usual, strict=True)
    )
    if not measure.slot_s:
        window_s = LEAST_WINDOW_S if shortest else window_s
        window_s = max(window_s, settings.window_for_bursts_s(experiment))
    warmups_s = sum(
        (usual_warmup_s if given_s is None else given_s)
        * (BURSTS_TAKE if experiment.warmup_bursts_of(variant) == "on" else 1)
        for variant in experiment.variants
        for given_s in [experiment.warmup_s_of(variant)]
    )
    first = settings.FIRST_AFTER_PILOT if piloted else measure.first_slots_per_variant
    slots = measure.slots_per_variant or first
    turn_s = sum(
        _slot_s(experiment.load_of(variant), ramp_up_s + window_s)
        for variant in experiment.variants
    )
    loads_s = warmups_s + slots * turn_s + variants * wake_ups_s(warmups_s, turn_s, slots)
    starts_s = _starts_s(experiment, catalogue)
    pilots = len(question.piloted_variants) if piloted else 0
    if measure.budget_is_limit:  # the first starts don't count
        return pilots * LEAST_PILOT_S + rounds * (starts_s + loads_s)
    pilots_s = pilots * (starts_s / len(experiment.variants) + PILOT_S)
    return pilots_s + rounds * (starts_s + loads_s)


def _starts_s(experiment: Experiment, catalogue: Catalogue) -> float:
    return sum(
        PROGRAM_START_S if _is_program(role.service) else START_S
        for name, variant in experiment.variants.items()
        for site in [catalogue.site(experiment.site_of(name))]
        for role in catalogue.stack(variant.stack).with_services(site.services).services.values()
    )


def _is_program(service: Service) -> bool:
    is_own = service.own is not None and not service.runs_already
    return is_own or service.build is not None


def _starts_programs(experiment: Experiment, catalogue: Catalogue) -> bool:
    """Whether a variant is an application whose start nobody knows."""
    points = plan_points(experiment)
    stacks = (
        catalogue.stack(variant.stack)
        for plan in points
        for variant in plan.experiment.variants.values()
    )
    return any(_is_program(stack.services[stack.front].service) for stack in stacks)


def _slot_s(load: Load, usual_s: float) -> float:
    """Estimate a slot's length; those with a number of requests mostly end earlier."""
    if load.count is None:
        return usual_s + load.connection_ramp_s
    return min(load.count / COUNTED_RPS, COUNTED_S)


def estimate_text(experiment: Experiment, catalogue: Catalogue) -> str:
    """Return how long a run is expected to take, and which budget would do if its own doesn't."""
    measure, usual = experiment.measure, round(least_s(experiment, catalogue))
    budget_s, is_limit = measure.budget_s, measure.budget_is_limit
    least = round(least_s(experiment, catalogue, shortest=is_limit))
    points = len(plan_points(experiment))
    starts = _starts_programs(experiment, catalogue)
    more = f", or more where a start takes longer than {PROGRAM_START_S:g} s" if starts else ""
    what = count(question_of(experiment).fewest_rounds, "round") + " or more"
    what += f" at each of {points} points" if points > 1 else ""
    if least > budget_s * (1 + TOLERANCE) and is_limit:
        return (
            f"takes {duration(budget_s)}, too short for a verdict, which needs {what}: about "
            f"{duration(least)} (--time {typed_duration(least)}){more}"
        )
    if least > budget_s * (1 + TOLERANCE):
        return (
            f"takes about {duration(least)}: {duration(budget_s)} is too short for a verdict, "
            f"which needs {what}{more}"
        )
    expected = min(usual, round(budget_s)) if is_limit else least
    to_most = f"{DASH}{duration(budget_s)}" if expected < budget_s else ""
    takes = f"expected: {duration(expected)}{to_most} ({what})"
    patience = measure.patience
    if patience == 1 or points > 1:
        return takes
    return f"{takes}; up to {duration(patience * budget_s)} on a noisy machine"


def overrun_warning(
    experiments: Sequence[Experiment], first_round_s: float, before_s: float = 0.0
) -> str | None:
    """Warn after the first round of all points where a verdict takes longer than the budget.

    `before_s`: what pilots took, which is a part of a time that is a limit.
    """
    needed_s = first_round_s * sum(
        question_of(experiment).fewest_rounds for experiment in experiments
    )
    budget_s = sum(experiment.measure.budget_s for experiment in experiments)
    is_limit = experiments[0].measure.budget_is_limit
    needed_s += before_s if is_limit else 0.0
    if needed_s <= budget_s * (1 if is_limit else 1 + TOLERANCE):
        return None
    takes = (
        f"the first round took {duration(first_round_s)}: a verdict takes about "
        f"{duration(round(needed_s))}"
    )
    if is_limit:
        would_do = typed_duration(ceil(needed_s * (1 + TOLERANCE)))
        ends = f"it ends after {duration(budget_s)} with what is known by then"
        return f"{takes}; {ends}. --time {would_do} would do"
    return f"{takes}, longer than the {duration(budget_s)} it was given"


def reduce_levels(
    experiment: Experiment,
    catalogue: Catalogue,
    budget_s: float,
    first: First = MappingProxyType({}),
    rounds: int | None = None,
) -> Experiment:
    """Return an experiment with as many levels as `budget_s` allows, one point at least.

    Every point still gets so many rounds, or the fewest that a verdict needs.
    """
    points = int(budget_s / point_s(experiment, catalogue, rounds) + TOLERANCE)
    levels = levels_within(experiment.factors, points, first)
    return experiment.replace(factors=levels)


def need_s(
    experiment: Experiment, catalogue: Catalogue, first: First, rounds: int | None = None
) -> float:
    """Return how long so many rounds take at all the levels that matter most, about, in seconds."""
    levels = (max(1, len(first.get(factor, ()))) for factor in experiment.factors)
    return prod(levels) * point_s(experiment, catalogue, rounds)


def levels_within(
    factors: Mapping[str, Sequence[Level]],
    most_points: int,
    first: First = MappingProxyType({}),
) -> dict[str, list[Level]]:
    """Choose levels so that their combinations are at most `most_points`, but at least one.

    Levels are added one by one: those in `first`, factor by factor; then to the factor that has the
    fewest so far, of equals to the one that was written first. Levels keep their order.
    """
    kept = dict.fromkeys(factors, 1)
    worth = dict[str, list[int]]()
    for key, levels in factors.items():
        wanted = [levels.index(level) for level in first.get(key, ())]
        others = [n for n in widest_gaps_first(len(levels)) if n not in wanted]
        worth[key] = wanted + others

    def can_grow(key: str) -> bool:
        more = prod(count + (name == key) for name, count in kept.items())
        return kept[key] < len(factors[key]) and more <= most_points

    while growing := [key for key in kept if can_grow(key)]:
        lacking = [key for key in first if key in growing and kept[key] < len(first[key])]
        kept[lacking[0] if lacking else min(growing, key=kept.__getitem__)] += 1
    return {
        key: [levels[n] for n in sorted(worth[key][: kept[key]])] for key, levels in factors.items()
    }


def widest_gaps_first(count: int) -> list[int]:
    """Return the numbers below `count` by their worth: the middle, both ends, quarters.

    Each next one halves the widest gap that is left.
    """
    order = list(dict.fromkeys(((count - 1) // 2, count - 1, 0)))
    while len(order) < count:
        known = sorted(order)
        left, right = max(pairwise(known), key=lambda gap: (gap[1] - gap[0], -gap[0]))
        order.append((left + right) // 2)
    return order
