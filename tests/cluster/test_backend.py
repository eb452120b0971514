"""A run on hosts in their roles: real agents, servers and engines, orders that cross as values."""

import os
import pickle
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from webdyno.cluster import role_agent
from webdyno.cluster.agent import parcel_of
from webdyno.cluster.backend import ClusterBackend, keep_files
from webdyno.cluster.host import Order, RemoteAgent, Reply, carried_out, remote_agent
from webdyno.cluster.role_agent import AgentProcess, RoleAgent
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.records import IncidentRecord, RoundRecord, SlotRecord
from webdyno.core.testbed import CpuSplit
from webdyno.launch.caller import LineProgress
from webdyno.load.interface import GeneratorError
from webdyno.measure.backend import HostLost, LoadOutcome, Questions
from webdyno.measure.folder import RunFolder
from webdyno.measure.point import Stopwatch
from webdyno.measure.repeat import keep_for_repeating
from webdyno.measure.round import run_round
from webdyno.measure.session import _open_points, begin_run, measure_run

HERE = "127.0.0.1"
CATALOGUE = Catalogue.load()
FEWEST_ROUNDS = 6
Disturb = Callable[[str, str, Any], Any]
"""Host, order, and what came of it -> what comes of it instead."""


class StandInHost:
    """A host that is this machine: its agent is in this process, and gets and gives bytes."""

    address = HERE

    def __init__(self, name: str, disturb: Disturb) -> None:
        self.name = name
        self._disturb = disturb
        self._agent: RoleAgent | None = None

    def agent(self, parcel: bytes, peers: Collection[str], *, yes: bool) -> RemoteAgent:
        """Have an agent."""
        self._agent = RoleAgent(parcel, HERE, peers, yes=yes)
        return remote_agent(partial(self._give, self._agent))

    def _give(self, agent: RoleAgent, order: Order) -> object:
        sent = pickle.loads(pickle.dumps(order))  # noqa: S301
        reply = pickle.loads(pickle.dumps(carried_out(sent, agent)))  # noqa: S301
        if reply.refusal is not None:
            raise reply.refusal
        return self._disturb(self.name, order.what, reply.value)

    def release(self) -> None:
        """Let it go."""
        if self._agent is not None:
            self._agent.close()


def place_of(*names: str, disturb: Disturb = lambda _, __, came: came) -> ClusterBackend:
    return ClusterBackend([StandInHost(name, disturb) for name in names], yes=False)


def experiment(testbed: dict[str, object], site: str = "static", **stacks: str) -> Experiment:
    variants = stacks or {"nginx": "nginx", "apache": "apache-event"}
    reported = {
        "title": "t",
        "question": "q?",
        "site": site,
        "variants": {name: {"stack": stack} for name, stack in variants.items()},
        "load": {"connections": 4},
        "measure": {
            "slot_s": 0.1,
            "warmup_s": 0,
            "slots_per_variant": 2,
            "max_rounds": 6,
            "soak_s": 0.3,
            "seed": 1,
        },
        "testbed": {"kind": "cluster", **testbed},
    }
    return read_experiment(CommandLine(reported, {}), [], CATALOGUE)


def run_on(place: ClusterBackend, asked: Experiment, out: Path) -> RunFolder:
    with place, begin_run("t", place.with_hosts(asked), CATALOGUE, out, place) as folder:
        measure_run(folder, LineProgress(folder.head, print), backend=place)
    return RunFolder.open(out)


def one_round_on(place: ClusterBackend, asked: Experiment, out: Path) -> RunFolder:
    with (
        place,
        begin_run("t", place.with_hosts(asked), CATALOGUE, out, place) as folder,
        ExitStack() as exits,
    ):
        progress = LineProgress(folder.head, print)
        (point,) = _open_points(folder, progress, place, exits, Stopwatch())
        run_round(point, 1)
    return RunFolder.open(out)


def slots_of(run: RunFolder) -> list[SlotRecord]:
    return [it for it in run.records() if isinstance(it, SlotRecord)]


def rounds_of(run: RunFolder) -> int:
    return sum(isinstance(it, RoundRecord) for it in run.records())


def test_two_hosts_share_a_load(tmp_path: Path) -> None:
    hosts = {"servers": "web", "clients": ["one", "two"]}
    place = place_of("web", "one", "two")
    run = one_round_on(place, experiment({"hosts": hosts}), tmp_path / "run")
    assert rounds_of(run) == 1
    assert set(run.head.hosts) == {"web", "one", "two"}
    for slot in slots_of(run):
        assert slot.load.client.threads >= 2
        assert slot.load.requests.completed > 0
        assert slot.load.failures.total == 0
        assert slot.readings
        assert slot.readings.silent_s is not None
    kept = {path.name for path in (tmp_path / "run/rounds").rglob("*") if path.is_file()}
    assert {"nginx.conf", "httpd.conf", "nginx.log", "apache.log"} <= kept


def test_services_of_a_stack_have_hosts_of_their_own(tmp_path: Path) -> None:
    testbed: dict[str, object] = {
        "hosts": {"servers": "web", "clients": ["load"]},
        "services": {"phpfpm": {"host": "php"}, "mariadb": {"host": "db"}},
    }
    asked = experiment(testbed, "frontpage", one="nginx-phpfpm", other="nginx-phpfpm")
    place = place_of("web", "php", "db", "load")
    run = one_round_on(place, asked, tmp_path / "run")
    assert rounds_of(run) == 1
    for slot in slots_of(run):
        assert slot.readings
        assert set(slot.readings.services) == {"nginx", "phpfpm", "mariadb"}
        assert slot.readings.front == "nginx"
        assert slot.servers.cpu_s > 0
    assert set(run.head.versions["one"]) == {"nginx", "phpfpm", "mariadb"}


