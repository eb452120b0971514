"""A cluster of hosts that each have a network, processes and temporary files of their own."""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, QUICK, WEBDYNO
from e2e.hosts import GROUPS_BEFORE, HEAD, ON_HOSTS, TestHost, groups, ray_cluster_of
from waiting import wait_until
from webdyno.measure.folder import RunFolder

pytestmark = ON_HOSTS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def hosts(shared: Path) -> Iterator[list[TestHost]]:
    with ray_cluster_of(4, shared) as made:
        yield made


def begin(host: TestHost, shared: Path, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Call webdyno on a host; give its process, and what it prints."""
    said = shared / f"said-{len(list(shared.glob('said-*')))}"
    return host.popen(WEBDYNO, *words, log=said), said


def serving(host: TestHost) -> list[str]:
    """What a run has started on a host."""
    reported = host.processes().values()
    return [
        it
        for it in reported
        if any(word in it for word in ("nginx", "apache2", "webdyno.interfaces.python"))
    ]


def nothing_stays(hosts: Sequence[TestHost]) -> None:
    for host in hosts:
        wait_until(partial(_is_idle, host), f"{host.name}: {serving(host)}")
    wait_until(lambda: groups() <= GROUPS_BEFORE, "control groups stay")


def _is_idle(host: TestHost) -> bool:
    return not serving(host)


def test_more_hosts_than_there_are_are_refused(hosts: list[TestHost], shared: Path) -> None:
    words = ("run", "static-hello", "--replicates=9", f"--cluster={HEAD}", "--output=many")
    process, said = begin(hosts[0], shared, *words)
    assert process.wait(PATIENCE_S) == 2
    assert not (shared / "many").exists()
    assert f"9 are wanted, and {len(hosts)} hosts can measure" in said.read_text()


def test_hosts_and_links_are_shown(hosts: list[TestHost], shared: Path) -> None:
    process, said = begin(hosts[0], shared, "cluster", "check", HEAD)
    assert process.wait(PATIENCE_S) == 0, said.read_text()
    reported = said.read_text()
    for host in hosts:
        assert host.name in reported
    assert reported.count("µs") == reported.count("Mbit/s") == len(hosts) - 1
    assert f"{len(hosts)} hosts can measure" in reported


def test_ctrl_c_ends_it_on_all_hosts(hosts: list[TestHost], shared: Path) -> None:
    head, *others = hosts
    words = ("run", "static-hello", "--replicates=3", f"--cluster={HEAD}", "--output=ended")
    process, said = begin(head, shared, *words)
    wait_until(lambda: all(serving(host) for host in others), "no server came up")
    head.signal("bin/webdyno run", signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130, said.read_text()
    assert "resume ended   continues" in said.read_text()
    assert "is gone" not in said.read_text()
    nothing_stays(others)


def test_who_gave_the_orders_is_killed_and_the_fleet_goes_on_though_a_host_freezes(
    hosts: list[TestHost], shared: Path
) -> None:
    head, *others = hosts
    words = ("run", "static-hello", "--replicates=3", f"--cluster={HEAD}", *QUICK, "--output=on")
    _, said = begin(head, shared, *words)
    records = [shared / "on" / host.name / "slots.jsonl" for host in others]
    wait_until(lambda: any(it.exists() and b'"slot"' in it.read_bytes() for it in records), "none")
    head.signal("bin/webdyno run", signal.SIGKILL)
    nothing_stays(others)
    before = {it: RunFolder.open(it.parent).records() for it in records if it.exists()}
    process, said = begin(head, shared, "resume", "on", f"--cluster={HEAD}")
    wait_until(lambda: all(serving(host) for host in others), "no server came up")
    others[0].signal("", signal.SIGSTOP)
    time.sleep(10)
    others[0].signal("", signal.SIGCONT)
    process.wait(PATIENCE_S * 2)
    assert "The same experiment on 3 machines" in said.read_text(), said.read_text()
    for it, first in before.items():
        assert RunFolder.open(it.parent).records()[: len(first)] == first
    nothing_stays(others)


def test_three_machines_give_a_verdict_though_one_is_lost(
    hosts: list[TestHost], shared: Path
) -> None:
    head, lost, *others = hosts
    words = ("run", "static-hello", "--replicates=3", f"--cluster={HEAD}", *QUICK, "--output=three")
    process, said = begin(head, shared, *words)
    records = shared / "three" / lost.name / "slots.jsonl"
    wait_until(lambda: records.exists() and b'"slot"' in records.read_bytes(), "nothing came")
    lost.kill()
    hosts.remove(lost)
    process.wait(PATIENCE_S * 2)
    reported = said.read_text()
    assert f"{lost.name} is gone" in reported
    assert f"what it had measured is kept in three/{lost.name}" in reported
    assert "The same experiment on 3 machines" in reported, reported
    assert {path.name for path in (shared / "three").iterdir() if path.is_dir()} == {
        *(host.name for host in hosts),
        lost.name,
        "catalog",
    }
    runs = [RunFolder.open(shared / "three" / host.name) for host in (head, *others)]
    assert len({run.head.machine.identity for run in runs}) == 3
    assert RunFolder.open(shared / "three" / lost.name).records()
    nothing_stays(others)
