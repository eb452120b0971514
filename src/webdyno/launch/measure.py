"""An experiment is measured: agreed to, provided for, begun, measured, or gone on with."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, duration
from webdyno.core.metrics import CAPACITY
from webdyno.core.records import SlotRecord
from webdyno.core.registry import command
from webdyno.core.stack import Site, Stack
from webdyno.core.sweep import plan_points
from webdyno.launch.caller import Caller
from webdyno.launch.consent import (
    agree_to_secrets,
    provide,
    refuse_other_machines,
    vouched_targets,
    without_unlike,
)
from webdyno.launch.foreign import agree_to_use, know_run, refuse_commands
from webdyno.launch.sending import refuse_reading
from webdyno.load.interface import program
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.servers.needs import needs_of
from webdyno.servers.service_graph import Role, refuse_open_port, resolve_stack

if TYPE_CHECKING:
    from webdyno.measure.backend import Backend

Rounds = Mapping[int, int]
"""By number of a point: how many rounds it is to have in all; none at points excluded."""
COMMAND_SHOWN = 80
"""Letters of another run's command."""
READING = {"GET", "HEAD", "OPTIONS", "TRACE"}
"""Methods that RFC 9110 (9.2.1) calls safe."""


class MeasuredRun(NamedTuple):
    """What was measured, and how that ended."""

    folder: RunFolder
    end: Literal["finished", "interrupted", "died"]
    """`died`: a server did, again and again."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended it."""
        return self.end == "interrupted"


def measure_again(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    caller: Caller,
    rounds: Rounds | None = None,
) -> MeasuredRun:
    """Run an experiment from its first round on, in the folder `out` or one under runs/.

    With `rounds` until its points have so many, and without long looks.
    """
    if rounds is None and experiment.measure.budget_is_limit:
        from webdyno.measure.budget import refuse_too_short

        refuse_too_short(experiment, catalogue)
    vouched = _provide(experiment, catalogue, out or Path("the new run"), caller)
    experiment = without_unlike(experiment, catalogue, caller, vouched, out)
    experiment = _with_few_users(experiment, catalogue, caller, vouched, out)
    if said := state_that_stays(experiment, catalogue):
        caller.notify(said)
    from webdyno.measure.budget import estimate_text
    from webdyno.measure.session import begin_run

    if not caller.quiet:
        caller.notify(f"{name} {estimate_text(experiment, catalogue)}" if rounds is None else name)

    def begun(backend: "Backend", there: Experiment) -> RunFolder:
        folder = begin_run(name, there, catalogue, out, backend)
        know_run(folder.path, there, catalogue, caller)
        return folder

    return _measure_in(_backend(experiment, caller, vouched), begun, caller, rounds=rounds)


def _with_few_users(
    experiment: Experiment,
    catalogue: Catalogue,
    caller: Caller,
    vouched: frozenset[str],
    out: Path | None,
) -> Experiment:
    """Return an experiment whose users log in within some seconds, where nobody says how many."""
    load, varied = experiment.load, experiment.factors
    is_said = "connections" in load.model_fields_set or "load.connections" in varied
    is_said |= load.loop != "closed"  # whose rate takes the connections that it takes
    if is_said or not experiment.login or experiment.testbed.kind == "cluster":
        return experiment
    from webdyno.measure.first_look import login_takes_s
    from webdyno.measure.point import FEW_USERS, LONG_LOGINS_S

    takes_s = login_takes_s(experiment, catalogue, vouched, out)
    at_once = len(os.sched_getaffinity(0))
    most = max(FEW_USERS, int(LONG_LOGINS_S * at_once / max(takes_s, 1e-6)))
    if most >= load.connections:
        return experiment
    caller.notify(
        f"a user takes {duration(takes_s)} to log in: {most} users instead of {load.connections}, "
        "so that starts stay short; -c says how many"
    )
    return experiment.replace(load=load.replace(connections=most))


def measure_on(
    path: Path, caller: Caller, more_s: float | None = None, rounds: Rounds | None = None
) -> MeasuredRun:
    """Go on with an interrupted run, for `more_s`, or until its points have so many `rounds`."""
    from webdyno.measure.repeat import kept_catalogue
    from webdyno.measure.session import resume_run

    run = RunFolder.open(path)
    experiment = run.head.experiment
    vouched = _provide(experiment, kept_catalogue(path), path, caller)
    return _measure_in(
        _backend(experiment, caller, vouched),
        lambda backend, _: resume_run(run, backend),
        caller,
        more_s,
        rounds,
    )


