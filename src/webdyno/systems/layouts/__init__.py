"""Finds out from a folder's files how the application in it is built, started and asked.

It says what an application lacks on this machine, too, and what to change where it doesn't start.
Each way in which people lay one out has a function that reads its files, and a line of LAYOUTS.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.systems.layouts.app import FoundApp, Layout, is_of_interest, sources
from webdyno.systems.layouts.compiled import find_dotnet, find_elixir, find_go, find_jvm, find_rust
from webdyno.systems.layouts.node import find_deno, find_node
from webdyno.systems.layouts.php_and_ruby import find_php, find_ruby
from webdyno.systems.layouts.python import find_python
from webdyno.systems.layouts.recipes import (
    find_compose,
    find_dockerfile,
    find_nginx,
    find_pages,
    find_procfile,
)
from webdyno.systems.layouts.variables import (
    fixed_address,
    with_port,
    with_services,
    with_values_for_secrets,
)

LAYOUTS: Sequence[Layout] = (
    Layout("Procfile", find_procfile),
    Layout("pyproject.toml, requirements.txt, Pipfile", find_python),
    Layout("config.ru", find_ruby),
    Layout("composer.json, index.php", find_php),
    Layout("mix.exs", find_elixir),
    Layout("go.mod", find_go),
    Layout("Cargo.toml", find_rust),
    Layout("pom.xml, build.gradle", find_jvm),
    Layout("*.csproj", find_dotnet),
    Layout("deno.json", find_deno),
    Layout("package.json", find_node),
    Layout("Dockerfile", find_dockerfile),
    Layout("Compose files", find_compose),
    Layout("nginx.conf", find_nginx),
    Layout("index.html", find_pages),
)
"""The first that says how to start is taken: what was written for that before what can be guessed,
languages that serve before Node, which often only builds their pages."""
MOST_FOLDERS = 200
DEEPEST = 2
PARTS = "there are several applications"
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


def looked_for() -> str:
    """Name the files that applications are known by."""
    return ", ".join(layout.files for layout in LAYOUTS)


def find_app(folder: Path) -> FoundApp | None:
    """Look at a folder, then at those in it; None where nothing is known to serve HTTP."""
    best = _best_in(folder)
    if best and (best.is_whole or best.choices):
        return best
    inside = dict(_whole_below(folder))
    programs = {name: app for name, app in inside.items() if app.start}
    apps = {name: replace(app, dir=name) for name, app in (programs or inside).items()}
    if not apps:
        return best
    if len(apps) > 1:
        return FoundApp("its folders", several=PARTS, choices=apps)
    name, app = next(iter(apps.items()))
    return replace(app, by=f"{name}/{app.by}")


def _best_in(folder: Path) -> FoundApp | None:
    apps = list(filter(None, (layout.find_in(folder) for layout in LAYOUTS)))
    clear = [app for app in apps if app.is_whole or app.choices]
    first = next(iter(clear or apps), None)
    return first and _with_variables(first, folder)


def _with_variables(app: FoundApp, folder: Path) -> FoundApp:
    """Add what holds for every layout: its port, the databases behind it, and its secrets."""
    choices = {name: _with_variables(choice, folder) for name, choice in app.choices.items()}
    whole = with_values_for_secrets(with_services(with_port(app, folder), folder), folder)
    return replace(whole, choices=choices)


def _whole_below(folder: Path) -> Iterator[tuple[str, FoundApp]]:
    folders, looked_at = [(folder, 0)], 0
    while folders and looked_at < MOST_FOLDERS:
        current, depth = folders.pop(0)
        looked_at += 1
        app = _best_in(current) if current != folder else None
        if app and app.is_whole:
            yield current.relative_to(folder).as_posix(), app
        elif depth < DEEPEST:
            folders += [
                (path, depth + 1) for path in sorted(current.iterdir()) if is_of_interest(path)
            ]


def remedies(output: str, app: FoundApp, folder: Path) -> Iterator[str]:
    """Return what to change in an application that doesn't start, by what it prints."""
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
    for part in BETWEEN.split(line):
        words = ASSIGNMENT.sub("", part.strip()).split()
        while words and words[0] in LEADING:
            words = ASSIGNMENT.sub("", " ".join(words[1:])).split()
        if words and words[0] not in OF_SHELL:
            yield words[0]
