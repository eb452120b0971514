"""Finds out from a folder's files how the application in it is built, started and asked.

Each way in which people lay one out has a function that reads its files, and a line of LAYOUTS.
What isn't one language's is here: Procfiles, nginx.conf, and pages.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from webdyno.core.registry import command
from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import PYTHON_QUEUE, FoundApp, Layout, is_of_interest
from webdyno.systems.layouts.builds import with_unmade, with_words_of_image
from webdyno.systems.layouts.cmake import find_cmake
from webdyno.systems.layouts.compiled import find_dotnet, find_elixir, find_go, find_rust
from webdyno.systems.layouts.compose import find_compose
from webdyno.systems.layouts.containers import in_container
from webdyno.systems.layouts.databases import with_services
from webdyno.systems.layouts.dockerfile import find_dockerfile, with_values_of_compose
from webdyno.systems.layouts.gaps import with_gaps
from webdyno.systems.layouts.jvm import find_jvm
from webdyno.systems.layouts.mounted import untried_paths as untried_paths
from webdyno.systems.layouts.node import find_deno, find_node, for_production
from webdyno.systems.layouts.node_environment import with_its_node
from webdyno.systems.layouts.node_package import called_by, manager_of, package_in
from webdyno.systems.layouts.other_services import with_other_services
from webdyno.systems.layouts.php_and_ruby import (
    RAILS_ENVIRONMENT,
    find_php,
    find_ruby,
    is_rails,
    rails_doubts,
)
from webdyno.systems.layouts.python import find_python, in_venv
from webdyno.systems.layouts.python_tools import installing, with_its_python
from webdyno.systems.layouts.remedies import missing_tools as missing_tools
from webdyno.systems.layouts.remedies import remedies as remedies
from webdyno.systems.layouts.server_files import with_own_files
from webdyno.systems.layouts.start_scripts import MIGRATES, with_start_scripts
from webdyno.systems.layouts.variables import (
    given_port,
    with_no_rate_limit,
    with_port,
    with_values_for_secrets,
    with_what_it_asks,
)
from webdyno.systems.layouts.wanted import with_wanted_variables

PROCFILE_LINE = re.compile(r"^([\w-]+):[ \t]*(\S(?:.*[^ \t\r\n])?)[ \t\r]*$", re.MULTILINE)
THRUSTER = re.compile(r"\bthrust(?:er)?\b")
THRUSTER_OFFSET = 32_768
"""To a port that nobody has: webdyno's own are below that."""
HEROKU_PHP = re.compile(r"(?:vendor/bin/)?heroku-(?:php|hhvm)-")
OF_LANGUAGES = (find_python, find_ruby, find_go, find_jvm, find_php, find_elixir, find_node)
FILLS = re.compile(rf"{MIGRATES.pattern}|\bcollectstatic\b")
SERVERS = {"gunicorn", "uvicorn", "hypercorn", "uwsgi"}
HEEDS = re.compile(r"\bgunicorn\b(?!.*(?:-b|--bind)\b)|\bpuma\b|\brails s|\bnext start\b")
"""Servers that listen on $PORT unless another port is given."""


