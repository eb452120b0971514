"""What a flow of five steps costs the client, next to five requests that take nothing from answers.

Both ask nginx for the same five pages. In the flow, one step's form gives a token by CSS and one
step's JSON an id; later steps send both. Rounds take turns; the cost is the engine's own CPU time
per request.
"""

import json
import statistics
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from rig import machine, programs
from rig.nginx import Nginx, running_nginx
from rig.options import count
from rig.process import BenchError, pinned
from rig.samples import median_interval
from rig.script import Script, progress

EXAMPLES = """\
  15 rounds of a second each (a minute)
    .venv/bin/python bench/flows.py
"""
GOAL = 1.3
CONNECTIONS = 16
FORM = """<!DOCTYPE html><html><head><title>Log in</title><meta charset="utf-8">
<link rel="stylesheet" href="/static/site.css"></head><body><nav><a href="/">Start</a></nav>
<form id="login" method="post"><input type="hidden" name="csrf" value="tQ8&amp;x4Zr+/9aLw==">
<label>Name <input name="name"></label><input type="submit"></form></body></html>
"""
ITEMS = json.dumps(
    {"page": 1, "items": [{"id": n, "title": f"Item {n}"} for n in range(4711, 4721)]}
)
PAGES = {"/form": FORM, "/items": ITEMS, "/item": ITEMS, "/cart": "in your cart", "/bye": "bye"}
CAPTURES = {
    "/form": {"csrf": {"css": "#login input[name=csrf]"}},
    "/items": {"id": {"json": "$.items[2].id"}},
}
SENT = {"/item": "id={{id}}", "/cart": "id={{id}}&csrf={{csrf}}", "/bye": "csrf={{csrf}}"}
FILLED = {"id": "4713", "csrf": "tQ8%26x4Zr%2B%2F9aLw%3D%3D"}


def requests(nginx: Nginx, *, is_flow: bool) -> Iterator[dict[str, Any]]:
    """Give the five requests; those that are no flow have their values written out."""
    for path in PAGES:
        query = SENT.get(path, "")
        if not is_flow:
            for name, value in FILLED.items():
                query = query.replace(f"{{{{{name}}}}}", value)
        url = nginx.url(f"{path}?{query}" if query else path)
        more = {"flow": "five", "capture": CAPTURES.get(path, {})} if is_flow else {}
        yield {"url": url, **more}


def cost_us(path: Path, cpu: int, file: Path, duration_s: float) -> float:
    """Give the engine's CPU time per request."""
    command = [str(path), "run", "--traffic", str(file), "--connections", str(CONNECTIONS)]
    command += ["--time", f"{duration_s:g}s", "--threads", "1", "--json"]
    done = subprocess.run(pinned(command, [cpu]), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise BenchError(f"loadgen failed: {done.stderr}")
    reported = json.loads(done.stdout)
    used_s = reported["client"]["cpu_user_s"] + reported["client"]["cpu_sys_s"]
    return float(1e6 * used_s / reported["requests"]["completed"])


def measure(options: Namespace, console: Console) -> None:
    """Run both in turns, and print the ratio."""
    cores = machine.split_this_machine()
    path = programs.build("loadgen")["loadgen"]
    console.print(machine.describe())
    costs: dict[bool, list[float]] = {False: [], True: []}
    with running_nginx(cores.server, pages=PAGES) as nginx, TemporaryDirectory() as name:
        files = {}
        for is_flow in costs:
            files[is_flow] = Path(name) / f"{is_flow}.jsonl"
            lines = map(json.dumps, requests(nginx, is_flow=is_flow))
            files[is_flow].write_text("\n".join(lines))
        for number in range(options.rounds):
            progress.print(f"round {number + 1} of {options.rounds}")
            for is_flow in (False, True) if number % 2 else (True, False):
                cost = cost_us(path, cores.client, files[is_flow], options.duration)
                costs[is_flow].append(cost)
    ratios = [flow / plain for plain, flow in zip(costs[False], costs[True], strict=True)]
    low, high, confidence = median_interval(ratios)
    plain, flow = (statistics.median(costs[is_flow]) for is_flow in (False, True))
    word = "reached" if high <= GOAL else "missed" if low > GOAL else "open"
    console.print(
        f"five plain requests {plain:.2f} µs each, a step of the flow {flow:.2f} µs: "
        f"{statistics.median(ratios):.2f} × ({low:.2f} to {high:.2f}, {confidence:.0%}); "
        f"goal: at most {GOAL} ×: {word}"
    )


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("--rounds", type=count, default=15, help="of both (15)")
    made.add_argument("--duration", type=float, default=1.0, help="of a run in seconds (1)")
    return made


if __name__ == "__main__":
    sys.exit(script().run(measure))