@pytest.mark.long
def test_another_host_makes_load_for_one_that_is_lost(tmp_path: Path) -> None:
    lost = iter([False] * 5 + [True])

    def disturb(host: str, what: str, came: Any) -> Any:  # noqa: ANN401
        if host == "one" and what == "load" and next(lost, False):
            raise HostLost("one is gone", "one")
        return came

    place = place_of("web", "one", "two", disturb=disturb)
    run = run_on(place, experiment({}), tmp_path / "run")
    (incident,) = (it for it in run.records() if isinstance(it, IncidentRecord))
    assert incident.of_hosts
    assert (incident.variant, incident.what) == (None, "one is gone")
    assert rounds_of(run) >= FEWEST_ROUNDS


def test_servers_that_are_lost_end_the_run(tmp_path: Path) -> None:
    def disturb(host: str, what: str, came: Any) -> Any:  # noqa: ANN401
        if host == "web" and what == "slot_ends":
            raise HostLost("web is gone", "web")
        return came

    place = place_of("web", "one", "two", disturb=disturb)
    with pytest.raises(HostLost, match="web is gone"):
        run_on(place, experiment({}), tmp_path / "run")


@pytest.mark.long
def test_a_round_in_which_the_network_was_cut_is_done_again(tmp_path: Path) -> None:
    cuts = iter([True])

    def disturb(_: str, what: str, came: Any) -> Any:  # noqa: ANN401
        if isinstance(came, LoadOutcome) and came.use and what == "load" and next(cuts, False):
            return came._replace(use=came.use._replace(silent_s=3.0))
        return came

    run = run_on(place_of("web", "one", disturb=disturb), experiment({}), tmp_path / "run")
    (incident,) = (it for it in run.records() if isinstance(it, IncidentRecord))
    assert "no sign of life for 3 s" in incident.what
    assert rounds_of(run) >= FEWEST_ROUNDS
    assert len([it for it in slots_of(run) if it.round == 1]) == 5


@pytest.mark.parametrize(
    ("hosts", "testbed", "words"),
    [
        (["a", "b"], {"hosts": {"servers": "c"}}, "there is no host c; there are a, b"),
        (["a", "b"], {"services": {"nginx": {"host": "d"}}}, "there is no host d"),
        (["a"], {}, "it needs a host for the servers and another for the client"),
    ],
)
def test_hosts_that_are_not_there_are_reported(
    hosts: list[str], testbed: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        place_of(*hosts).with_hosts(experiment(testbed))


def test_services_that_no_variant_has_are_reported(tmp_path: Path) -> None:
    testbed: dict[str, object] = {"services": {"mariadb": {"host": "c"}}}
    with pytest.raises(UserError, match="variant nginx has no such service; it has nginx"):
        run_on(place_of("a", "b", "c"), experiment(testbed), tmp_path / "run")


def test_a_host_can_not_serve_and_make_load() -> None:
    with pytest.raises(UserError, match="a can't serve and make load"):
        experiment({"hosts": {"servers": "a", "clients": ["a"]}})


def test_an_agent_takes_no_cpus_from_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is pinned hands that on to what it starts, the agents of later runs included."""
    pinned: set[int] = set()
    apart = CpuSplit(servers=[0], client=[0], rest=[1], shared=False)
    monkeypatch.setattr(role_agent, "whole_split", lambda *_: apart)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, _: pinned.add(pid))
    place = place_of("web", "one")
    with place:
        place.look(place.with_hosts(experiment({})), CATALOGUE)
    ours = psutil.Process()
    lasting = {0, *(it.id for it in ours.threads()), *(it.pid for it in ours.parents())}
    assert not pinned & lasting


def test_nobody_else_is_loaded() -> None:
    place = place_of("web", "one")
    asked = place.with_hosts(experiment({}))
    with place:
        place.look(asked, CATALOGUE)
        agent = place._agents["one"]
        agent.at_point(0)
        with pytest.raises(GeneratorError, match="is no host of this cluster"):
            agent.ask("nginx", "http://127.0.0.2:80", Questions([], Load(paths=["/"]), []))


def test_an_agent_in_a_process_of_its_own_carries_out_orders_until_we_are_gone(
    tmp_path: Path,
) -> None:
    asked = place_of("web", "one").with_hosts(experiment({}))
    keep_for_repeating(tmp_path, asked, CATALOGUE)
    process = AgentProcess(parcel_of(tmp_path, None), HERE, [HERE], yes=False)
    replies: list[Reply] = []
    agent = remote_agent(lambda order: replies.append(process.do(order)))
    with process._process as there, process._agent:
        agent.at_point(0)
        agent.ports_for("nginx", roles=["nginx"])
        agent.ask("nginx", "http://127.0.0.2:80", Questions([], Load(paths=["/"]), []))
    done, ports, refused = replies
    assert done == Reply()
    assert isinstance(ports.value, list)
    assert isinstance(refused.refusal, GeneratorError)
    assert there.returncode == 0


def test_nothing_else_can_be_ordered() -> None:
    agent = cast("RemoteAgent", object())
    refusal = carried_out(Order("__reduce__", (), {}), agent).refusal
    assert "there is no order '__reduce__'" in str(refusal)
    with pytest.raises(AttributeError):
        remote_agent(lambda _: None).work_for  # type: ignore[attr-defined] # noqa: B018


def test_files_of_a_host_stay_in_their_folder(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="none of the run's"):
        keep_files({"../x": b""}, tmp_path)
