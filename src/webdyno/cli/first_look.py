"""Before a load from a log is measured: what isn't answered here as in the log is left out."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.prompt import Confirm

from webdyno.cli.console import plain_console, tell
from webdyno.definitions import Catalogue
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, number, percent
from webdyno.model.mistake import Mistake
from webdyno.model.point import plan_points

if TYPE_CHECKING:
    from webdyno.run.first_look import Unlike

MOST_SHARE = 0.5
"""Of a load that is left out: of what remains nothing would be known of the log."""
MOST_NAMED = 5


def without_unlike(experiment: Experiment, catalogue: Catalogue, *, yes: bool) -> Experiment:
    """Give an experiment without what its arms answer otherwise than the log, where it is of one.

    Raise Mistake where nobody agrees to that, or too little would be left.
    """
    if not _can_be_looked_at(experiment, catalogue):
        return experiment
    from webdyno.run.first_look import unlike_requests, without

    unlike = unlike_requests(experiment, catalogue)
    if not unlike:
        return experiment
    told, share = _told(experiment, unlike), sum(it.share for it in unlike)
    if share > MOST_SHARE:
        raise Mistake(f"{told}\nthat is most of the load: nothing was measured")
    if any(plan.experiment.load.arrivals == "replay" for plan in plan_points(experiment)):
        raise Mistake(f"{told}\na replay asks for all of them; leave out load.arrivals=replay")
    if yes:
        tell(f"{told}\nthey are left out, as --yes agreed to")
    elif not sys.stdin.isatty():
        raise Mistake(f"{told}\nadd --yes to leave them out; nothing was measured")
    else:
        tell(told)
        question = "leave them out and measure the rest?"
        if not Confirm.ask(question, default=True, console=plain_console(stderr=True)):
            raise Mistake("nothing was measured, since you didn't agree")
    return without(experiment, unlike)


def _can_be_looked_at(experiment: Experiment, catalogue: Catalogue) -> bool:
    """Whether a load is of a log, and the same for all arms, which this machine starts."""
    own = any(experiment.requests_of(arm) != experiment.requests for arm in experiment.arms)
    stacks = [catalogue.stack(arm.stack) for arm in experiment.arms.values()]
    return (
        bool(experiment.workload and experiment.requests)
        and not own
        and experiment.bench.kind != "cluster"
        and all(len(request.paths) == 1 for request in experiment.requests)
        and all(stack.protocol == "http" for stack in stacks)
    )


def _told(experiment: Experiment, unlike: Sequence["Unlike"]) -> str:
    share = sum(it.share for it in unlike)
    of = number(len(experiment.requests))
    lines = [
        f"{number(len(unlike))} of {of} requests, {percent(share)} of the load, can't be compared:"
    ]
    lines += [f"    {it.why} ({percent(it.share)})" for it in unlike[:MOST_NAMED]]
    if more := len(unlike) - MOST_NAMED:
        lines += [f"    and {count(more, 'other')}"] if more > 0 else []
    return "\n".join(lines)
