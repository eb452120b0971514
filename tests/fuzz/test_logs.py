"""Damaged logs and HAR files: each is read or refused, and every line of it is counted."""

import json
from contextlib import suppress
from pathlib import Path
from random import Random

from fuzz.driver import each_case, no_hang, sweep
from traffic.test_formats import (
    ALB,
    CADDY,
    CLOUDFRONT,
    CLOUDFRONT_FIELDS,
    COMBINED,
    ENVOY,
    HAPROXY,
    IIS,
    ISTIO,
    MAIN_EXT,
    TRAEFIK,
)
from webdyno.core.errors import UserError
from webdyno.traffic import Manner, traffic_of
from webdyno.traffic.log import LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs

LINES = [
    *(COMBINED, f"{COMBINED} {MAIN_EXT}", HAPROXY, ALB, ENVOY, ISTIO, IIS, CLOUDFRONT_FIELDS),
    *(CLOUDFRONT.format("Hit"), json.dumps(CADDY), json.dumps(TRAEFIK)),
    json.dumps({"log": f"{COMBINED}\n", "stream": "stdout", "time": "2026-11-22T10:15:03Z"}),
]
HAR = {
    "log": {
        "entries": [
            {
                "startedDateTime": "2026-11-22T10:15:03.131Z",
                "connection": "443",
                "request": {
                    "method": method,
                    "url": f"https://shop.example/{method}?a=b",
                    "headers": [{"name": "accept", "value": "*/*"}],
                    "postData": {"mimeType": "text/plain", "text": "x"},
                },
                "response": {"status": 200, "bodySize": 7, "content": {"mimeType": "text/html"}},
                "timings": {"wait": 31.0},
            }
            for method in ("GET", "POST", "OPTIONS")
        ]
    }
}
PIECES = [
    *(b"\0", b"\n", b"\r\n", b'"', b"\\", b"[", b"]", b"{", b"}", b" ", b"\t", b"-", b"\xff", b"#"),
    *(b"9" * 30, b"-1", b"1e400", b"null", b"[]", b"{}", b"\\ud800", b"NaN", b"::1", b"999.1.1.1"),
    *(b"#Fields: date time\n", b"[22/Nov/2026:10:15:03 +0000]", b"\x1f\x8b", b"\xef\xbb\xbf"),
]


def damaged(random: Random, content: bytes) -> bytes:
    """Cut, repeat, and put pieces where they don't belong."""
    for _ in range(random.randint(1, 6)):
        at, to = sorted(random.randint(0, len(content)) for _ in range(2))
        to = min(to, at + random.choice([0, 1, 4, 40]))
        content = content[:at] + random.choice([*PIECES, content[at:to] * 2, b""]) + content[to:]
    return content


@sweep(quick=60, whole=500)
def test_damaged_logs_are_read_or_refused(tmp_path: Path, seed: int, cases: range) -> None:
    def one(case: int) -> None:
        random = Random(f"{seed}-{case}")
        if case % 4 == 0:
            content = json.dumps(HAR).encode()
        else:
            lines = random.choices(LINES, k=random.randint(1, 8))
            content = "\n".join(lines).encode() + b"\n"
        path = tmp_path / f"{case}.log"
        path.write_bytes(damaged(random, content))
        with no_hang(), suppress(UserError):
            log = read_logs([path], LogSelection(("GET", "POST")), Privacy("keep", "hash"))
            assert len(log)
            assert traffic_of(log, Manner(), twin="pages").requests
            if case % 4:
                excluded = sum(log.excluded.values())
                assert len(log) + excluded <= log.lines
                assert len(log) + excluded >= log.lines - not_counted(path)

    each_case(seed, cases, one)


def not_counted(path: Path) -> int:
    """Blank lines and comments."""
    lines = path.read_bytes().split(b"\n")
    return sum(not it.strip() or it.lstrip(b"\xef\xbb\xbf").startswith(b"#") for it in lines)
