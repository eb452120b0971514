"""Django: settings for production, the hosts it answers to, and the variables that it wants."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp
from webdyno.systems.layouts.databases import NAMED
from webdyno.systems.layouts.files import read_text
from webdyno.systems.layouts.python_tools import Installing

SETTINGS_MODULE = re.compile(r"""DJANGO_SETTINGS_MODULE["'],\s*["']([\w.]+)["']""")
PATH = re.compile(
    r"""^[ \t]*path\(\s*["']([\w./-]*)["']\s*,(?!\s*(?:include|admin))""", re.MULTILINE
)
PRODUCTION = ("production", "prod", "live", "deploy")
LISTENS = "--bind 127.0.0.1:$PORT"
HERE = re.compile(r"""["'](?:127\.0\.0\.1|\*)["']""")
HOSTS = re.compile(r"^[ \t]*ALLOWED_HOSTS\s*\+?=(?P<said>[^\n]*(?:\n\s+[^\n]*)*)", re.MULTILINE)
READ = r"""(?:config|env\w*(?:\.\w+)?)\s*[(\[]\s*["'](\w+)["']"""
"""A variable that settings read, by os.environ, django-environ or python-decouple."""
WANTED = re.compile(
    r"""(?:environ\[|(?<![\w.])(?:config|env(?:\.\w+)?)\()\s*["'](?P<name>[A-Z]\w+)["']\s*[\])]"""
)
"""A variable without which they fail."""
GIVEN = {"DATABASE_URL", "REDIS_URL"}
"""Variables of services behind it."""
SECRET = re.compile(r"SECRET|_KEY$|TOKEN|PASSWORD")
DEBUG = re.compile(rf"^[ \t]*DEBUG\s*=.*?{READ}", re.MULTILINE)
DEBUGS = re.compile(r"^[ \t]*DEBUG\s*=\s*True\b", re.MULTILINE)
ANY_NAME = re.compile(r"""["']\.?([\w-]+(?:\.[\w-]+)+)["']""")
SEEDS = ("seed", "seed_db", "seed_data", "populate", "populate_db", "load_demo", "demo_data")
MOST_PATHS = 12


class _Settings(NamedTuple):
    module: str
    text: str
    """Of the module, and of those that it takes everything from."""


def find_django(folder: Path, how: Installing) -> FoundApp | None:
    """Find the project of a manage.py, at the top or in a folder; None where there is none."""
    manages = [folder / "manage.py", *sorted(folder.glob("*/manage.py"))]
    manage = next((manage for manage in manages if manage.is_file()), None)
    match = SETTINGS_MODULE.search(read_text(manage) or "") if manage else None
    if manage is None or match is None:
        return None
    top = manage.parent
    settings, notes = _settings(top, match[1])
    module = _wsgi(top, settings)
    has_server = "gunicorn" in how.needs
    how = how.with_package("gunicorn")
    inside = top.relative_to(folder).as_posix()
    chdir = "" if inside == "." else f"--chdir {inside} "
    environment = dict(_environment(settings.text))
    if settings.module != match[1]:
        environment["DJANGO_SETTINGS_MODULE"] = settings.module
    program = f".venv/bin/python {manage.relative_to(folder).as_posix()}"
    collects = "STATIC_ROOT" in settings.text
    build = (
        f"{how.build} && {program} collectstatic --noinput >/dev/null" if collects else how.build
    )
    served = "Gunicorn serves it: `manage.py runserver` is for development"
    return FoundApp(
        how.by,
        f".venv/bin/gunicorn {chdir}{module} {LISTENS}",
        build,
        prepare=f"{program} migrate --noinput >/dev/null",
        setup=f"{program} {seed} >/dev/null" if (seed := _seed(top)) else None,
        environment=environment,
        headers=dict(_headers(settings.text)),
        paths=_paths(top, settings.module) or ("/",),
        notes=(served, *notes, *(() if has_server else how.notes)),
        doubts=tuple(_doubts(settings, environment)),
    )


def _seed(top: Path) -> str | None:
    """Name the command of its own that fills a database."""
    own = {path.stem for path in top.glob("*/management/commands/*.py")}
    return next((name for name in SEEDS if name in own), None)


def _settings(top: Path, usual: str) -> tuple[_Settings, list[str]]:
    """Choose the settings for production, where there are some next to those of manage.py."""
    names = [usual, *(f"{usual}.{name}" for name in PRODUCTION)]
    above = usual.rpartition(".")[0]
    names += [f"{above}.{name}" if above else name for name in PRODUCTION]
    chosen = next((name for name in names[1:] if _text(top, name) is not None), usual)
    notes = [f"{chosen} holds its settings, not {usual}"] if chosen != usual else []
    return _Settings(chosen, _whole(top, chosen)), notes


def _text(top: Path, module: str) -> str | None:
    place = top.joinpath(*module.split("."))
    text = read_text(place.with_suffix(".py"))
    return read_text(place / "__init__.py") if text is None else text


def _whole(top: Path, module: str) -> str:
    """Give a module's text with those of its package that it imports everything from."""
    text = _text(top, module) or ""
    package = module.rpartition(".")[0]
    others = re.findall(r"^from \.(\w+) import \*", text, re.MULTILINE)
    return "\n".join([text, *(_text(top, f"{package}.{other}") or "" for other in others)])


def _wsgi(top: Path, settings: _Settings) -> str:
    match = re.search(r"""WSGI_APPLICATION\s*=\s*["']([\w.]+)\.\w+["']""", settings.text)
    if match:
        return match[1]
    places = sorted(top.glob("*/wsgi.py"))
    return (
        f"{places[0].parent.name}.wsgi" if places else f"{settings.module.partition('.')[0]}.wsgi"
    )


def _environment(text: str) -> Iterator[tuple[str, str]]:
    """Give the variables that have it serve as in production, at this address."""
    hosts = HOSTS.search(text)
    if (match := DEBUG.search(text)) and not _answers_nobody(hosts):
        yield match[1], "False"
    by = re.search(READ, hosts["said"]) if hosts else None
    if by:
        yield by[1], "127.0.0.1,localhost"
    for match in WANTED.finditer(text):
        if SECRET.search(match["name"]):
            yield match["name"], FOR_MEASURING


def _answers_nobody(hosts: re.Match[str] | None) -> bool:
    """Whether no host is allowed; in development Django adds this machine by itself."""
    return hosts is not None and bool(re.match(r"\s*\[\s*\]", hosts["said"]))


def _headers(text: str) -> Iterator[tuple[str, str]]:
    """Give the host that it answers to, where that isn't its address."""
    hosts = HOSTS.search(text)
    listed = hosts["said"] if hosts else ""
    if (
        not HERE.search(listed)
        and not re.search(READ, listed)
        and (name := ANY_NAME.search(listed))
    ):
        yield "Host", name[1]


def _paths(top: Path, module: str) -> tuple[str, ...]:
    urls = sorted((top / module.partition(".")[0]).glob("**/urls.py"))[:1]
    paths = PATH.findall(read_text(urls[0]) or "") if urls else []
    return tuple(dict.fromkeys(f"/{path}" for path in paths))[:MOST_PATHS]


def _doubts(settings: _Settings, environment: dict[str, str]) -> Iterator[str]:
    if DEBUGS.search(settings.text):
        yield f"DEBUG is True in {settings.module}: it is slower than in production"
    if _answers_nobody(HOSTS.search(settings.text)) and not DEBUGS.search(settings.text):
        yield "ALLOWED_HOSTS is empty: add 127.0.0.1 to it, or every response is 400"
    required = (
        {match["name"] for match in WANTED.finditer(settings.text)} - environment.keys() - GIVEN
    )
    lacking = {name for name in required if not NAMED.fullmatch(name)}
    if lacking:
        names = ", ".join(sorted(lacking))
        yield f"its settings want {names}: add them as environment.NAME below [app]"
