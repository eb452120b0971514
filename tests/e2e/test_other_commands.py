"""`webdyno up`, `stacks`, `doctor` and `load` as users type them."""

import json
import shutil
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from e2e.commands import left_behind, scratch, started_webdyno, webdyno, webdyno_here
from webdyno.config.catalogue import BUILT_IN


@pytest.mark.measures
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM])
def test_up_serves_until_it_is_reported_to_end(blow: signal.Signals, tmp_path: Path) -> None:
    with started_webdyno("up", "apache-worker", "--site=static", folder=tmp_path) as process:
        assert process.stdout
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 (our own server)
            assert response.read() == b"Hello, World!"
        load = webdyno("load", url, "-c", "4", "--time=300ms", "--format=json", folder=tmp_path)
        assert load.returncode == 0, load.stderr
        assert json.loads(load.stdout)["requests"]["completed"] > 0
        process.send_signal(blow)
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert left_behind(tmp_path) == []
    assert list(scratch(tmp_path).glob("webdyno-*/live/*")) == []


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = webdyno("up", "nginx", f"--port={port}", folder=tmp_path)
    assert done.returncode in {2, 3}
    assert str(port) in done.stderr
    assert "in use" in done.stderr
    assert left_behind(tmp_path) == []


def test_stacks_and_doctor_report_what_there_is(tmp_path: Path) -> None:
    assert "apache-prefork" in webdyno_here("list", "stacks", folder=tmp_path).stdout
    assert "keepalive_timeout_s" in webdyno_here("list", "nginx", folder=tmp_path).stdout
    served = webdyno_here("list", "wordpress", folder=tmp_path).stdout
    assert "nginx-phpfpm" in served
    assert "apache-prefork " not in served
    doctor = webdyno("doctor", folder=tmp_path)
    assert doctor.returncode == 0
    lines = doctor.stdout.splitlines()
    assert "this machine" in lines[0]
    assert "can" in lines[0]
    assert "servers are installed" in doctor.stdout
    assert "containers" in doctor.stdout
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("port", ["-1", "0", "65536"])
def test_a_port_that_is_none_is_reported(tmp_path: Path, port: str) -> None:
    done = webdyno_here("up", "nginx", f"--port={port}", folder=tmp_path)
    assert done.returncode == 2
    assert "port" in done.stderr
    assert "Traceback" not in done.stderr


def test_somebody_elses_catalogue_is_not_run_unasked(tmp_path: Path) -> None:
    service = tmp_path / "mine/services/nginx"
    shutil.copytree(BUILT_IN / "services/nginx", service)
    version = (
        "command = ['sh', '-c', 'echo nginx version: nginx/1; id >&2; touch /tmp/webdyno-was-run']"
    )
    text = (service / "service.toml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("command") and "-V" in line)
    (service / "service.toml").write_text(text.replace(line, version))
    done = webdyno("compare", "nginx", "nginx", "--catalog=mine", "--output=run", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "touch /tmp/webdyno-was-run" in done.stderr
    assert "add --yes" in done.stderr
    assert not Path("/tmp/webdyno-was-run").exists()  # noqa: S108
    assert not (tmp_path / "run").exists()
