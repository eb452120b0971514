"""Looks at the variants before anything is measured: what can't be compared is known then.

`look_first` asks what a pre-flight check asks, before the pilots of each point. `unlike_requests`
asks for everything that a load from a log asks for: of thousands of paths, of which a pre-flight
check looks at some, one that is missing here invalidates a whole run. `login_takes_s` asks how dear
logins are, before it is decided how many users there are.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from webdyno.comparison import question_of
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.records import PreflightRecord, Response
from webdyno.core.sweep import plan_points
from webdyno.core.tables import as_table
from webdyno.host.users import caller
from webdyno.load.interface import Users
from webdyno.measure.backend import Questions
from webdyno.measure.differences import with_differences
from webdyno.measure.local_backend import Agent, OpenTestbeds
from webdyno.measure.pilot import is_before_pilots
from webdyno.measure.planned import MOST_CERTIFIED, PlannedVariant, plan_variants
from webdyno.measure.point import RunningPoint
from webdyno.measure.round import give_up, run_preflight
from webdyno.measure.variant import RunningRound, in_state
from webdyno.servers.service import StackDied
from webdyno.validity.preflight import response_differences

logger = logging.getLogger(__name__)

UNLIKE = "for what isn't answered here as in the log"


def is_before_look(point: RunningPoint) -> bool:
    """Whether variants are to be looked at first: before pilots, and where sites have rules."""
    has_rules = any(variant.site.rules for variant in point.variants)
    return is_before_pilots(point) or (has_rules and not point.finished_rounds)


def look_first(point: RunningPoint) -> None:
    """Start all variants once and ask them, before the pilots: what can't be compared shows then.

    Nothing is put on record but what ends the point, or leaves variants out.
    """
    variants = point.racing()
    logger.debug("looks at all variants of point %d before the pilots", point.number)
    with RunningRound(point, 0) as running:
        for variant in variants:
            try:
                running.start(variant)
            except StackDied as death:
                if not point.goes_on_after(death.what):
                    raise
        preflight = run_preflight(
            [variant for variant in variants if variant.name in running.up],
            running,
            by_rules=True,
        )
    sentences = question_of(point.experiment).reported_by(point.data, preflight)
    if differences := response_differences(preflight, point.experiment):
        point.keep(preflight)
        give_up(point, 0, differences)
        if point.data.point.levels and point.has_stopped and not sentences:  # others are measured
            sentences = [f"{point.data.point.label}: {differences[0].what}"]
    for said in sentences:
        point.progress.notice(said)


class Unlike(NamedTuple):
    """A request of the load that can't be compared."""

    number: int
    """In the experiment's requests."""
    why: str
    share: float
    """Of the load's requests."""


def unlike_requests(
    experiment: Experiment,
    catalogue: Catalogue,
    vouched: frozenset[str] = frozenset(),
    out: Path | None = None,
) -> list[Unlike]:
    """Start all variants once, ask each for everything, and return what the check would refuse.

    `vouched` are addresses on other machines that may be asked, `out` is the run's folder where it
    was named. Raise UserError, OperationError.
    """
    there = plan_points(experiment)[0].experiment
    variants = plan_variants(there, catalogue)
    with _started(there, variants, variants, vouched, out) as (agent, urls):
        shares = variants[0].shares
        return [
            Unlike(number, why, shares[number])
            for number, why in _differences(agent, variants, urls, there)
        ]


@contextmanager
def _started(
    experiment: Experiment,
    variants: Sequence[PlannedVariant],
    some: Sequence[PlannedVariant],
    vouched: frozenset[str],
    out: Path | None,
) -> Iterator[tuple[Agent, dict[str, str]]]:
    """Start some of the variants, and yield who asks them, with their URLs by name."""
    with ExitStack() as exits:
        folder = Path(exits.enter_context(TemporaryDirectory(prefix="webdyno-look-")))
        user = caller(out if out and out.is_dir() else folder)
        exits.enter_context(in_state(experiment.state, folder / "state.log", user))
        agent = Agent(variants, OpenTestbeds(exits, vouched=vouched).of_variants(experiment))
        exits.callback(agent.end)
        urls = {}
        for number, variant in enumerate(some):
            kept = folder / str(number)
            kept.mkdir()
            urls[variant.name] = agent.start(variant.name, kept).url
        yield agent, urls


def login_takes_s(
    experiment: Experiment,
    catalogue: Catalogue,
    vouched: frozenset[str] = frozenset(),
    out: Path | None = None,
) -> float:
    """Return how long the baseline takes to let a user in; 0 where it doesn't."""
    there = plan_points(experiment)[0].experiment
    variants = plan_variants(there, catalogue)
    variant = variants[0]
    with _started(there, variants, [variant], vouched, out) as (agent, urls):

        def took_s(users: Users | None) -> float:
            asked = Questions(variant.asked[:1], variant.load, (), users, bool(vouched))
            began = time.monotonic()
            responses = agent.ask(variant.name, urls[variant.name], asked)
            return inf if any(its.is_login for its in responses) else time.monotonic() - began

        first, second = took_s(variant.users), took_s(variant.users)
        takes_s = min(first, second) - took_s(None)
        return takes_s if takes_s < inf else 0.0


def _differences(
    agent: Agent, variants: Sequence[PlannedVariant], urls: dict[str, str], experiment: Experiment
) -> Iterator[tuple[int, str]]:
    """Ask for as much at a time as a pre-flight check does: no more bodies are held."""
    for begin in range(0, len(variants[0].asked), MOST_CERTIFIED):
        some = slice(begin, begin + MOST_CERTIFIED)
        responses = {
            variant.name: agent.ask(
                variant.name,
                urls[variant.name],
                Questions(variant.asked[some], variant.load, experiment.ignore),
            )
            for variant in variants
        }
        for number, of_one in enumerate(zip(*responses.values(), strict=True)):
            by_variant: dict[str, list[Response]] = {
                name: [response] for name, response in zip(responses, of_one, strict=True)
            }
            preflight = PreflightRecord(
                round=0, responses=with_differences(by_variant), facts={}, ran_before=[]
            )
            if differences := response_differences(preflight, experiment):
                yield begin + number, differences[0].what


def without(experiment: Experiment, unlike: Sequence[Unlike]) -> Experiment:
    """Leave requests out, with their weights, and say so in what is kept of the log.

    The others keep their shares among each other: Zipf's law becomes weights.
    """
    excluded = {request.number for request in unlike}
    load, requests = experiment.load, experiment.requests
    if load.zipf is not None:
        shares = load.shares(len(requests))
        requests = [
            request.replace(weight=100 * share)
            for request, share in zip(requests, shares, strict=True)
        ]
    many = round(
        sum(request.share for request in unlike) * _whole(experiment.workload.get("requests"))
    )
    excluded_counts = {**as_table(experiment.workload.get("excluded")), UNLIKE: many}
    return experiment.replace(
        requests=[request for number, request in enumerate(requests) if number not in excluded],
        load=load.replace(zipf=None, replay=None, replay_file=None),
        workload={**experiment.workload, "excluded": excluded_counts},
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
