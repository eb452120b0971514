"""Applications of Deno."""

import json
import re
from pathlib import Path
from typing import Any

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import first_of, read_text, table

TASKS = ("preview", "serve", "start", "prod", "production")
DEVELOPS = re.compile(r"--watch|\bdev\b")
MAINS = ("main.ts", "server.ts", "mod.ts", "index.ts", "src/main.ts", "main.js", "server.js")
DEFAULT = re.compile(r"^export default\b", re.MULTILINE)
ADDRESS = "DENO_SERVE_ADDRESS=tcp:127.0.0.1:$PORT"
"""Where Deno.serve listens, unless the source says so."""


def find_in(folder: Path) -> FoundApp | None:
    """Start the task that doesn't watch, else the main module."""
    file = first_of(folder, "deno.json", "deno.jsonc")
    if file is None:
        return None
    text = re.sub(r"^\s*//.*$", "", read_text(folder / file) or "", flags=re.MULTILINE)
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        data = {}
    tasks = table(data, "tasks")
    task = next(
        (task for task in TASKS if task in tasks and not DEVELOPS.search(str(tasks[task]))), None
    )
    build = "deno task build" if "build" in tasks else None
    if task:
        return FoundApp(file, f"{ADDRESS} deno task {task}", build, heeds_port=True)
    main = first_of(folder, *MAINS)
    if main is None:
        return None
    if DEFAULT.search(read_text(folder / main) or ""):
        start = f"deno serve --allow-all --host 127.0.0.1 --port $PORT {main}"
    else:
        start = f"{ADDRESS} deno run --allow-all {main}"
    return FoundApp(file, start, f"deno install --entrypoint {main}", heeds_port=True)