def measure_or_go_on(
    name: str, experiment: Experiment, catalogue: Catalogue, path: Path, caller: Caller
) -> MeasuredRun:
    """Measure an experiment in a folder, or go on with what is there."""
    if (path / HEAD_FILE).exists():
        return measure_on(path, caller)
    return measure_again(name, experiment, catalogue, path, caller)


def within_budget(experiment: Experiment, catalogue: Catalogue, caller: Caller) -> Experiment:
    """Exclude levels for which there is no time, and say so."""
    from webdyno.measure.budget import reduce_levels

    budget_s = experiment.measure.budget_s
    kept = reduce_levels(experiment, catalogue, budget_s)
    all_points, points = (len(plan_points(each)) for each in (experiment, kept))
    if points < all_points:
        caller.notify(
            f"{points} of {count(all_points, 'point')} fit into {duration(budget_s)}; "
            "a longer --time measures more, --full all of them"
        )
    return kept


def measure_sweeps(run: Path, caller: Caller) -> Iterator[MeasuredRun]:
    """Measure the sweeps next to a search, if any were requested, or go on with them."""
    from webdyno.comparison import judge_sweep
    from webdyno.measure.capacity_search import capacity_sweeps

    folder = RunFolder.open(run)
    sweep_s = folder.head.experiment.sweep_s
    if sweep_s is None:
        return
    (point,) = judge_sweep(folder.data()).points
    capacities_rps = [
        variant.interval.estimate
        for variant in point.judgement.variants
        if variant.metric == CAPACITY and variant.interval
    ]
    caller.notify(f"\nsweeps around the capacities, for {duration(sweep_s)}:")
    for name, sweep in capacity_sweeps(folder.head.experiment, capacities_rps):
        if (measured := _sweep(run / name, sweep, run, caller)) is not None:
            yield measured


def _sweep(path: Path, sweep: Experiment, run: Path, caller: Caller) -> MeasuredRun | None:
    """At as many levels as fit into its time, or what is missing of it."""
    from webdyno.measure.budget import reduce_levels
    from webdyno.measure.repeat import kept_catalogue
    from webdyno.measure.session import is_finished

    if (path / HEAD_FILE).exists():
        return None if is_finished(RunFolder.open(path).data()) else measure_on(path, caller)
    catalogue = kept_catalogue(run)
    kept = reduce_levels(sweep, catalogue, sweep.measure.budget_s)
    return measure_again(path.name, kept, catalogue, path, caller)


def has_enough(folder: RunFolder) -> bool:
    """Whether an interrupted run has rounds enough for an answer."""
    from webdyno.comparison import question_of

    points = folder.data().points
    return all(question_of(data.experiment).shows_when_interrupted(data) for data in points)


def what_is_kept(folder: RunFolder) -> str:
    """Return where the slots of an unfinished run are, and what can be done."""
    if not any(isinstance(record, SlotRecord) for record in folder.records()):
        return f"nothing was measured yet, and {folder.path} can be removed"
    return (
        f"every finished slot is kept in {folder.path}\n"
        f"    {command('resume', folder.path)}   continues, with everything as it was\n"
        f"    {command('report', folder.path)}   judges what is there"
    )


def state_that_stays(experiment: Experiment, catalogue: Catalogue) -> str | None:
    """Return that what requests write is there in the next round; None if nothing is known to be.

    Containers begin again in each round, and so do databases among a program's services; `prepare`
    is taken to put things back.
    """
    writing = [request.label for request in experiment.requests if request.method not in READING]
    if not writing or experiment.state.before_round:
        return None
    lasting = [
        name
        for name, variant in experiment.variants.items()
        if _keeps_state(catalogue.stack(variant.stack))
    ]
    if not lasting:
        return None
    return (
        f"{writing[0]} may write, and nothing puts that back: later rounds find more than earlier "
        f"ones, and variants in one folder ({', '.join(lasting)}) write into the same files. "
        '[state] before_round = ["…"] or prepare in [app] resets it'
    )


def _keeps_state(stack: Stack) -> bool:
    front = stack.services[stack.front].service
    begins_again = front.initialise or any(
        service.service.data for service in stack.services.values()
    )
    return bool(front.own and front.own.container_port is None and not begins_again)


@contextmanager
def _backend(
    experiment: Experiment, caller: Caller, vouched: frozenset[str]
) -> Iterator[tuple["Backend", Experiment]]:
    """Where an experiment takes place, and the experiment with its hosts named."""
    from webdyno.measure.local_backend import LocalBackend

    if experiment.testbed.kind != "cluster":
        yield LocalBackend(vouched), experiment
        return
    from webdyno.cluster.backend import ClusterBackend
    from webdyno.launch.dispatch import cluster_hosts, fit_hosts

    with (
        cluster_hosts(caller.cluster) as hosts,
        ClusterBackend(fit_hosts(hosts, caller), yes=caller.yes) as backend,
    ):
        yield backend, backend.with_hosts(experiment)


