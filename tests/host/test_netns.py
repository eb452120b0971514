"""The testbed with a network of its own: namespaces, the link, what is left behind."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordinary_user import NOBODY, SYSTEM_PYTHON, needs_ordinary_user
from waiting import wait_until
from webdyno.core.errors import OperationError
from webdyno.core.testbed import TestbedSettings
from webdyno.host.netns import NetnsTestbed, Sides, shaping
from webdyno.load.engine import find_loadgen

"""One that everybody may run; that of the tests may lie in root's home."""
DRIVER = Path(__file__).parent / "netns_driver.py"
CAN_UNSHARE = (
    subprocess.run(["unshare", "-n" if os.geteuid() == 0 else "-Urn", "true"], check=False)
).returncode == 0
needs_namespaces = pytest.mark.skipif(not CAN_UNSHARE, reason="no network namespaces here")


def settings(**given: object) -> TestbedSettings:
    return TestbedSettings.model_validate({"kind": "netns", **given})


@pytest.fixture
def testbed() -> Iterator[NetnsTestbed]:
    with NetnsTestbed(settings(), find_loadgen()) as testbed:
        yield testbed


def round_trips(testbed: NetnsTestbed, count: int) -> list[float]:
    """Times of short exchanges between client and servers, in seconds."""
    with testbed.servers_socket() as listener:
        listener.bind((testbed.host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        times = []
        with testbed.client_socket() as client:
            client.settimeout(60)
            client.connect((testbed.host, port))
            server, _ = listener.accept()
            with server:
                for _ in range(count):
                    began = time.monotonic()
                    client.sendall(b"ping")
                    server.sendall(server.recv(4))
                    client.recv(4)
                    times.append(time.monotonic() - began)
        return times


@needs_namespaces
def test_the_sides_reach_each_other_and_nobody_else(testbed: NetnsTestbed) -> None:
    assert len(round_trips(testbed, 3)) == 3
    with testbed.client_socket() as client, pytest.raises(OSError, match="unreachable"):
        client.connect(("192.0.2.1", 80))
    own = Path("/proc/self/ns/net").readlink()
    sides = {Path(f"/proc/{pid}/ns/net").readlink() for pid in testbed.network_pids}
    assert len(sides | {own}) == 3


@needs_namespaces
def test_commands_run_on_their_side(testbed: NetnsTestbed) -> None:
    def devices(entry: list[str]) -> str:
        command = [*entry, "cat", "/proc/self/net/dev"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "client0" in devices(testbed.client_entry())
    assert "servers0" in devices(testbed.servers_entry(testbed.user))


@needs_namespaces
def test_servers_run_as_their_user_on_their_side(testbed: NetnsTestbed) -> None:
    command = [*testbed.servers_entry(testbed.user), "id", "-u"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == (testbed.user.uid if testbed.user else os.geteuid())


@needs_namespaces
def test_a_delay_is_added_to_round_trips() -> None:
    with NetnsTestbed(settings(delay="30ms"), find_loadgen()) as testbed:
        assert min(round_trips(testbed, 5)) >= 0.03
        assert "+ 30 ms" in (testbed.describe().network or "")


@needs_namespaces
def test_what_gets_lost_is_sent_again() -> None:
    with NetnsTestbed(settings(loss="10%"), find_loadgen()) as testbed:
        assert len(round_trips(testbed, 50)) == 50
        _, client = testbed.network_pids
        words = [
            line.split()
            for line in Path(f"/proc/{client}/net/snmp").read_text().splitlines()
            if line.startswith("Tcp:")
        ]
        tcp = dict(zip(*words, strict=True))
    assert int(tcp["RetransSegs"]) > 0


@needs_namespaces
def test_a_full_link_carries_what_it_should() -> None:
    """Bytes that arrive in a time can be too few on a busy machine, never too many."""
    with NetnsTestbed(settings(link="50mbit"), find_loadgen()) as testbed:
        with testbed.servers_socket() as listener:
            listener.bind((testbed.host, 0))
            listener.listen()
            with testbed.client_socket() as client:
                client.settimeout(20)
                client.connect(listener.getsockname())
                server, _ = listener.accept()
                with server:
                    server.setblocking(False)
                    began, received = time.monotonic(), 0
                    while (took_s := time.monotonic() - began) < 0.5:
                        try:
                            server.send(b"x" * 65536)
                        except BlockingIOError:
                            received += len(client.recv(1 << 20))
        assert 0 < received <= 50e6 / 8 * took_s + 50e6 / 8 * 0.001 + 2 * 65536


@needs_namespaces
def test_kernel_parameters_are_taken_over(testbed: NetnsTestbed) -> None:
    path = "/proc/sys/net/ipv4/ip_local_port_range"
    command = [*testbed.client_entry(), "cat", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == Path(path).read_text().split()


@pytest.mark.parametrize("how", ["end", "error", "kill"])
@needs_namespaces
def test_nothing_is_left(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, DRIVER, how], stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout
        pids = [int(word) for word in driver.stdout.readline().split()]
        assert len(pids) >= 3
        if how == "kill":
            driver.send_signal(signal.SIGKILL)
        driver.wait(20)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@needs_ordinary_user
def test_an_ordinary_user_gets_a_user_namespace() -> None:
    """A child gives up root for good and works with what it imported before."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            sys.executable = SYSTEM_PYTHON
            code = 0 if _works_for_this_user() else 1
        except BaseException:  # noqa: BLE001 (pytest must not go on in the child)
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _works_for_this_user() -> bool:
    allowed = subprocess.run(["unshare", "-Urn", "true"], check=False).returncode == 0
    try:
        with NetnsTestbed(settings(link="100mbit", delay="5ms"), find_loadgen()) as testbed:
            command = [*testbed.servers_entry(), "id", "-u"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return int(done.stdout) == NOBODY and min(round_trips(testbed, 3)) >= 0.005
    except OperationError as error:
        return not allowed and "--testbed this-machine" in str(error)


def test_shaping_in_the_kernel() -> None:
    all_three = settings(link="100mbit", delay="20ms", loss="0.1%")
    netem, tbf, single = (" ".join(words) for words in shaping("end", all_three, netem=True))
    assert "root handle 1: netem limit 100000 delay 10000us loss 0.1%" in netem
    assert "parent 1:1 handle 10: tbf rate 100000000bit burst 12500b limit 12512500b" in tbf
    assert single.endswith("gso_max_segs 1")
    (tbf_only,) = shaping("end", settings(link="1mbit"), netem=False)
    assert "root handle 10: tbf rate 1000000bit burst 3028b" in " ".join(tbf_only)
    assert list(shaping("end", settings(delay="20ms"), netem=False)) == []


def test_what_isnt_allowed_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in that ends at once, as the real one does where namespaces are forbidden."""
    stand_in = tmp_path / "agent.py"
    stand_in.write_text(
        "import socket, sys\n"
        "for word in sys.argv[1:]:\n"
        '    socket.socket(fileno=int(word)).send(b\'{"error": "Operation not permitted"}\')\n'
    )
    monkeypatch.setattr("webdyno.host.netns_agent.__file__", str(stand_in))
    with pytest.raises(OperationError, match=r"Operation not permitted.*--testbed this-machine"):
        Sides([0])
