"""WebSocket servers in a run, and one that is loaded as it is."""

import sys
from pathlib import Path

import pytest

from e2e.commands import left_behind, run_rounds, webdyno_here
from variants import further
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

SERVER = """
import base64, contextlib, hashlib, os, socketserver, sys

SAID = sys.argv[1].encode()
everybody = []

class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        head = {}
        while (line := self.rfile.readline().decode().strip()):
            name, _, value = line.partition(": ")
            head[name.lower()] = value
        if "sec-websocket-key" not in head:
            self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
            return
        guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        sha1 = hashlib.sha1((head["sec-websocket-key"] + guid).encode()).digest()
        accept = base64.b64encode(sha1).decode()
        self.wfile.write(
            b"HTTP/1.1 101 X\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
            + f"Sec-WebSocket-Accept: {accept}\\r\\n\\r\\n".encode()
        )
        everybody.append(self)
        while len(start := self.rfile.read(2)) == 2 and start[0] in (0x81, 0x82, 0x89):
            key = self.rfile.read(4)
            self.rfile.read(start[1] & 0x7F)
            if start[0] == 0x89:
                self.wfile.write(bytes([0x8A, 0]))
                continue
            for each in list(everybody) if SAID == b"to all" else [self]:
                with contextlib.suppress(OSError, ValueError):  # it is gone
                    each.wfile.write(bytes([start[0], len(SAID)]) + SAID)
    def finish(self):
        if self in everybody:
            everybody.remove(self)
        super().finish()

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

Server((os.environ["HOST"], int(os.environ["PORT"])), Echo).serve_forever()
"""
EXPERIMENT = """
title = "WebSocket"
question = "Which server answers more messages?"
site = "own"
load = {{ connections = 2, count = 60 }}
measure = {{ slot_s = 10.0, warmup_s = 0.0, slots_per_variant = 2 }}
[[requests]]
path = "/chat"
{message}
[variants.new]
stack = "cmd:{python} server.py {new}"
[variants.old]
stack = "cmd:{python} server.py {old}"
"""


def records_of(
    home: Path, message: str, old: str = "hello", *set_: str, new: str = "hello"
) -> list[object]:
    (home / "server.py").write_text(SERVER)
    experiment = EXPERIMENT.format(python=sys.executable, message=message, new=new, old=old)
    (home / "chat.toml").write_text(experiment)
    run_rounds(1, "run", "chat.toml", "--yes", *set_, folder=home)
    return list(RunFolder.open(home / "run").records())


@pytest.mark.parametrize(
    "message", ["message = 'hi'\ncontains = 'hello'", further("message_base64 = '/w=='")]
)
def test_messages_are_compared(home: Path, message: str) -> None:
    records = records_of(home, message)
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    for variant, (response,) in preflight.responses.items():
        assert (response.status, response.body_start) == (101, "hello"), variant
        assert response.has_right_status
    slots = [it for it in records if isinstance(it, SlotRecord)]
    assert {it.variant for it in slots} == {"new", "old"}
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.variant, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.variant
        assert slot.load.bytes.body == 60 * len("hello")
    assert left_behind(home) == []


def test_who_broadcasts_is_compared_by_what_all_receive(home: Path) -> None:
    records = records_of(
        home, "message = 'hi'", "'to all'", "--set", "load.broadcast=true", new="'to all'"
    )
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert {each.body_start for (each,) in preflight.responses.values()} == {"to all"}
    for slot in (it for it in records if isinstance(it, SlotRecord)):
        assert slot.load.failures.total == 0, (slot.variant, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.variant
        assert (slot.load.connections.opened or 0) in {0, 3}
    assert left_behind(home) == []


def test_other_messages_are_seen(home: Path) -> None:
    records = records_of(home, "message = 'hi'", old="other")
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    (response,) = preflight.responses["old"]
    assert response.unlike


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("message = 'a'\nmethod = 'POST'", "there is no method"),
        ("message = 'a'\nbody = 'b'", "there is no body"),
        ("message = 'a'\nmessage_base64 = 'YQ=='", "are both the message"),
        ("message = 'a'\nflow = 'b'", "there is no flow"),
        ("message = 'a'\n[[requests]]\npath = '/'", "all messages of a WebSocket"),
        ("message_base64 = '#'", "no base64"),
    ],
)
def test_what_does_not_go_with_messages_is_refused(home: Path, more: str, says: str) -> None:
    experiment = EXPERIMENT.format(python=sys.executable, message=more, new="x", old="x")
    (home / "chat.toml").write_text(experiment)
    refused = webdyno_here("run", "chat.toml", folder=home)
    assert refused.returncode == 2
    assert says in " ".join(refused.stderr.split())
