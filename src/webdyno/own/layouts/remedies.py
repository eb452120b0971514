"""What an application lacks on this machine, and what to change where it doesn't start."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import sources
from webdyno.own.layouts.variables import fixed_address

VARIABLE = "[A-Z][A-Z0-9]*_[A-Z0-9_]+"
WANTED = "it wants a variable: --env {what}=VALUE"
LACKED = "required|missing|not set|not found|undefined|must be set"
BY_WORDS = {
    r"No module named ['\"](?P<what>[\w.]+)": "{what} is in no file of requirements: add it there",
    r"Cannot find (?:module|package) ['\"](?P<what>[^'\"]+)": (
        "{what} isn't there: build has to install it, or to make it"
    ),
    r"KeyError: ['\"](?P<what>[A-Z][A-Z0-9_]+)['\"]": WANTED,
    rf"(?:Set the|{LACKED})\W[^\n]{{0,40}}?\b(?P<what>{VARIABLE})\b": WANTED,
    rf"\b(?P<what>{VARIABLE})\b[^\n]{{0,30}}?(?:{LACKED})": WANTED,
    r"(?i)connection refused|could not connect to server|ECONNREFUSED|can't connect to .*mysql": (
        "what it needs isn't up, a database perhaps: services and prepare start one with it "
        "(docs/how-to/compare-my-app.md#databases)"
    ),
    r"(?:sh|env): (?:\d+: )?(?P<what>[\w./-]+): not found": "{what} isn't installed here",
}
LISTEN_LINES = {
    ".go": 'http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), handler)',
    ".rs": 'TcpListener::bind(format!("127.0.0.1:{}", std::env::var("PORT")?))',
    ".js": 'app.listen(process.env.PORT, "127.0.0.1")',
    ".ts": 'app.listen(Number(process.env.PORT), "127.0.0.1")',
    ".mjs": 'app.listen(process.env.PORT, "127.0.0.1")',
    ".py": 'app.run(host="127.0.0.1", port=int(os.environ["PORT"]))',
    ".rb": 'set :port, ENV["PORT"]',
    ".java": 'Integer.parseInt(System.getenv("PORT"))',
}
"""By language: a line that listens where it has to."""
ELSEWHERE = "listens on "

BETWEEN = re.compile(r"&&|\|\||[;|]")
ASSIGNMENT = re.compile(r"\w+=(?:\$\(\([^)]*\)\)|\$\([^)]*\)|\S*)\s+")
LEADING = {"exec", "env"}
"""Words before the program."""
OF_SHELL = {"cd", "export", "test", "true", ":", "["}


def remedies(output: str, app: FoundApp, folder: Path) -> Iterator[str]:
    """Give what to change, one line each."""
    for pattern, fix in BY_WORDS.items():
        if match := re.search(pattern, output):
            yield fix.format(what=match.groupdict().get("what"))
    inside = folder / app.dir
    if ELSEWHERE in output and app.start:
        address = fixed_address(inside)
        suffixes = [path.suffix for path in sources(inside)]
        usual = max(set(suffixes), key=suffixes.count, default="")
        if line := LISTEN_LINES.get(usual):
            where = f" in the place of {address}" if address else ""
            yield f"have it listen on $PORT{where}: {line}"
        if any((inside / name).is_file() for name in ("Dockerfile", "Containerfile")):
            yield "a container has its ports to itself: --image ."


def missing_tools(app: FoundApp) -> list[str]:
    """Name the programs that aren't here; those of the application's own folder are made."""
    lines = filter(None, (app.build, app.setup, app.prepare, app.start))
    named = dict.fromkeys(program for line in lines for program in _programs(line))
    if app.image:
        named["podman"] = None
    return [program for program in named if "/" not in program and not shutil.which(program)]


def _programs(line: str) -> Iterator[str]:
    """Give the programs that a line of shell calls."""
    for part in BETWEEN.split(line):
        words = ASSIGNMENT.sub("", part.strip()).split()
        while words and words[0] in LEADING:
            words = ASSIGNMENT.sub("", " ".join(words[1:])).split()
        if words and words[0] not in OF_SHELL:
            yield words[0]
