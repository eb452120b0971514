"""Servers on one host, load from others, a database on a third: roles in a cluster."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, QUICK, slots
from e2e.hosts import HEAD, ON_HOSTS, TestHost, ray_cluster_of
from e2e.test_cluster import begin, nothing_stays
from waiting import wait_until
from webdyno.core.records import IncidentRecord, RoundRecord
from webdyno.measure.folder import RunFolder

pytestmark = ON_HOSTS
SERVERS_CPU, CLIENTS_CPU = "0", str((os.cpu_count() or 1) - 1)
ON_CLUSTER = ("--testbed=cluster", f"--cluster={HEAD}")
SERVED = "--set=testbed.hosts.servers=host2"
LONGER = (
    "--set=measure.slot_s=1.5",
    "--set=measure.warmup_s=0",
    "--set=measure.slots_per_variant=2",
    "--set=measure.budget_s=1s",
)
"""Half a minute and more, as six rounds are the fewest: Ray takes ten seconds or more to notice."""
ROLES = ("run", "static-hello", *ON_CLUSTER, SERVED, '--set=testbed.hosts.clients=["host3"]')


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roles")


@pytest.fixture(scope="module")
def hosts(shared: Path) -> Iterator[list[TestHost]]:
    """The first gives orders; each has CPUs of its own as far as there are some."""
    cpus = [CLIENTS_CPU, SERVERS_CPU, CLIENTS_CPU, CLIENTS_CPU, SERVERS_CPU]
    with ray_cluster_of(5, shared, cpus) as made:
        yield made


def finished(
    host: TestHost, shared: Path, *words: str, out: str
) -> tuple[RunFolder, str, int | None]:
    """Call webdyno on a host to its end; give its run, what it said and its exit code."""
    process, said = begin(host, shared, *words, f"--output={out}", "--no-report")
    code = process.wait(PATIENCE_S * 2)
    reported = said.read_text()
    assert (shared / out / "run.json").exists(), reported
    return RunFolder.open(shared / out), reported, code


def loading(shared: Path, out: str) -> bool:
    file = shared / out / "slots.jsonl"
    return file.exists() and b'"phase":"measure"' in file.read_bytes()


def test_two_hosts_load_a_third(hosts: list[TestHost], shared: Path) -> None:
    both = '--set=testbed.hosts.clients=["host3","host4"]'
    run, reported, code = finished(
        hosts[0], shared, "run", "static-hello", *ON_CLUSTER, SERVED, both, *QUICK, out="two"
    )
    assert code == 0, reported
    assert "nginx is FASTER" in reported
    assert set(run.head.hosts) == {"host2", "host3", "host4"}
    assert run.head.hosts["host2"] == run.head.machine
    for slot in slots(run):
        assert slot.load.client.threads == 2
        assert slot.load.target.startswith("http://10.77.0.2:")
        assert slot.servers.cpu_s > 0
        assert slot.readings
        assert slot.readings.silent_s is not None
    assert list((shared / "two/rounds").rglob("nginx.conf"))
    nothing_stays(hosts)


def test_web_server_php_and_database_are_on_three_hosts(
    hosts: list[TestHost], shared: Path
) -> None:
    spread = (
        *("--set=testbed.services.phpfpm.host=host5", "--set=testbed.services.mariadb.host=host4"),
        '--set=testbed.hosts.clients=["host3"]',
    )
    words = (
        "compare",
        "nginx-phpfpm-cache",
        "nginx-phpfpm",
        "--site=frontpage",
        *ON_CLUSTER,
        SERVED,
    )
    run, reported, code = finished(hosts[0], shared, *words, *spread, *QUICK, out="three")
    assert code == 0, reported
    plain = [it for it in slots(run) if it.variant == "nginx-phpfpm"]
    for slot in plain:
        assert slot.readings
        assert set(slot.readings.services) == {"nginx", "phpfpm", "mariadb"}
    assert any(it.readings and it.readings.services["mariadb"].cpu_user_s > 0 for it in plain)
    logs = {path.name for path in (shared / "three/rounds").rglob("*.log")}
    assert {"nginx.log", "phpfpm.log", "mariadb.log"} <= logs
    nothing_stays(hosts)


def disturbed(
    host: TestHost,
    shared: Path,
    disturb: Callable[[], None],
    *words: str,
    out: str,
    lasts: Sequence[str] = QUICK,
) -> tuple[RunFolder, str, int]:
    """Disturb a run while it measures; see that no slot from before is other afterwards."""
    process, said = begin(host, shared, *words, *lasts, f"--output={out}", "--no-report")
    wait_until(lambda: loading(shared, out), "nothing came")
    before = (shared / out / "slots.jsonl").read_bytes()
    disturb()
    code = process.wait(PATIENCE_S * 2)
    reported = said.read_text()
    assert (shared / out / "slots.jsonl").read_bytes().startswith(before)
    return RunFolder.open(shared / out), reported, code


def incidents(run: RunFolder) -> list[IncidentRecord]:
    return [it for it in run.records() if isinstance(it, IncidentRecord)]


def rounds(run: RunFolder) -> int:
    return sum(isinstance(it, RoundRecord) for it in run.records())


def test_a_cut_network_is_reported_and_the_round_is_done_again(
    hosts: list[TestHost], shared: Path
) -> None:
    servers, client = hosts[1], hosts[2]

    def cut() -> None:
        """Packets to the client go to nobody, who says nothing."""
        nobody = f"{client.address} lladdr 02:00:00:00:00:99 nud permanent dev eth0"
        servers.do(f"ip neigh replace {nobody}")
        time.sleep(5)
        servers.do(f"ip neigh del {client.address} dev eth0")

    run, reported, code = disturbed(hosts[0], shared, cut, *ROLES, out="cut")
    assert code == 0, reported
    assert "the network between them was cut" in reported
    assert [it.variant for it in incidents(run)] == [None]
    assert rounds(run) >= 6
    nothing_stays(hosts)


@pytest.mark.parametrize("frozen", [1, 2], ids=["servers", "client"])
def test_a_host_that_stands_still_for_a_while_goes_on(
    hosts: list[TestHost], shared: Path, frozen: int
) -> None:
    def freeze() -> None:
        hosts[frozen].signal("", signal.SIGSTOP)
        time.sleep(10)
        hosts[frozen].signal("", signal.SIGCONT)

    run, reported, code = disturbed(hosts[0], shared, freeze, *ROLES, out=f"frozen{frozen}")
    assert code == 0, reported
    assert rounds(run) >= 6
    found = incidents(run)  # none where it stalled between slots
    assert all("one of them stalled" in it.what for it in found)
    assert len(found) <= 1
    nothing_stays(hosts)


def test_ctrl_c_leaves_nothing_on_any_host(hosts: list[TestHost], shared: Path) -> None:
    def interrupt() -> None:
        hosts[0].signal("bin/webdyno run", signal.SIGINT)

    _, reported, code = disturbed(hosts[0], shared, interrupt, *ROLES, out="ended")
    assert code == 130, reported
    assert "resume ended   continues" in reported
    nothing_stays(hosts)


def test_a_client_that_is_lost_is_replaced(hosts: list[TestHost], shared: Path) -> None:
    lost = hosts[2]
    run, reported, code = disturbed(hosts[0], shared, lost.kill_all, *ROLES, out="lost")
    assert code == 0, reported
    assert "host3 is gone" in reported
    assert "makes load in its place" in reported
    assert [it.variant for it in incidents(run)] == [None]
    assert rounds(run) >= 6
    lost.start_node()
    nothing_stays(hosts)


def test_a_run_whose_servers_are_lost_goes_on_when_they_are_back(
    hosts: list[TestHost], shared: Path
) -> None:
    lost = hosts[1]
    run, reported, code = disturbed(hosts[0], shared, lost.kill_all, *ROLES, out="servers")
    assert code == 3, reported
    assert "host2 is gone" in reported
    assert "resume servers   continues" in reported
    before = run.records()
    lost.start_node()
    process, said = begin(hosts[0], shared, "resume", "servers", f"--cluster={HEAD}", "--no-report")
    assert process.wait(PATIENCE_S * 2) == 0, said.read_text()
    again = RunFolder.open(shared / "servers")
    assert again.records()[: len(before)] == before
    assert rounds(again) >= 6
    nothing_stays(hosts)


def test_a_run_goes_on_after_its_head_was_lost(hosts: list[TestHost], shared: Path) -> None:
    """Ray ends who gave the orders, and the nodes, when their head doesn't come back."""
    head = hosts[0]
    run, reported, code = disturbed(head, shared, head.kill_node, *ROLES, out="head", lasts=LONGER)
    assert code != 0, reported
    before = run.records()
    nothing_stays(hosts[1:])
    for host in hosts:
        host.kill_all()
    for host in hosts:
        host.start_node()
    process, said = begin(head, shared, "resume", "head", f"--cluster={HEAD}", "--no-report")
    assert process.wait(PATIENCE_S * 2) == 0, said.read_text()
    again = RunFolder.open(shared / "head")
    assert again.records()[: len(before)] == before
    assert rounds(again) >= 6
    nothing_stays(hosts)
