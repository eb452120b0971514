"""Points of a sweep spread over two hosts that each have a network and processes of their own."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, QUICK, WEBDYNO
from e2e.hosts import HEAD, ON_HOSTS, TestHost, ray_cluster_of
from waiting import wait_until
from webdyno.measure.folder import RunFolder

SWEEP = ("static-hello", *QUICK, "--vary=load.connections=4,8,16", f"--cluster={HEAD}", "--spread")
pytestmark = ON_HOSTS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def hosts(shared: Path) -> Iterator[list[TestHost]]:
    with ray_cluster_of(2, shared) as made:
        yield made


def slots_of(folder: Path, host: TestHost) -> list[Path]:
    """Name the runs of a host in which a slot was measured."""
    records = sorted((folder / host.name).glob("*/slots.jsonl"))
    return [it.parent for it in records if b'"slot"' in it.read_bytes()]


def wait_for_slots(folder: Path, *hosts: TestHost) -> None:
    wait_until(lambda: all(slots_of(folder, host) for host in hosts), "nothing came")


def call(host: TestHost, shared: Path, *words: str) -> tuple[int, str]:
    said = shared / "said"
    said.unlink(missing_ok=True)
    code = host.popen("env", "COLUMNS=100", WEBDYNO, *words, log=said).wait(PATIENCE_S * 2)
    return code, said.read_text()


def test_every_point_is_measured_on_one_host_though_it_was_interrupted(
    hosts: list[TestHost], shared: Path
) -> None:
    head, other = hosts
    out = shared / "sweep"
    process = head.popen(WEBDYNO, "run", *SWEEP, "--output=sweep", log=shared / "begun")
    wait_for_slots(out, head, other)
    head.signal("bin/webdyno run", signal.SIGINT)
    reported = (shared / "begun").read_text
    assert process.wait(PATIENCE_S) == 130, reported()
    assert "resume sweep   continues" in reported()
    before = {it: RunFolder.open(it).records() for host in hosts for it in slots_of(out, host)}

    code, said = call(head, shared, "resume", "sweep", f"--cluster={HEAD}")
    assert code in {0, 1}, said
    for it, first in before.items():
        assert RunFolder.open(it).records()[: len(first)] == first
    assert "3 of 3 points, on 2 machines" in said
    assert "Points of different machines aren't compared" in said
    runs = re.findall(r"^  (\d+) .* (host\d/point-00\d) *$", said, re.MULTILINE)
    assert [connections for connections, _ in runs] == ["4", "8", "16"], said
    for connections, name in runs:
        run = RunFolder.open(out / name)
        assert run.head.experiment.factors == {"load.connections": [int(connections)]}
        assert run.head.machine.identity
        assert (run.path / "report.html").exists()
    assert {name.partition("/")[0] for _, name in runs} == {head.name, other.name}

    code_again, shown = call(head, shared, "report", "sweep")
    assert code_again == code
    assert shown in said


def test_another_host_takes_the_point_of_a_lost_one(hosts: list[TestHost], shared: Path) -> None:
    head, lost = hosts
    process = head.popen(WEBDYNO, "run", *SWEEP, "--output=lost", log=shared / "told")
    wait_for_slots(shared / "lost", lost)
    lost.kill()
    code, reported = process.wait(PATIENCE_S * 2), (shared / "told").read_text()
    assert code in {0, 1}, reported
    assert f"{lost.name} is gone" in reported
    assert "3 of 3 points" in reported
    assert len(slots_of(shared / "lost", head)) >= 2
    assert slots_of(shared / "lost", lost)
