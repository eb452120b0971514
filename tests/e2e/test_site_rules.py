"""A program that breaks a rule of its site is refused before anything is measured."""

import sys
from pathlib import Path

import pytest

from e2e.commands import FEW, webdyno
from webdyno.core.errors import Exit

PROGRAM = """
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = json.dumps({"message": "Hello, World!", **json.loads(sys.argv[2])}).encode()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        if "--undated" not in sys.argv:
            self.send_header("Date", self.date_time_string())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def refused(folder: Path, cheat: str) -> str:
    (folder / "program.py").write_text(PROGRAM)
    honest = f"cmd:{sys.executable} program.py $PORT '{{}}'"
    systems = (f"cheat=cmd:{sys.executable} program.py $PORT {cheat}", f"honest={honest}")
    done = webdyno("compare", *systems, "--site", "json", *FEW, "--output=run", folder=folder)
    assert done.returncode == Exit.INVALID, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_another_object(tmp_path: Path) -> None:
    reported = refused(tmp_path, """'{"more": 1}'""")
    assert "cheat breaks a rule of site json: GET /json should give" in " ".join(reported.split())


def test_a_response_without_a_date(tmp_path: Path) -> None:
    reported = refused(tmp_path, "'{}' --undated")
    assert "answered /json without the right header Date: there is none" in " ".join(
        reported.split()
    )


@pytest.mark.long
def test_a_ranking_goes_on_without_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    program = f"cmd:{sys.executable} program.py $PORT"
    systems = (
        f"one={program} '{{}}'",
        f"cheat={program} '{{\"more\": 1}}'",
        f"two={program} '{{}} '",
    )
    words = ("compare", *systems, "--site", "json", *FEW, "--output=run")
    done = webdyno(*words, folder=tmp_path)
    assert "cheat" in done.stderr
    assert "the run continues without it" in " ".join(done.stderr.split())
    assert "RANKING" in done.stdout
