"""Logs as files: packed, several, unreadable; and what is noted of those who asked."""

import bz2
import gzip
import io
import lzma
import os
from pathlib import Path

import pytest

from traffic.made import line, read
from webdyno.core.errors import UserError
from webdyno.traffic.log import Log, LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs


def test_a_proxy_s_clients_are_those_that_it_names(tmp_path: Path) -> None:
    text = "".join(
        line().replace('5.0"\n', f'5.0" "192.0.2.{client}, 10.0.0.9"\n') for client in (1, 2, 1)
    )
    log = read(tmp_path / "a.log", text)
    assert log.client_id.tolist() == [0, 1, 0]
    assert log.notes == ["3 requests came through a proxy: X-Forwarded-For names the client"]


def test_clients_that_cannot_be_reported_apart_are_a_note(tmp_path: Path) -> None:
    agents = [line().replace("Mozilla/5.0", f"Mozilla/{number % 3}") for number in range(30)]
    (note,) = read(tmp_path / "a.log", "".join(agents)).notes
    assert note.startswith("all 30 requests come from one address, so sessions")
    (note,) = read(
        tmp_path / "a.log", "".join(line(client=f"10.0.0.{it}") for it in range(30))
    ).notes
    assert note.startswith("each of the 30 requests has a client of its own")
    few = "".join(line(client=f"10.0.0.{it % 3}") for it in range(30))
    assert not read(tmp_path / "a.log", few).notes


def test_health_checks_are_a_note(tmp_path: Path) -> None:
    text = line() + line("/healthz", client="10.0.0.2").replace("Mozilla/5.0", "kube-probe/1.34")
    assert read(tmp_path / "a.log", text).notes == [
        "1 request is a health check, which no visitor makes"
    ]


@pytest.mark.parametrize("status", [408, 444, 460, 499, 502, 0])
def test_what_nobody_answered_has_no_right_answer(tmp_path: Path, status: int) -> None:
    log = read(
        tmp_path / "a.log", line() + line("/slow", status=status).replace(" 0 100", " 000 100")
    )
    assert [it.path for it in log.asked] == ["/"]
    assert log.excluded == {"answered with 5xx, or not at all": 1}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ('INFO:     127.0.0.1:5 - "GET / HTTP/1.1" 200 OK', "uvicorn's log without times"),
        ("2026/11/22 10:15:03 [error] 29#29: *1 open() failed", "nginx's error log"),
        ("[Sun Nov 22 10:15:03.123 2026] [core:error] [pid 5] x", "Apache's error log"),
        ("2026-11-22 10:15:03 10.0.0.1 GET /a - 192.0.2.7 200 12", "without its line #Fields:"),
        ("h haproxy[5]: Connect from 192.0.2.7:5 to 10.0.0.1:80 (www/TCP)", "option httplog"),
        ("\x1b[0mGET / \x1b[32m200\x1b[0m 1.234 ms - 12", "morgan('combined')"),
        ('Started GET "/" for 127.0.0.1 at 2026-11-22 10:15:03 +0000', "log of Rails"),
        ("nonsense", "Read are common and combined format"),
    ],
)
def test_a_log_that_cannot_be_read_is_named(tmp_path: Path, text: str, reported: str) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path / "a.log", text)
    assert reported in str(refused.value)


@pytest.mark.parametrize("begins", [b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"LPKSHHRH", b"PAR1"])
def test_what_another_program_unpacks_is_named_with_its_command(
    tmp_path: Path, begins: bytes
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(begins + b"\0" * 100)
    with pytest.raises(UserError, match=r"a\.log: is .*; this makes it readable: "):
        _logs(path)


def test_several_logs_and_standard_input_are_one_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, packed = tmp_path / "a.log", tmp_path / "a.log.1"
    later.write_text(line("/later", time_s=1_763_800_009))
    packed.write_bytes(gzip.compress(line("/first").encode()))
    text = io.TextIOWrapper(io.BytesIO((line("/piped", time_s=1_763_800_005) + "bad\n").encode()))
    monkeypatch.setattr("sys.stdin", text)
    log = _logs(later, packed, Path("-"))
    assert [log.asked[number].path for number in log.asked_id] == ["/first", "/piped", "/later"]
    assert log.name == "3 logs"
    assert [(bad.file, bad.line) for bad in log.bad] == [("standard input", 2)]


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_logs_are_known_by_what_they_begin_with(tmp_path: Path, packed: object) -> None:
    assert callable(packed)
    path = tmp_path / "a.log"
    path.write_bytes(packed((line() * 3).encode()))
    assert len(_logs(path)) == 3


def test_what_is_no_regular_file_is_refused() -> None:
    with pytest.raises(UserError, match="/dev/zero: is no regular file; `webdyno traffic -`"):
        _logs(Path("/dev/zero"))


def test_a_log_that_begins_with_rubbish_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.traffic.read.MOST_USELESS_LINES", 1_000)
    monkeypatch.setattr("webdyno.traffic.read.MOST_USELESS_BYTES", 200_000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\n" * 5_000))
    with pytest.raises(UserError, match=r"a\.gz: its first 1,000 lines hold no request"):
        _logs(path)
    path.write_bytes(gzip.compress(b"\0" * 5_000_000))
    with pytest.raises(UserError, match=r"a\.gz: a line is longer than"):
        _logs(path)


def test_who_waits_is_shown_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.traffic.read.LINES_BETWEEN", 2)
    path, shown = tmp_path / "a.log", list[tuple[str, int, int]]()
    path.write_text(line() * 5)
    read_logs(
        [path], LogSelection(), Privacy("drop", "hash"), lambda *how_far: shown.append(how_far)
    )
    assert shown == [(str(path), 2, 2), (str(path), 4, 4)]


def _logs(*paths: Path) -> Log:
    return read_logs(list(paths), LogSelection(), Privacy("drop", "hash"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give links away")
def test_a_link_of_another_user_leads_to_no_log(tmp_path: Path) -> None:
    (tmp_path / "private.log").write_text(line())
    (link := tmp_path / "a.log").symlink_to("private.log")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(UserError, match="a link of user 12345's to private"):
        read_logs([link], LogSelection(), Privacy("drop", "hash"))
