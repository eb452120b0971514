"""What real servers do only later is found in one long stretch of load, with its time and cause."""

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.commands import environment
from webdyno.core.looks import LongLook
from webdyno.core.records import LongLookRecord
from webdyno.evidence.long_look import look_at, warnings_words

TESTS = Path(__file__).parents[1]
FEW_PORTS = (
    "ip link set lo up && echo 50000 50399 >/proc/sys/net/ipv4/ip_local_port_range"
    ' && echo 0 >/proc/sys/net/ipv4/tcp_tw_reuse && exec "$@"'
)

SELDOM = "--takes-ms=20"
"""Two hundred requests a second at the most, which a machine that is busy can serve as well."""


def looked(
    folder: Path,
    *words: str,
    look_s: float = 10,
    connections: int = 4,
    keepalive: str = "always",
    within: tuple[str, ...] = (),
) -> LongLook:
    """Look at a server that does later what the words say."""
    reported = (str(folder), str(look_s), str(connections), keepalive, *words)
    done = subprocess.run(
        [*within, sys.executable, "-m", "e2e.planted", *reported],
        cwd=TESTS,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return look_at(LongLookRecord.model_validate_json(done.stdout))


def test_a_server_that_is_killed_is_reported_with_its_time_and_requests(open_folder: Path) -> None:
    look = looked(open_folder, "--dies-after=150", SELDOM)
    assert "signal 9" in look.died
    (failing,) = look.failing
    assert failing.to_the_end
    assert 0 < failing.answered_before < 150
    assert look.looked_s == pytest.approx(failing.at_s)
    assert "signal 9" in warnings_words(look)


@pytest.mark.long
def test_descriptors_that_run_out_are_reported_with_their_time_and_the_log(
    open_folder: Path,
) -> None:
    look = looked(open_folder, "--leak-every=1", "--files=400", SELDOM)
    (failing,) = look.failing
    assert failing.to_the_end
    assert failing.share > 0.9
    assert 0 < failing.answered_before < 400
    assert not failing.by_client
    assert "Too many open files" in failing.said


@pytest.mark.long
def test_descriptors_that_become_more_are_found_before_they_run_out(open_folder: Path) -> None:
    look = looked(open_folder, "--leak-every=10")
    assert look.more_open is not None
    assert look.more_open.per_request.estimate == pytest.approx(0.1, rel=0.2)
    assert not look.failing


@pytest.mark.long
def test_ports_that_run_out_behind_a_server_are_the_servers_failures(open_folder: Path) -> None:
    look = looked(open_folder, "--ports=800")
    (failing,) = look.failing
    assert failing.to_the_end
    assert 0 < failing.answered_before < 850
    assert not failing.by_client
    assert "Cannot assign requested address" in failing.said


@pytest.mark.long
def test_a_client_whose_ports_run_out_is_blamed_itself(open_folder: Path) -> None:
    within = ("/usr/bin/unshare", "--net", "/bin/sh", "-c", FEW_PORTS, "sh")
    look = looked(open_folder, "--takes-ms=1", keepalive="never", within=within)
    assert look.failing
    assert all(it.by_client for it in look.failing)


@pytest.mark.long
def test_a_log_that_is_packed_in_the_way_of_requests_is_a_stall_each_time(
    open_folder: Path,
) -> None:
    look = looked(open_folder, "--rotates-every-s=4", look_s=15)
    assert look.stalls is not None
    assert look.stalls.count >= 3
    assert look.stalls.length_s == pytest.approx(1.0, abs=0.3)
    assert not look.failing


@pytest.mark.long
def test_nginx_takes_the_rotation_of_its_log_well(open_folder: Path) -> None:
    look = looked(open_folder, "nginx", look_s=7)
    assert len(list((open_folder / "logs").glob("[0-9]*.txt"))) >= 3
    assert not look.failing
    assert look.stalls is None or look.stalls.count < 3
    assert look.more_open is None


@pytest.mark.long
def test_a_cache_that_expires_all_at_once_is_found_with_its_period(open_folder: Path) -> None:
    planted = ("--takes-ms=40", "--slow-every-s=6", "--slow-s=1.5", "--slow-factor=5")
    look = looked(open_folder, *planted, look_s=26, connections=16)
    assert look.slow is not None
    assert look.slow.stretches.count >= 3
    assert look.slow.level == pytest.approx(0.2, abs=0.1)
    assert look.slow.stretches.every_s is not None
    assert look.slow.stretches.every_s.low <= 6.5
    assert look.slow.stretches.every_s.high >= 5.5
