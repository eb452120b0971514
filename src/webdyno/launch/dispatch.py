"""Experiments that several hosts of a cluster measure, each a run of its own.

Replicates measure the whole experiment on several hosts, spread ones each point of it on one; an
interrupted one goes on from its folder.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError

from webdyno.config import Catalogue, read_experiment
from webdyno.config.reading import TomlFile, first_fault
from webdyno.core.base import Model
from webdyno.core.errors import OperationError, UserError, lacks_package
from webdyno.core.experiment import Experiment
from webdyno.core.files import cause_of, make_folder, open_given, read_given, reading, write_whole
from webdyno.core.format import count
from webdyno.core.registry import command
from webdyno.core.run import EXPERIMENT_FILE
from webdyno.core.sweep import plan_points
from webdyno.host.users import close_to_others
from webdyno.launch.arrangement import Arrangement
from webdyno.launch.caller import Caller
from webdyno.launch.consent import refuse_other_machines, vouched_targets
from webdyno.launch.foreign import agree_to_use, know_run
from webdyno.measure.folder import MOST_HEAD_BYTES, RunFolder
from webdyno.measure.records_file import RECORDS_FILE

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.cluster.dispatch import Dispatcher, HostRun, Work
    from webdyno.cluster.host import Host

FLEET_FILE = "fleet.json"
SPREAD_FILE = "spread.json"
Head = TypeVar("Head", bound=BaseModel)

REPORTED_APART = 20
"""Of so many hosts each is said of by itself, and gets a report of its own."""
ROUND = b'{"kind":"round"'
"""How the record of a finished round begins; see `measure.redact.line_of`."""


class FleetHead(Model):
    """`fleet.json` of a fleet's folder."""

    name: str
    """Of the experiment."""
    replicates: Annotated[int, Field(ge=1)]
    """How many hosts are to run it."""


class SpreadHead(Model):
    """`spread.json` of a folder with the points of an experiment, spread over hosts."""

    name: str
    """Of the experiment."""


class Dispatch(NamedTuple):
    """An experiment that several hosts measure, in a folder of its own."""

    folder: Path
    name: str
    each: str
    """What each run is about."""
    whole: Experiment
    works: "Sequence[Work]"
    begin: Callable[[Caller], None] = lambda _: None
    """Makes the folder, where it isn't there yet."""

    @property
    def runs(self) -> int:
        """How many there are to be."""
        return sum(work.hosts for work in self.works)


def replicates_on_hosts(asked: Arrangement, out: Path | None, replicates: int) -> Dispatch:
    """Return what measures all of an experiment on several hosts."""
    if replicates < 2:
        raise UserError(f"--replicates {replicates}: two hosts or more say something of others")
    folder, head = _folder(asked, out), FleetHead(name=asked.name, replicates=replicates)
    begin = partial(begin_folder, folder / FLEET_FILE, head, asked.experiment, asked.catalogue)
    return _of_replicates(folder, head, asked.experiment)._replace(begin=begin)


def spread_over_hosts(asked: Arrangement, out: Path | None) -> Dispatch:
    """Return what measures each point of an experiment on one host."""
    from webdyno.comparison import question_of

    if question_of(asked.experiment).one_answer:
        raise UserError("a gate has one answer for all of its points: leave --spread out")
    if asked.experiment.testbed.kind == "cluster":
        raise UserError("--testbed cluster has hosts for one point: leave it out, or --spread")
    if len(plan_points(asked.experiment)) < 2:
        raise UserError("--spread takes an experiment of several points: --vary KEY=LEVEL,LEVEL…")
    folder, head = _folder(asked, out), SpreadHead(name=asked.name)
    begin = partial(begin_folder, folder / SPREAD_FILE, head, asked.experiment, asked.catalogue)
    return _of_points(folder, head, asked.experiment)._replace(begin=begin)


def begun_in(folder: Path, caller: Caller) -> Dispatch:
    """Return what was begun in a folder, to go on with it; raise UserError if it is another's."""
    from webdyno.measure.repeat import kept_catalogue

    kept = kept_catalogue(folder)
    if (folder / FLEET_FILE).exists():
        fleet = read_head(FleetHead, folder / FLEET_FILE)
        begun = _of_replicates(folder, fleet, _experiment_in(folder, kept))
    else:
        spread = read_head(SpreadHead, folder / SPREAD_FILE)
        begun = _of_points(folder, spread, _experiment_in(folder, kept))
    agree_to_use(kept, caller, begun.whole, folder)
    return begun


