"""The peers benchmark as a whole, on real programs, in short."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "bench"


def run(*arguments: str, script: str = "peers.py") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True, timeout=300
    )


@pytest.mark.long
def test_one_short_round(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    done = run(
        *("--cases", "small", "--rounds", "1", "--duration", "0.3"),
        *("--peers", "loadgen,wrk,wrk2", "--json", str(file)),
    )
    assert done.returncode == 0, done.stderr
    assert "goal: loadgen at most 0.80 x wrk" in done.stdout
    assert "wrk2" in done.stdout, "what was not run is named"
    head, *samples = map(json.loads, file.read_text().splitlines())
    assert "machine" in head
    assert {each["client"] for each in samples} == {"loadgen", "wrk"}
    assert all(each["problem"] is None and each["completed"] > 0 for each in samples)


@pytest.mark.long
def test_one_short_round_of_http2_over_tls(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    done = run(
        *("--tls", "--cases", "small,http2", "--rounds", "1", "--duration", "1"),
        *("--peers", "loadgen,wrk,h2load", "--json", str(file)),
    )
    assert done.returncode == 0, done.stderr
    assert "goal" not in done.stdout, "goals are for loads in clear"
    _, *samples = map(json.loads, file.read_text().splitlines())
    assert all(each["problem"] is None and each["completed"] > 0 for each in samples)
    ran = {(each["case"], each["client"]) for each in samples}
    small = {("small", name) for name in ("loadgen", "wrk", "h2load")}
    assert ran == small | {("http2", "loadgen"), ("http2", "h2load")}


@pytest.mark.long
def test_one_short_round_over_http3() -> None:
    done = run("--rounds", "1", "--duration", "0.5", script="http3.py")
    assert done.returncode == 0, done.stderr
    assert "loadgen" in done.stdout
    assert "floor" in done.stdout


@pytest.mark.parametrize("script", ["accuracy.py", "connections.py", "http3.py", "peers.py"])
def test_help_has_examples(script: str) -> None:
    assert f"bench/{script}" in run("--help", script=script).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cases", "smal"], "unknown: smal; there are small, 100kb"),
        (["--peers", "loadgen,k6"], "unknown: k6; there are loadgen"),
        (["--rounds", "0"], "'0' is not a whole number from 1"),
        (["--duration", "-1"], "'-1' is not a number of seconds"),
        (["--duration", "nan"], "'nan' is not a number of seconds"),
    ],
)
def test_mistakes_are_refused(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
