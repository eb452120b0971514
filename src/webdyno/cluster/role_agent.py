"""The lab's agent (`run.agent`) on a host of a cluster that serves, or makes load.

It is given the experiment with its part of the catalogue; from then on orders name points and arms
of it. What goes in and out are values, and what can be asked is listed in
`TRANSLATED` and `AS_THEY_ARE`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from webdyno.cluster.agent import unpack
from webdyno.cluster.signs import Answering, Signs
from webdyno.definitions import Catalogue, read_experiment
from webdyno.definitions.toml_file import TomlFile
from webdyno.generator import GeneratorError, LoadOrder, find_loadgen
from webdyno.host import Bench, open_bench
from webdyno.host.cpus import allowed_cpus, physical_cores, whole_split
from webdyno.host.workspace import Workspace
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.model.records import Answer
from webdyno.model.run import CATALOGUE_FOLDER, EXPERIMENT_FILE, arm_folder
from webdyno.run.agent import Agent
from webdyno.run.here import OpenBenches, load_generators, versions_of
from webdyno.run.host import Loaded, Up
from webdyno.run.planned import PlannedArm, arms_of_all_points, plan_arms
from webdyno.run.roles import Surroundings
from webdyno.stack import Placement, install_packages, missing_packages

TRANSLATED = frozenset({"look", "signs", "at_point", "start", "ask", "load", "files", "close"})
"""What is asked of `RoleAgent`, since names or values mean something on this host only."""
AS_THEY_ARE = frozenset(
    {
        *("ports_for", "stop", "check_alive", "waits_for_rest", "get_ready", "end"),
        *("slot_begins", "slot_ends", "slot_fails", "sampling_begins", "sampling_ends"),
    }
)
"""What goes to the lab's agent as it comes."""


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
        if what not in TRANSLATED | AS_THEY_ARE:
            return Reply(refusal=Mistake(f"there is no order {what!r}"))
        method: Callable[..., Any] = getattr(self if what in TRANSLATED else self._agent, what)
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

    def start(self, arm: str, placement: Placement | None) -> Up:
        """Start an arm's servers anew: those that are to be here."""
        return self._agent.start(self._arms[arm], self._folder(arm), placement)

    def ask(self, arm: str, url: str, ignored: Sequence[str]) -> list[Answer]:
        """Ask an arm what the certificate asks for."""
        self._refuse_others([url])
        return self._agent.ask(self._arms[arm], url, ignored)

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

    def close(self) -> None:
        """Leave nothing here."""
        self._agent.end()
        self._exits.close()


def keep_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write down what came from a host. Raises Trouble for what lies elsewhere."""
    for name, content in files.items():
        path = Path(os.path.normpath(folder / name))
        if not path.is_relative_to(folder):
            raise Trouble(f"a host sent a file that is none of the run's: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