def spread_in(folder: Path) -> Experiment:
    """Read the experiment whose points hosts measure."""
    from webdyno.measure.repeat import kept_catalogue

    return _experiment_in(folder, kept_catalogue(folder))


def _experiment_in(folder: Path, catalogue: Catalogue) -> Experiment:
    return read_experiment(TomlFile(folder / EXPERIMENT_FILE), [], catalogue)


def _folder(asked: Arrangement, out: Path | None) -> Path:
    from webdyno.core.run import folder_under_runs

    return out or folder_under_runs(asked.name, datetime.now().astimezone())


def _of_replicates(folder: Path, head: FleetHead, experiment: Experiment) -> Dispatch:
    from webdyno.cluster.dispatch import Work

    works = [Work(hosts=head.replicates)]
    return Dispatch(folder, head.name, "all of the experiment", experiment, works)


def _of_points(folder: Path, head: SpreadHead, experiment: Experiment) -> Dispatch:
    from webdyno.cluster.dispatch import work_at_points

    return Dispatch(folder, head.name, "one point", experiment, work_at_points(experiment))


def measure_on_hosts(dispatched: Dispatch, caller: Caller) -> bool:
    """Measure what is missing on hosts; False when somebody interrupted it."""
    from webdyno.cluster.agent import parcel_of
    from webdyno.cluster.dispatch import Dispatcher, missing_runs

    folder, works = dispatched.folder, dispatched.works
    missing = missing_runs(works, folder)
    if not missing:
        return True
    with cluster_hosts(caller.cluster) as hosts:
        dispatcher = Dispatcher(
            fit_hosts(hosts, caller),
            lambda work, begun: parcel_of(folder, begun, work.experiment or dispatched.whole),
            folder,
        )
        _check_hosts(dispatcher, missing)
        dispatched.begin(caller)
        if not caller.quiet:
            caller.notify(
                f"{dispatched.name}: {count(missing.total(), 'run')} on "
                f"{count(len(dispatcher.hosts), 'host')}, each of {dispatched.each}"
            )
        news = RoundNews(max(missing.values()), caller.notify, quiet=caller.quiet)
        try:
            dispatcher.measure(missing, news, yes=caller.yes)
        except KeyboardInterrupt:
            caller.notify("\ninterrupted")
            return False
        finally:
            report_failures(dispatcher.done, caller)
            _report_missing(dispatched, missing_runs(works, folder), caller)
    return True


def _check_hosts(dispatcher: "Dispatcher", missing: "Counter[Work]") -> None:
    if not dispatcher.hosts:
        raise OperationError("none of the hosts can measure")
    for work, wanted in missing.items():
        there = len(dispatcher.hosts_for(work))
        if there < wanted:
            raise UserError(f"{wanted} are wanted, and {count(there, 'host')} can measure")


def _report_missing(dispatched: Dispatch, missing: "Counter[Work]", caller: Caller) -> None:
    if missing:
        runs = dispatched.runs
        caller.notify(
            f"{runs - missing.total()} of {count(runs, 'run')} came to an end; what was measured "
            f"is kept in {dispatched.folder}\n    {command('resume', dispatched.folder)}   "
            f"continues"
        )


@contextmanager
def cluster_hosts(address: str | None) -> Iterator[Sequence["Host"]]:
    """Join the cluster that is meant; give its hosts."""
    if find_spec("ray") is None:
        raise lacks_package("several hosts take", "ray")
    from webdyno.cluster.ray_hosts import ray_cluster

    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        raise UserError("which cluster? Give its head with --cluster, such as 10.0.0.1:6379")
    with ray_cluster(address) as hosts:
        yield hosts


def fit_hosts(hosts: Sequence["Host"], caller: Caller) -> list["Host"]:
    """Exclude hosts that can't measure next to the others, and say why."""
    from webdyno.cluster.host import checked_hosts

    looked = checked_hosts(hosts)
    for host in looked:
        if host.why_not:
            caller.notify(f"{host.why_not}; it is excluded")
    return [host.host for host in looked if not host.why_not]


