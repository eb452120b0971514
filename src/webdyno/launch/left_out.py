"""What a load from a log leaves out: what variants don't answer as in the log, after a yes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, number, percent
from webdyno.core.sweep import plan_points
from webdyno.launch.caller import Caller
from webdyno.launch.consent import agree

if TYPE_CHECKING:
    from webdyno.measure.first_look import Unlike

MOST_SHARE = 0.5
"""Of a load that is excluded: of what remains nothing would be known of the log."""
MOST_NAMED = 5


def without_unlike(
    experiment: Experiment,
    catalogue: Catalogue,
    caller: Caller,
    vouched: frozenset[str] = frozenset(),
) -> Experiment:
    """Return an experiment of a log without what variants answer otherwise, or raise UserError."""
    if not _can_be_looked_at(experiment, catalogue):
        return experiment
    from webdyno.measure.first_look import unlike_requests, without

    unlike = unlike_requests(experiment, catalogue, vouched)
    if not unlike:
        return experiment
    differences = _differences_of(experiment, unlike)
    share = sum(request.share for request in unlike)
    if share > MOST_SHARE:
        raise UserError(f"{differences}\nthat is most of the load: nothing was measured")
    if any(plan.experiment.load.arrivals == "replay" for plan in plan_points(experiment)):
        raise UserError(f"{differences}\na replay asks for all of them; omit load.arrivals=replay")
    if caller.yes:
        by_yes = caller.spelled("--yes")
        caller.notify(f"{differences}\nthey are excluded, as {by_yes} agreed to")
    agree(
        differences,
        "leave them out and measure the rest?",
        caller,
        or_add="\nadd --yes to leave them out",
        nothing="nothing was measured",
        usual=True,
    )
    return without(experiment, unlike)


def _can_be_looked_at(experiment: Experiment, catalogue: Catalogue) -> bool:
    """Whether a load is of a log, and the same for all variants, which this machine starts."""
    requests = experiment.requests
    stacks = [catalogue.stack(variant.stack) for variant in experiment.variants.values()]
    return (
        bool(experiment.workload and requests)
        and all(experiment.requests_of(name) == requests for name in experiment.variants)
        and experiment.testbed.kind != "cluster"
        and all(len(request.paths) == 1 for request in requests)
        and all(stack.protocol == "http" for stack in stacks)
    )


def _differences_of(experiment: Experiment, unlike: Sequence["Unlike"]) -> str:
    share = sum(request.share for request in unlike)
    of = number(len(experiment.requests))
    lines = [
        f"{number(len(unlike))} of {of} requests, {percent(share)} of the load, can't be compared:"
    ]
    lines += [f"    {request.why} ({percent(request.share)})" for request in unlike[:MOST_NAMED]]
    if (more := len(unlike) - MOST_NAMED) > 0:
        lines.append(f"    and {count(more, 'other')}")
    return "\n".join(lines)
