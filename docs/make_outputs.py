"""Puts output of commands into the README and the pages of docs, each in one wording.

    .venv/bin/python docs/make_outputs.py              # pages from what is recorded
    .venv/bin/python docs/make_outputs.py compare      # runs the command again (minutes) first

A place in a page, `<!-- output NAME 2-4 -->`, names a recording and its paragraphs (else all). A
file of docs/outputs/ is a command, and the part of what it printed that pages show; `app` runs in
the folder that `examples/flask.sh` makes, after `webdyno init`. Other names are snapshots of
simulated runs in tests/report/snapshots/. A test finds nothing to change.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent
SNAPSHOTS = DOCS.parent / "tests/report/snapshots"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
PLACE = re.compile(
    r"<!-- output (?P<name>[\w-]+)(?: (?P<first>\d+)-(?P<last>\d+))? -->\n.*?<!-- end -->",
    re.DOTALL,
)
SHOWN = re.compile(r"^[▲▼=?✕] .*?(?=\n+(?:Report|Next) |\Z)", re.MULTILINE | re.DOTALL)


def recorded(name: str) -> Path:
    """Where the output of this name is kept."""
    return DOCS / f"outputs/{name}.txt"


def output(name: str) -> str:
    """What is recorded by this name, without its command."""
    if recorded(name).exists():
        return recorded(name).read_text(encoding="utf-8").partition("\n")[2]
    return (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")


def with_outputs(page: str) -> str:
    """Return a page with each of its outputs as it is recorded."""

    def fenced(place: re.Match[str]) -> str:
        begin = place[0].partition("\n")[0]
        shown = output(place["name"]).strip("\n").split("\n\n")
        if place["first"]:
            shown = shown[int(place["first"]) - 1 : int(place["last"])]
        text = "\n".join(line.rstrip() for line in "\n\n".join(shown).splitlines())
        return f"{begin}\n```\n{text}\n```\n<!-- end -->"

    return PLACE.sub(fenced, page)


def record(name: str) -> None:
    """Run a recorded command again, and keep what it prints from the verdict on."""
    file = recorded(name)
    command = file.read_text(encoding="utf-8").partition("\n")[0]
    ran = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, check=True)
    shown = SHOWN.search(ran.stdout)
    if shown is None:
        raise SystemExit(f"{command}: no verdict was printed")
    lines = [line.rstrip() for line in shown[0].rstrip().splitlines()]
    file.write_text("\n".join([command, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        record(asked)
    for it in PAGES:
        it.write_text(with_outputs(it.read_text(encoding="utf-8")), encoding="utf-8")