def _provide(
    experiment: Experiment, catalogue: Catalogue, folder: Path, caller: Caller
) -> frozenset[str]:
    """Get a yes to what runs at any of the points; return the addresses that may be loaded.

    `folder` is that of the run.
    """
    there = [plan.experiment for plan in plan_points(experiment)]
    for each in there:
        refuse_reading(each, caller)
        refuse_commands(each, catalogue, caller)
        _refuse_open_ports(each, catalogue)
    agree_to_use(catalogue, caller, experiment, folder)
    stacks, sites = _named_parts(there, catalogue)
    generators = [program(name) for name in dict.fromkeys(each.generator for each in there)]
    tools = [need for its in generators if (need := its.need)]
    for each in there:  # what servers need because of settings, or of the protocol they speak
        for _, _, role in _roles(each, catalogue):
            needs = needs_of(role).values()
            tools += [need for need in needs if need.when and not need.optional]
    on_hosts = experiment.testbed.kind == "cluster"
    refuse_other_machines(stacks, caller, anywhere=on_hosts)
    vouched = vouched_targets(stacks, sites, caller)
    agree_to_secrets(stacks, there, caller)
    if not on_hosts:  # those look themselves
        provide(stacks, sites, tools, caller)
        _report_others(caller)
    for its in generators:
        for bias in its.biases:
            caller.notify(f"{its.name}: {bias}")
    return vouched


def _named_parts(
    experiments: Sequence[Experiment], catalogue: Catalogue
) -> tuple[list[Stack], list[Site]]:
    variants = [
        (variant.stack, experiment.site_of(name))
        for experiment in experiments
        for name, variant in experiment.variants.items()
    ]
    stacks = dict.fromkeys(stack for stack, _ in variants)
    sites = dict.fromkeys(site for _, site in variants)
    return [*map(catalogue.stack, stacks)], [*map(catalogue.site, sites)]


def _refuse_open_ports(experiment: Experiment, catalogue: Catalogue) -> None:
    """Before anything is asked or started; hosts of a cluster look themselves."""
    for variant, stack, role in _roles(experiment, catalogue):
        on_loopback = experiment.testbed_of(variant).kind == "this-machine"
        refuse_open_port(role, stack, is_private=not on_loopback)


def _roles(experiment: Experiment, catalogue: Catalogue) -> Iterator[tuple[str, Stack, Role]]:
    for name, variant in experiment.variants.items():
        stack, site = catalogue.stack(variant.stack), catalogue.site(experiment.site_of(name))
        settings = experiment.settings_of(name)
        for role in resolve_stack(stack, site, settings, server_cpus=1).roles:
            yield name, stack, role


def _report_others(caller: Caller) -> None:
    """Two runs on one machine measure each other."""
    from webdyno.host.workspace import others_running, sweep

    for fault in sweep():
        caller.notify(fault)
    if others := others_running():
        more = f" and {len(others) - 1} more" if others[1:] else ""
        caller.notify(
            f"another webdyno run is going on (process {others[0].pid}: "
            f"{others[0].command:.{COMMAND_SHOWN}}){more}: both results will be off; wait for its "
            "end, or press Ctrl-C"
        )


def _measure_in(
    where: AbstractContextManager[tuple["Backend", Experiment]],
    opened: Callable[["Backend", Experiment], RunFolder],
    caller: Caller,
    more_s: float | None = None,
    rounds: Rounds | None = None,
) -> MeasuredRun:
    """Measure in a run's folder that is held for writing; whatever happens, say how to go on."""
    from webdyno.measure.session import is_finished, measure_run, rounds_are_over

    is_over = is_finished if rounds is None else rounds_are_over

    with where as (backend, there), opened(backend, there) as folder:
        if more_s is None and rounds is None and is_finished(folder.data()):
            longer = command("resume", folder.path, "--time", "60s")
            caller.notify(f"this run has come to its end; to measure for longer: {longer}")
        try:
            with caller.progress(folder.head) as progress:
                measure_run(folder, progress, more_s, rounds, backend)
        except KeyboardInterrupt:
            return MeasuredRun(folder, "interrupted")
        except OperationError as error:
            raise OperationError(f"{error}\n{what_is_kept(folder)}") from error
        return MeasuredRun(folder, "finished" if is_over(folder.data()) else "died")