def find_procfile(folder: Path) -> FoundApp | None:
    """Read the line `web:`; `release:` is run before each start, and no other process is.

    What else belongs to the application is as its language's layout finds it.
    """
    lines = dict(PROCFILE_LINE.findall(read_text(folder / "Procfile") or ""))
    if "web" not in lines:
        return None
    before, start = _split_off(given_port(lines["web"]))
    if (folder / "Gemfile").is_file():
        start, *before = (OF_BUNDLE.sub(r"bundle exec \1", step) for step in (start, *before))
    if HEROKU_PHP.match(start) and (php_app := find_php(folder)):
        return php_app
    found_by = (find(folder) for find in OF_LANGUAGES)
    own = next((app for app in found_by if app and app.build), FoundApp("Procfile"))
    if "mix phx.server" in start:
        return own
    if out := _program_of_go(folder, start):
        start = out + start[len(start.split()[0]) :]
    build = _procfile_build(folder, start, own)
    migrates = [in_venv(step, build) for step in before if "collectstatic" not in step]
    started = for_production(in_venv(start, build))
    if package := package_in(folder):
        started = called_by(manager_of(folder, package), started)
    if own.services and own.start:  # of Java, whose databases have variables of their own
        started = own.start.partition("java ")[0] + started
    app = replace(
        own,
        by="Procfile",
        start=started,
        build=build,
        prepare=" && ".join(migrates) or own.prepare,
        heeds_port=bool(HEEDS.search(start)),
        notes=(),
        doubts=(),
        hindrances=frozenset(),
    )
    if is_rails(folder):
        doubts = tuple(rails_doubts(folder))
        app = replace(app, environment=RAILS_ENVIRONMENT, doubts=doubts)
    if "release" in lines:
        release = in_venv(lines["release"], build)
        kept = [step for step in (own.setup or "").split(" && ") if not MIGRATES.search(step)]
        app = replace(
            app,
            prepare=release,
            setup=" && ".join(kept) or None,
            notes=("`release` of Procfile runs before it starts",),
        )
    others = [name for name in lines if name not in {"web", "release"}]
    if others:
        unstarted = f"of Procfile only web is started, without {', '.join(others)}"
        app = replace(app, notes=(*app.notes, unstarted))
    if THRUSTER.search(start):
        start = f"HTTP_PORT=$PORT TARGET_PORT=$((PORT + {THRUSTER_OFFSET})) {app.start}"
        note = "Thruster listens on HTTP_PORT, and its server on TARGET_PORT behind it"
        app = replace(app, start=start, notes=(*app.notes, note))
    return app


def _program_of_go(folder: Path, start: str) -> str | None:
    """Return where a program of Go's is to be built: Heroku finds a bare name in `bin`."""
    program = start.split()[0]
    if not (folder / "go.mod").is_file() or (folder / program).is_file():
        return None
    return program.removeprefix("./") if "/" in program else f"bin/{program}"


OF_SHELL = re.compile(
    r"""^(?:/(?:usr/)?bin/)?(?:ba|z)?sh\s+(?:-\w+\s+){0,4}-\w*c\s+(?P<quote>["'])(?P<line>.*)(?P=quote)$"""
)
"""A line that a shell is called with."""
OF_BUNDLE = re.compile(r"^(rails|rake|puma|rackup|unicorn|thin|falcon)\b")
"""Programs of gems, which the build installs in the folder alone."""
QUOTED_AND = re.compile(r"""\"[^\"]*&&[^\"]*\"|'[^']*&&[^']*'""")
"""Steps that belong to one word, and aren't taken apart."""


def _split_off(line: str) -> tuple[list[str], str]:
    """Return the steps that fill databases and folders before the server starts, and its line."""
    if of_shell := OF_SHELL.match(line):
        line = of_shell["line"]
    steps = re.split(r"\s*&&\s*", line) if not QUOTED_AND.search(line) else [line]
    before = list(takewhile(FILLS.search, steps[:-1]))
    return before, " && ".join(steps[len(before) :])


def _procfile_build(folder: Path, start: str, own: FoundApp) -> str | None:
    if how := installing(folder):
        program, build = start.split()[0], own.build or how.build
        is_there = program in how.needs or program in build.split()
        return build if is_there or program not in SERVERS else f"{build} && {how.adds} {program}"
    if (out := _program_of_go(folder, start)) is not None:
        package = (own.build or "").rpartition(" ")[2]
        return f"go build -o {out} {package or '.'}"
    return own.build


PAGE_FOLDERS = (".", "public", "html", "www", "site", "_site", "dist")
MOST_PATHS = 6


def find_nginx(folder: Path) -> FoundApp | None:
    """Take a configuration of nginx, with the pages next to it."""
    if not (folder / "nginx.conf").is_file():
        return None
    root = _folder_of_pages(folder)
    notes = (f"root is {root}, in the place of what nginx.conf names",) if root else ()
    return FoundApp("nginx.conf", conf="nginx.conf", root=root, notes=notes)


def find_pages(folder: Path) -> FoundApp | None:
    """Have Python's own server give a folder of HTML."""
    inner = _folder_of_pages(folder)
    if inner is None:
        return None
    names = sorted(path.name for path in (folder / inner).glob("*.html"))
    server = "python3 -m http.server $PORT --bind 127.0.0.1"
    return FoundApp(
        f"{inner}/index.html".removeprefix("./"),
        server if inner == "." else f"{server} --directory {inner}",
        paths=("/", *(f"/{name}" for name in names if name != "index.html"))[:MOST_PATHS],
        connections=PYTHON_QUEUE,
    )


