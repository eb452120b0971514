"""Systems on another machine: here in a network namespace of the test's own, behind a link.

Webdyno runs in a second one at the other end, so that nothing reaches any other address.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.commands import FEW, PATIENCE_S, WEBDYNO, environment, left_behind, slots
from webdyno.core.errors import Exit
from webdyno.core.records import PreflightRecord
from webdyno.host.netns import Sides
from webdyno.measure.folder import RunFolder

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-Urn", "true"], check=False).returncode != 0,
    reason="no network namespaces here",
)
CLIENT, BLUE, GREEN = "192.0.2.1", "192.0.2.2", "192.0.2.3"
"""RFC 5737 sets these aside for examples: nobody's real addresses."""
PORT = 8080
NAME = "blue.test"
SERVER = """
import asyncio, ssl, sys

address, port, takes_s, *files = sys.argv[1:]


async def serve(reader, writer):
    try:
        while b"\\r\\n\\r\\n" in (await reader.readuntil(b"\\r\\n\\r\\n")):
            with open("heard", "a") as heard:
                heard.write(f"{address}\\n")
            await asyncio.sleep(float(takes_s))
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    tls = None
    if files:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*files)
    server = await asyncio.start_server(serve, address, int(port), ssl=tls)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Sides]:
    with Sides(sorted(os.sched_getaffinity(0))) as sides:
        ends = ("near0", "far0")
        sides.link.run(
            "ip", "link", "add", "name", ends[0], "type", "veth", "peer", "name", ends[1]
        )
        addresses = ([CLIENT], [BLUE, GREEN])
        for side, end, its in zip((sides.client, sides.servers), ends, addresses, strict=True):
            sides.link.run("ip", "link", "set", "dev", end, "netns", str(side.pid))
            side.run("ip", "link", "set", "dev", "lo", "up")
            for address in its:
                side.run("ip", "address", "add", f"{address}/24", "dev", end)
            side.run("ip", "link", "set", "dev", end, "up")
        yield sides


@contextmanager
def serving(network: Sides, folder: Path, address: str, *words: str) -> Iterator[str]:
    """Have a server listen there that takes so many seconds for each request."""
    (folder / "server.py").write_text(SERVER)
    with subprocess.Popen(
        [*network.servers.entry(), sys.executable, "server.py", address, str(PORT), *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield f"url:http{'s' * (len(words) > 1)}://{address}:{PORT}"
        finally:
            process.kill()


@pytest.fixture
def blue_and_green(network: Sides, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Blue answers in half of green's time."""
    with (
        serving(network, tmp_path, BLUE, "0.02") as blue,
        serving(network, tmp_path, GREEN, "0.04") as green,
    ):
        yield blue, green


def webdyno_there(
    network: Sides, *words: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command at the client's end of the link."""
    return subprocess.run(
        [*network.client.entry(), str(WEBDYNO), *words],
        cwd=folder,
        env=environment(folder) | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_who_is_not_vouched_for_hears_nothing(
    network: Sides, blue_and_green: tuple[str, str], tmp_path: Path
) -> None:
    done = webdyno_there(network, "compare", *blue_and_green, "--yes", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR, done.stderr
    assert f"  url:http://{BLUE}:{PORT} ({BLUE}:{PORT})\n" in done.stderr
    assert not (tmp_path / "heard").exists()


@pytest.mark.long
def test_two_take_turns_and_what_is_not_known_of_them_is_said(
    network: Sides, blue_and_green: tuple[str, str], tmp_path: Path
) -> None:
    words = ("compare", *blue_and_green, "--target-is-mine", *FEW, "--output=run")
    done = webdyno_there(network, *words, folder=tmp_path)
    assert done.returncode in {Exit.OK, Exit.INVALID}, done.stderr
    trip = "each latency has the network's round trip in it, "
    assert f"  url:http://{BLUE}:{PORT} ({BLUE}:{PORT}): {trip}" in done.stderr
    assert "; server CPU unknown; " in done.stdout
    assert "6 rounds each, no restarts" in done.stdout
    run = RunFolder.open(tmp_path / "run")
    assert any(it.load.requests.completed for it in slots(run))
    assert {it.servers.cpu_s for it in slots(run)} == {0.0}
    assert {it.readings.host.servers.total_s for it in slots(run) if it.readings} == {0.0}
    preflights = [it for it in run.records() if isinstance(it, PreflightRecord)]
    assert all(len(it.round_trips_s) == 2 for it in preflights)
    assert set((tmp_path / "heard").read_text().split()) == {BLUE, GREEN}
    assert "server.py" in " ".join(left_behind(tmp_path))  # it isn't webdyno's to stop
    resumed = webdyno_there(network, "resume", "run", "--time=1s", folder=tmp_path)
    assert resumed.returncode == Exit.USER_ERROR
    assert "add --target-is-mine" in resumed.stderr


@pytest.mark.measures
def test_the_verdict_is_right(
    network: Sides, blue_and_green: tuple[str, str], tmp_path: Path
) -> None:
    words = ("compare", *blue_and_green, "--target-is-mine", "--set=load.connections=8")
    done = webdyno_there(network, *words, "--time=20s", folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    headline = next(line for line in done.stdout.splitlines() if "is FASTER" in line)
    ratio = float(headline.partition(": ")[2].partition("×")[0])
    assert 1.6 < ratio < 2.1
    assert f"▲ {BLUE}:{PORT} is FASTER" in headline


def made_by(*words: str, folder: Path) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """An authority, and what it issued for blue: `blue.pem` with its key."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    made_by(
        *("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test"),
        folder=tmp_path,
    )
    made_by(
        *("req", "-x509", *key, "-keyout", "blue.key", "-out", "blue.pem", "-subj", "/CN=blue"),
        *("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", f"subjectAltName=DNS:{NAME}"),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        folder=tmp_path,
    )
    return tmp_path / "ca.pem"


def test_a_certificate_is_checked_before_anything_is_said(
    network: Sides, authority: Path, tmp_path: Path
) -> None:
    with serving(network, tmp_path, BLUE, "0", "blue.pem", "blue.key") as blue:
        words = ("up", blue, "--target-is-mine", "--set=load.protocol=https")
        trusted, by_name = {"SSL_CERT_FILE": str(authority)}, f"--host={NAME}"
        unknown = webdyno_there(network, *words, by_name, folder=tmp_path)
        assert unknown.returncode == Exit.FAILED, unknown.stderr
        assert "its certificate isn't valid: " in unknown.stderr
        assert "--set load.tls_verify=false" in unknown.stderr
        other = webdyno_there(network, *words, folder=tmp_path, **trusted)
        assert "its certificate isn't valid: it is for another name" in other.stderr
        assert not (tmp_path / "heard").exists()


@pytest.mark.long
@pytest.mark.parametrize("verified", [True, False])
def test_two_are_compared_over_tls(
    network: Sides, authority: Path, tmp_path: Path, *, verified: bool
) -> None:
    how = [f"--host={NAME}"] if verified else ["--set=load.tls_verify=false"]
    trusted = {"SSL_CERT_FILE": str(authority)} if verified else {}
    with serving(network, tmp_path, BLUE, "0", "blue.pem", "blue.key") as blue:
        words = ("compare", blue, blue, "--target-is-mine", "--set=load.protocol=https", *FEW)
        done = webdyno_there(network, *words, *how, "--output=run", folder=tmp_path, **trusted)
    assert done.returncode in {Exit.OK, Exit.INVALID}, done.stderr
    assert any(it.load.requests.completed for it in slots(RunFolder.open(tmp_path / "run")))
