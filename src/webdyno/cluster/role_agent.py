"""The lab's agent (`run.agent`) on a host of a cluster that serves, or makes load.

It is given the experiment with its part of the catalogue; from then on orders name points and arms
of it. What goes in and out are values, and what can be asked is listed in `ORDERS`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil

from webdyno.bench import Bench, open_bench
from webdyno.bench.cpus import allowed_cpus, physical_cores, whole_split
from webdyno.bench.workspace import Workspace
from webdyno.cluster.agent import unpack
from webdyno.cluster.signs import Answering, Signs
from webdyno.definitions import Catalogue, read_experiment
from webdyno.definitions.toml_file import TomlFile
from webdyno.generator import GeneratorError, LoadOrder, find_loadgen
from webdyno.model.experiment import Experiment
from webdyno.model.machine import CpuSplit
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.model.records import Answer
from webdyno.model.run import CATALOGUE_FOLDER, EXPERIMENT_FILE, arm_folder
from webdyno.run.agent import Agent
from webdyno.run.here import OpenBenches, load_generators, versions_of
from webdyno.run.host import Loaded, Look, Up, Used
from webdyno.run.planned import PlannedArm, arms_of_all_points, plan_arms
from webdyno.run.roles import Surroundings
from webdyno.stack import Placement, install_packages, missing_packages

ORDERS = frozenset(
    (
        *("look", "signs", "at_point", "files"),
        *("ports_for", "start", "stop", "check_alive", "waits_for_rest"),
        *("slot_begins", "slot_ends", "slot_fails", "sampling_begins", "sampling_ends"),
        *("ask", "get_ready", "load", "end", "close"),
    )
)


class Reply(NamedTuple):
    """What came of an order: a value, or what to raise where it was given."""

    value: Any = None
    refusal: Mistake | Trouble | None = None


class RoleAgent:
    """Acts for a lab elsewhere on this host, for one run."""

    def __init__(self, parcel: bytes, address: str, peers: Collection[str], *, yes: bool) -> None:
        """Take an experiment; `address` is this host's, load goes to `peers` only.

        With `yes` what the host lacks is installed.
        """
        self._address, self._peers, self._yes = address, frozenset(peers), yes
        self._split = whole_split(allowed_cpus(), physical_cores())
        keep_off(self._split)
        self._exits = ExitStack()
        # Should we be killed, whoever makes the next one removes it.
        self._place = self._exits.enter_context(Workspace()).path
        unpack(parcel, self._place)
        self._benches = OpenBenches(self._exits, self._as_host)
        self._arms: dict[str, PlannedArm] = {}
        self._agent = Agent({})
        self._signs: tuple[str, int] | None = None

    def do(self, what: str, *values: Any) -> Reply:  # noqa: ANN401 (each order has its own)
        """Carry out an order."""
        if what not in ORDERS:
            return Reply(refusal=Mistake(f"there is no order {what!r}"))
        method: Callable[..., Any] = getattr(self, what)
        try:
            return Reply(method(*values))
        except (Mistake, Trouble) as refusal:
            return Reply(refusal=refusal)

    @cached_property
    def _catalogue(self) -> Catalogue:
        return Catalogue.load([self._place / CATALOGUE_FOLDER])

    @cached_property
    def _experiment(self) -> Experiment:
        return read_experiment(TomlFile(self._place / EXPERIMENT_FILE), [], self._catalogue)

    def _as_host(self, bench: Bench) -> Bench:
        return bench.on_host(self._address, self._split)

    def _folder(self, arm: str) -> Path:
        return self._place / "logs" / arm_folder(arm)

    def look(self) -> Surroundings:
        """Look at what can change a result here; see that what is needed is there."""
        if (nice := os.getpriority(os.PRIO_PROCESS, 0)) > 0:
            raise Trouble(
                f"what Ray starts has a niceness of {nice}, and servers would have it as well: "
                "start its node with RAY_worker_niceness=0 in its environment"
            )
        arms = arms_of_all_points(self._experiment, self._catalogue)
        self._provide(arms)
        with open_bench(self._experiment.bench, find_loadgen()) as bench:
            there = self._as_host(bench)
            return Surroundings(
                machine=there.describe(),
                versions=versions_of(arms, there),
                load_generator=load_generators(self._experiment),
                hosts={},
            )

    def _provide(self, arms: Sequence[PlannedArm]) -> None:
        lacking = missing_packages([it.stack for it in arms], [it.site for it in arms])
        if lacking and not self._yes:
            raise Trouble(f"it lacks {', '.join(lacking)}; --yes installs that there")
        install_packages(lacking, lambda _: True)

    def signs(self, of: tuple[str, int] | None) -> int:
        """Answer signs of life, and give the port; or, given somebody who does, wait for theirs."""
        if of is not None:
            self._signs = of
            return of[1]
        return Answering(self._address).port

    def at_point(self, number: int) -> None:
        """Work at a point of the experiment from now on."""
        plan = next(it for it in plan_points(self._experiment) if it.point.number == number)
        self._arms = {arm.name: arm for arm in plan_arms(plan.experiment, self._catalogue)}
        self._agent = Agent(self._benches.of_arms(plan.experiment))

    def ports_for(self, arm: str, roles: Sequence[str]) -> list[int]:
        """Find a free port for each of some services of an arm."""
        return self._agent.ports_for(arm, roles)

    def start(self, arm: str, placement: Placement | None) -> Up:
        """Start an arm's servers anew: those that are to be here."""
        return self._agent.start(self._arms[arm], self._folder(arm), placement)

    def stop(self, arm: str) -> None:
        """Stop an arm's servers."""
        self._agent.stop(arm)

    def check_alive(self, arm: str) -> None:
        """Raise StackDied where a service of an arm has ended."""
        self._agent.check_alive(arm)

    def waits_for_rest(self, most_s: float) -> bool:
        """Wait until all servers here rest."""
        return self._agent.waits_for_rest(most_s)

    def slot_begins(self, arm: str, look: Look | None) -> None:
        """Read the counters of an arm."""
        self._agent.slot_begins(arm, look)

    def slot_ends(self) -> Used:
        """Read them again."""
        return self._agent.slot_ends()

    def slot_fails(self) -> None:
        """Read nothing more of the slot."""
        self._agent.slot_fails()

    def sampling_begins(self, arm: str, every_s: float) -> None:
        """Begin to read an arm's CPU time often."""
        self._agent.sampling_begins(arm, every_s)

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        """End it, and give what was read."""
        return self._agent.sampling_ends()

    def ask(self, arm: str, url: str, ignored: Sequence[str]) -> list[Answer]:
        """Ask an arm what the certificate asks for."""
        self._refuse_others([url])
        return self._agent.ask(self._arms[arm], url, ignored)

    def get_ready(self, arm: str) -> None:
        """Start what makes an arm's load."""
        self._agent.get_ready(arm)

    def load(self, arm: str, order: LoadOrder) -> Loaded:
        """Load an arm, and wait for signs of life of its host meanwhile."""
        self._refuse_others(request.url for request in order.requests)
        if self._signs is None:
            return self._agent.load(arm, order)
        with Signs(*self._signs) as signs:
            loaded = self._agent.load(arm, order)
        use = loaded.use and loaded.use._replace(silent_s=signs.silent_s)
        return loaded._replace(use=use)

    def _refuse_others(self, urls: Iterable[str]) -> None:
        for url in urls:
            if urlsplit(url).hostname not in self._peers:
                raise GeneratorError(f"{url} is no host of this cluster, so it isn't loaded")

    def files(self, arm: str) -> Mapping[str, bytes]:
        """Give what an arm's servers were started with, and what they said, by path."""
        folder = self._folder(arm)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def end(self) -> None:
        """Stop everything of the block."""
        self._agent.end()

    def close(self) -> None:
        """Leave nothing here."""
        self._agent.end()
        self._exits.close()


def keep_off(split: CpuSplit) -> None:
    """Keep us, and what gave this host its orders, off the CPUs that are measured.

    So far as there are others. We are the child of a worker of the node's own process.
    """
    if set(split.rest) & {*split.servers, *split.client}:
        return
    node = psutil.Process(os.getppid()).parent()
    workers = node.children() if node else []
    for process in (psutil.Process(), *filter(None, [node]), *workers):
        with suppress(OSError, psutil.Error):
            for thread in process.threads():
                os.sched_setaffinity(thread.id, split.rest)


def keep_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write down what came from a host. Raises Trouble for what lies elsewhere."""
    for name, content in files.items():
        path = Path(os.path.normpath(folder / name))
        if not path.is_relative_to(folder):
            raise Trouble(f"a host sent a file that is none of the run's: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
