"""Applications of Deno."""

import re
from pathlib import Path

from webdyno.core.tables import json_table, read_text, table
from webdyno.systems.layouts.app import FoundApp, first_of

DENO_TASKS = ("preview", "serve", "start", "prod", "production")
DENO_WATCHES = re.compile(r"--watch|\bdev\b")
DENO_MAINS = ("main.ts", "server.ts", "mod.ts", "index.ts", "src/main.ts", "main.js", "server.js")
DENO_SERVES = re.compile(r"^export default\b", re.MULTILINE)
DENO_ADDRESS = "DENO_SERVE_ADDRESS=tcp:127.0.0.1:$PORT"
"""Where Deno.serve listens, unless the source says so."""


def find_deno(folder: Path) -> FoundApp | None:
    """Start the task that doesn't watch, else the main module."""
    file = first_of(folder, "deno.json", "deno.jsonc")
    of_node = table(json_table(read_text(folder / "package.json") or ""), "scripts")
    if file is None or {"start", "start:prod"} & of_node.keys():  # that is for Node before all
        return None
    text = re.sub(r"^[ \t]*//.*$", "", read_text(folder / file) or "", flags=re.MULTILINE)
    tasks = table(json_table(text), "tasks")
    build = "deno task build" if "build" in tasks else None
    for task in DENO_TASKS:
        if task in tasks and not DENO_WATCHES.search(str(tasks[task])):
            return FoundApp(file, f"{DENO_ADDRESS} deno task {task}", build, heeds_port=True)
    main = first_of(folder, *DENO_MAINS)
    if main is None:
        return None
    if DENO_SERVES.search(read_text(folder / main) or ""):
        start = f"deno serve --allow-all --host 127.0.0.1 --port $PORT {main}"
    else:
        start = f"{DENO_ADDRESS} deno run --allow-all {main}"
    return FoundApp(file, start, f"deno install --entrypoint {main}", heeds_port=True)