class RoundNews:
    """Reports each round when it is there, and now and then how sure the answer is by now.

    That takes all of a host's records, so it is reported after 2, 4, 8, … rounds: what it costs
    stays in proportion to them. Of many hosts only how far they are is reported, after as many
    rounds as there are hosts.
    """

    def __init__(self, hosts: int, notify: Callable[[str], None], *, quiet: bool) -> None:
        self._hosts = hosts
        self._notify, self._quiet = notify, quiet
        self._read_bytes: dict[str, int] = {}
        self._rounds: dict[str, int] = {}
        self._all_rounds = 0
        self._counting = Lock()

    def __call__(self, host: str, run: Path) -> None:
        """Report what is new in a host's run."""
        before = self._rounds.get(host, 0)
        rounds = before + self._new_rounds(host, run)
        if rounds == before or self._quiet:
            return
        if self._hosts <= REPORTED_APART:
            self._rounds[host] = rounds
            self._report_on(host, run, before, rounds)
        else:
            self._count(host, rounds)

    def _report_on(self, host: str, run: Path, before: int, rounds: int) -> None:
        from webdyno.comparison import question_of

        so_far = ""
        if rounds.bit_length() > max(before, 1).bit_length():
            points = RunFolder.open(run).data().points
            so_far = "; ".join(question_of(point.experiment).so_far(point) for point in points)
        self._notify(f"{host}, round {rounds}{': ' * bool(so_far)}{so_far}")

    def _count(self, host: str, rounds: int) -> None:
        with self._counting:
            before = self._all_rounds
            self._all_rounds += rounds - self._rounds.get(host, 0)
            self._rounds[host] = rounds
            if self._all_rounds // self._hosts > before // self._hosts:
                least, most = min(self._rounds.values()), max(self._rounds.values())
                spread = f"{least} to {most}" if least < most else f"{least}"
                hosts = count(len(self._rounds), "host")
                self._notify(f"{count(self._all_rounds, 'round')} on {hosts}, {spread} on each")

    def _new_rounds(self, host: str, run: Path) -> int:
        with open_given(run / RECORDS_FILE) as file:
            file.seek(self._read_bytes.get(host, 0))
            whole, _, _ = file.read().rpartition(b"\n")
            self._read_bytes[host] = self._read_bytes.get(host, 0) + len(whole)
        return sum(line.startswith(ROUND) for line in whole.split(b"\n"))


def begin_folder(
    file: Path, head: BaseModel, experiment: Experiment, catalogue: Catalogue, caller: Caller
) -> None:
    """Make the folder of a head for the runs of several hosts, with all that starts them again.

    Raise UserError where there is something in it, and for what would have all of them load another
    machine.
    """
    from webdyno.measure.repeat import keep_for_repeating

    variants = (
        variant
        for point in plan_points(experiment)
        for variant in point.experiment.variants.values()
    )
    stacks = [
        catalogue.stack(name) for name in dict.fromkeys(variant.stack for variant in variants)
    ]
    nobody = replace(caller, loads_other_machines=False, target_is_mine=False)
    refuse_other_machines(stacks, nobody, anywhere=True)
    vouched_targets(stacks, [], nobody)
    folder = file.parent
    try:
        make_folder(folder)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty: name another one with --output")
        close_to_others(folder)
    except OSError as error:
        raise OperationError(f"{folder}: can't be made: {cause_of(error)}") from error
    keep_for_repeating(folder, experiment, catalogue)
    know_run(folder, experiment, catalogue, caller)
    write_whole(file, head.model_dump_json(indent=2) + "\n")


def read_head(kind: type[Head], file: Path) -> Head:
    """Read what `begin_folder` has written. Raise UserError where somebody else has."""
    with reading(file):
        text = read_given(file, MOST_HEAD_BYTES)
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        what = kind.__name__.removesuffix("Head").lower()
        raise UserError(f"{file}: not the head of a {what}: {first_fault(error)}") from error


def report_failures(runs: Sequence["HostRun"], caller: Caller) -> None:
    """Report which hosts were lost, and which couldn't measure: of many points the last why."""
    failed: dict[str, list[HostRun]] = defaultdict(list)
    for run in runs:
        if run.lost is not None or run.came_to_nothing:
            failed[run.host].append(run)
    for several in list(failed.values())[:REPORTED_APART]:
        last, labels = several[-1], "; ".join(machine.label for machine in several)
        if last.ended is None:
            caller.notify(f"{last.lost}; what it had measured is kept in {last.folder}")
        else:
            caller.notify(f"{labels}: measured nothing to its end (exit code {last.ended.code}):")
            caller.notify(f"    {last.ended.said.strip()}")
    if len(failed) > REPORTED_APART:
        more = count(len(failed) - REPORTED_APART, "more host")
        caller.notify(f"… and {more} came to nothing or were lost")