def _folder_of_pages(folder: Path) -> str | None:
    return next((path for path in PAGE_FOLDERS if (folder / path / "index.html").is_file()), None)


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
    Layout("CMakeLists.txt", find_cmake),
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
PAGES_SERVER = "python3 -m http.server "
OF_TOP = "."
PARTS = "there are several applications"
BACK = re.compile(r"^(?:back-?end|server|api)(?:/|$)", re.IGNORECASE)
FRONT = re.compile(r"^(?:front-?end|client|ui)(?:/|$)", re.IGNORECASE)
"""Folders whose applications belong together: the first is asked by the second."""


def looked_for() -> str:
    """Return the files that applications are known by, for people."""
    return ", ".join(layout.files for layout in LAYOUTS)


def find_app(folder: Path, *, in_containers: bool = False) -> FoundApp | None:
    """Look at a folder, then at those in it; None where nothing is known to serve HTTP.

    `in_containers`: whether an engine runs containers here, which describe some better.
    """
    best = _best_in(folder, in_containers)
    pages = best if best and _are_pages(best) else None
    develops = best if best and best.image and best.hindrances else None
    is_settled = best and (best.is_whole or best.choices or best.hindrances)
    if is_settled and not (pages or develops):
        return best
    inside = dict(_whole_below(folder, in_containers))
    programs = {name: app for name, app in inside.items() if app.start}
    if pages or develops:
        programs = {name: app for name, app in programs.items() if not _are_pages(app)}
        inside = {}
    apps = {
        name: replace(app, dir=(Path(name) / app.dir).as_posix())
        for name, app in (programs or inside).items()
    }
    if apps and pages:
        apps[OF_TOP] = pages
    if not apps:
        return best
    backs = [name for name in apps if BACK.search(name)]
    fronts = [name for name in apps if FRONT.search(name)]
    if len(apps) == 1 or (len(backs) == 1 and len(fronts) == len(apps) - 1):
        name = next(iter(backs or apps))
        note = (f"it is in {name}; {command('init', each)} takes {each}" for each in fronts)
        return replace(apps[name], by=f"{name}/{apps[name].by}", notes=(*apps[name].notes, *note))
    return FoundApp("its folders", several=PARTS, choices=apps)


def _are_pages(app: FoundApp) -> bool:
    """Whether these are pages alone, which programs in the folders may be behind."""
    return PAGES_SERVER in (app.start or "")


def _best_in(folder: Path, in_containers: bool) -> FoundApp | None:
    apps = list(filter(None, (layout.find_in(folder) for layout in LAYOUTS)))
    clear = [app for app in apps if app.is_whole or app.choices]
    first = next(iter(clear or apps), None)
    best = first and _with_variables(first, folder / first.dir)
    return (in_container(best, folder) if in_containers else None) or best


def _with_variables(app: FoundApp, folder: Path) -> FoundApp:
    """Add what holds for every layout: its port, the databases behind it, and its secrets."""
    choices = {name: _with_variables(choice, folder) for name, choice in app.choices.items()}
    called = with_words_of_image(with_own_files(app, folder), folder)
    started = with_start_scripts(with_port(called, folder), folder)
    started = with_its_node(with_its_python(started, folder), folder)
    served = with_other_services(with_services(started, folder), folder, started.setup)
    whole = with_values_for_secrets(served, folder)
    whole = with_values_of_compose(with_no_rate_limit(whole, folder), folder)
    whole = with_what_it_asks(with_wanted_variables(whole, folder), folder)
    whole = with_unmade(with_gaps(whole, folder), folder)
    return replace(whole, choices=choices)


def _whole_below(folder: Path, in_containers: bool) -> Iterator[tuple[str, FoundApp]]:
    folders, looked_at = [(folder, 0)], 0
    while folders and looked_at < MOST_FOLDERS:
        current, depth = folders.pop(0)
        looked_at += 1
        app = _best_in(current, in_containers) if current != folder else None
        if app and app.is_whole:
            yield current.relative_to(folder).as_posix(), app
        elif depth < DEEPEST:
            folders += [
                (path, depth + 1) for path in sorted(current.iterdir()) if is_of_interest(path)
            ]
