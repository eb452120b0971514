"""`webdyno audit` as users type it: a real ab run, a pipe, files that are none."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import texts
from e2e.commands import WEBDYNO, environment, started_webdyno, webdyno, webdyno_here


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with started_webdyno("up", "nginx", "--site=static", folder=tmp_path) as process:
        assert process.stdout
        yield process.stdout.readline().split()[-1]
        process.terminate()
        process.communicate(timeout=30)


def ab(*arguments: str) -> str:
    done = subprocess.run(
        ["ab", *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def piped(text: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEBDYNO, "audit", "-", *arguments],
        input=text,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def audited(text: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "text").write_text(text)
    return webdyno_here("audit", "text", *arguments, folder=folder)


def test_a_clean_run_of_ab_has_nothing_serious(tmp_path: Path, url: str) -> None:
    done = piped(ab("-q", "-k", "-c", "4", "-n", "5000", url), folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Nothing serious" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_an_error_page_measured_by_ab_is_noticed(tmp_path: Path, url: str) -> None:
    text = ab("-q", "-c", "4", "-n", "500", f"{url.rstrip('/')}/missing")
    done = audited(text, "--format=json", folder=tmp_path)
    assert done.returncode == 1
    (warning,) = [each for each in json.loads(done.stdout)["warnings"] if each["rule"] == "non-2xx"]
    assert warning["severity"] == "serious"
    assert text.splitlines()[warning["line"] - 1].startswith("Non-2xx responses:")
    shown = audited(text, folder=tmp_path)
    assert "Can't be believed" in shown.stdout
    assert "404 page" in shown.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no output of a known load generator"),
        (b"just some words\n", "vegeta, wrk, wrk2 and zrk"),
        (b"$ ab -n 5000 -c 5 http://x/\n", "command in line 1 stands there without its output"),
        (
            b"\nrequests/s: 512\nmean latency: 3 ms\n",
            "lines 2 to 3, figures in a form that isn't known",
        ),
        (b"\x00\xff\xfe\x80" * 500, "no output of a known load generator"),
        (None, "no such file or directory"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "what.txt"
    if content is not None:
        file.write_bytes(content)
    done = webdyno_here("audit", str(file), folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"webdyno: {file}: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_that_ends_early_and_a_full_disk(tmp_path: Path) -> None:
    text = "ab -n 5 -c 5 http://x/\n" * 3000
    (tmp_path / "text").write_text(text)
    with started_webdyno("audit", "text", "--format=json", folder=tmp_path) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(timeout=30) == 1  # serious warnings, as without the pipe
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [WEBDYNO, "audit", tmp_path / "text"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("webdyno: the result could not be printed: No space left")


def test_what_is_left_unread_is_no_clean_bill(tmp_path: Path) -> None:
    text = (
        "Bombarding http://192.0.2.7/ for 10s using 5 connection(s)\nStatistics Avg Stdev Max\n"
        "  Reqs/sec  5000.00  10.00  5100.00\n  Latency  1.00ms  1.00ms  9.00ms\n"
        "    1xx - 0, 2xx - 50000, 3xx - 0, 4xx - 0, 5xx - 0\n    others - 0\n"
    )
    clean = audited(text, folder=tmp_path)
    assert (clean.returncode, "Nothing to object to." in clean.stdout) == (0, True)
    done = audited(text + "\nrequests/s: 512\nmean latency: 3 ms\n", folder=tmp_path)
    assert done.returncode == 2
    assert "Not read: lines 8 to 9" in done.stdout
    assert "Nothing to object to" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    table = "| a | rate |\n|---|---|\n| x | 5123.5 |\n| y | 6234.5 |\n"
    alone = audited(table, folder=tmp_path)
    assert (alone.returncode, "Not judged" in alone.stdout) == (2, True)


def test_files_without_an_end_are_refused(tmp_path: Path) -> None:
    done = webdyno("audit", "/dev/zero", folder=tmp_path)
    assert (done.returncode, "neither a file nor a pipe" in done.stderr) == (2, True)


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    done = webdyno_here("audit", str(tmp_path), folder=tmp_path)
    assert (done.returncode, "is a directory" in done.stderr) == (2, True)


def test_what_a_text_says_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    text = (
        "Server Software: \x1b[2J[bold]evil[/bold]\nDocument Length: 9 bytes\n"
        "Throughput: 5 [#/sec] (mean)\nComplete requests: 5\nDocument Path: /a\n"
    )
    other = text.replace("evil", "good").replace("9 bytes", "900 bytes")
    done = piped(text + other, folder=tmp_path)
    assert "\x1b" not in done.stdout
    assert "[bold]evil[/bold]" in done.stdout


def test_what_is_not_shown_is_listed_by_the_flag_that_is_named(tmp_path: Path) -> None:
    text = "\n".join(texts.ab(path=f"/{number}", non_2xx=9_000) for number in range(9))
    shown = piped(text, folder=tmp_path).stdout
    assert "… and 3 more (--format json lists them)" in shown
    listed = json.loads(piped(text, "--format", "json", folder=tmp_path).stdout)
    assert len([each for each in listed["warnings"] if each["rule"] == "non-2xx"]) == 9
