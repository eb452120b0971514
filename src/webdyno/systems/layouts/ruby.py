"""Ruby: Rails, Sinatra, and whatever else has a config.ru."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp
from webdyno.systems.layouts.files import read_text

BUNDLED = "bundle config set --local path .bundle && bundle install --quiet"
PATH = re.compile(r"""^[ \t]*get\s*\(?["']/?([\w./-]+)["']""", re.MULTILINE)
RESOURCES = re.compile(r"^(?P<in>[ \t]*)resources\s+:(?P<name>\w+)", re.MULTILINE)
ROOT = re.compile(r"^[ \t]*root\b", re.MULTILINE)
SINATRA = re.compile(r"""^[ \t]*require\s+["']sinatra(?!/base)[\w/]*["']""", re.MULTILINE)
PUMA = "puma --bind tcp://127.0.0.1:$PORT config.ru"
TASK = re.compile(r"^[ \t]*task\s+:?(\w+)", re.MULTILINE)
FILLS = ("migrate", "seed")
"""Tasks below `db:`, in their order."""
OUTERMOST = 2
"""So far lines of a route stand in, in config/routes.rb, that is in no scope."""
NO_RAILS_IN_DEVELOPMENT = "RAILS_ENV is production: in development each request checks the files"
MOST_PATHS = 12


def find_in(folder: Path) -> FoundApp | None:
    """Start config.ru under puma, or a script of Sinatra's by itself."""
    bundled = (folder / "Gemfile").is_file()
    execute, build = ("bundle exec ", BUNDLED) if bundled else ("", None)
    if (folder / "config.ru").is_file():
        if is_rails(folder):
            return _rails(folder, execute, build)
        environment, fills = {"RACK_ENV": "production"}, _fills(folder, execute)
        start = f"{execute}{PUMA}"
        return FoundApp("config.ru", start, build, setup=fills, environment=environment)
    scripts = [
        path for path in sorted(folder.glob("*.rb")) if SINATRA.search(read_text(path) or "")
    ]
    if not scripts:
        return None
    start = f"{execute}ruby {scripts[0].name} -p $PORT -o 127.0.0.1 -e production"
    return FoundApp(scripts[0].name, start, build)


def _fills(folder: Path, execute: str) -> str | None:
    """Give the tasks of rake that fill a database."""
    text = read_text(folder / "Rakefile") or ""
    named = TASK.findall(text) if "namespace :db" in text else ()
    tasks = [f"db:{name}" for name in FILLS if name in named]
    return f"{execute}rake {' '.join(tasks)}" if tasks else None


def _rails(folder: Path, execute: str, build: str | None) -> FoundApp:
    assets = (folder / "app/assets").is_dir() and build
    return FoundApp(
        "config.ru",
        f"{execute}{PUMA}",
        f"{build} && bin/rails assets:precompile" if assets else build,
        prepare="bin/rails db:prepare",
        environment=rails_environment(),
        paths=tuple(_rails_paths(folder)) or ("/",),
        notes=(NO_RAILS_IN_DEVELOPMENT,),
        doubts=tuple(rails_doubts(folder)),
    )


def is_rails(folder: Path) -> bool:
    """Whether a Gemfile has Rails in it."""
    gems = read_text(folder / "Gemfile") or ""
    return bool(re.search(r"""^[ \t]*gem\s+["']rails["']""", gems, re.MULTILINE))


def rails_environment() -> dict[str, str]:
    return {
        "RAILS_ENV": "production",
        "SECRET_KEY_BASE": FOR_MEASURING,
        "RAILS_SERVE_STATIC_FILES": "1",
    }


def rails_doubts(folder: Path) -> Iterator[str]:
    """Say what a Rails application wants that revisions may not have."""
    if (folder / "config/credentials.yml.enc").is_file():
        yield "Git ignores config/master.key, which it may need: environment.RAILS_MASTER_KEY"


def _rails_paths(folder: Path) -> list[str]:
    routes = read_text(folder / "config/routes.rb") or ""
    paths = ["/"] if ROOT.search(routes) else []
    paths += [f"/{path}" for path in PATH.findall(routes)]
    outer = [match["name"] for match in RESOURCES.finditer(routes) if len(match["in"]) <= OUTERMOST]
    return list(dict.fromkeys([*paths, *(f"/{resource}" for resource in outer)]))[:MOST_PATHS]
