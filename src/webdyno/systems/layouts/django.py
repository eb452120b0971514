"""Django's projects: their settings, and how they are served as in production."""

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import BY_HTTPS, FOR_MEASURING, FoundApp
from webdyno.systems.layouts.databases import NAMED
from webdyno.systems.layouts.python_fills import QUIETLY, ROWS, TABLES
from webdyno.systems.layouts.python_tools import Installing
from webdyno.systems.layouts.settings import PLAIN_VALUE, example_of

SETTINGS_MODULE = re.compile(r"""DJANGO_SETTINGS_MODULE["'],\s*["']([\w.]+)["']""")
DJANGO_PATH = re.compile(
    r"""^[ \t]*path\(\s*["']([\w./-]*)["']\s*,(?!\s*(?:include|admin))""", re.MULTILINE
)
IS_WHOLE = re.compile(r"\bINSTALLED_APPS\b|\bimport \*")
PRODUCTION = ("production", "prod", "live", "deploy")
THIS_HOST = re.compile(r"""["'](?:127\.0\.0\.1|\*)["']""")
ALLOWED_HOSTS = re.compile(
    r"^[ \t]*ALLOWED_HOSTS\s*\+?=(?P<said>[^\n]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE
)
READ_VARIABLE = r"""(?:config|env\w*(?:\.\w+)?)\s*[(\[]\s*["'](\w+)["']"""
"""A variable that settings read, by os.environ, django-environ or python-decouple."""
WANTED_VARIABLE = re.compile(
    r"""(?:environ\[|(?<![\w.])(?:config|env(?:\.\w+)?|get_env\w*)\()\s*["'](?P<name>[A-Z]\w+)["']\s*[\])]"""
)
"""A variable without which they fail."""
OF_SERVICES = {"DATABASE_URL", "REDIS_URL"}
"""Variables of services behind it."""
OF_SECRET = re.compile(r"SECRET|_KEY$|TOKEN|PASSWORD")
DEBUG_VARIABLE = re.compile(rf"^[ \t]*DEBUG\s*=.*?{READ_VARIABLE}", re.MULTILINE)
DEBUG_SET = re.compile(r"^[ \t]*DEBUG\s*=\s*(\w+)", re.MULTILINE)
"""First in the module that is taken, so the rest doesn't count."""
CALLS = re.compile(r"^\w+[ \t]*=[ \t]*(?!env\b|config\b)([a-z_]\w*)\(", re.MULTILINE)
DEFINES = r"\bdef {name}\b|\bimport\b[^\n]*\b{name}\b|^{name}\b\s*=|^[ \t]+{name},?[ \t]*$"
ANY_NAME = re.compile(r"""["']\.?([\w-]+(?:\.[\w-]+)+)["']""")
MOST_PATHS = 12


class _DjangoSettings(NamedTuple):
    module: str
    text: str
    """Of the module, and of those that it takes everything from."""


OF_CACHE = "cache.backends.db.DatabaseCache"
"""A cache that is a table, which no migration makes."""


def find_django(folder: Path, how: Installing) -> FoundApp | None:
    """Find the project of a manage.py, at the top or in a folder; None where there is none."""
    manages = [folder / "manage.py", *sorted(folder.glob("*/manage.py"))]
    manage = next((manage for manage in manages if manage.is_file()), None)
    match = SETTINGS_MODULE.search(read_text(manage) or "") if manage else None
    if manage is None or match is None:
        return None
    top = manage.parent
    settings, notes = _django_settings(top, match[1])
    module = _wsgi(top, settings)
    has_server = "gunicorn" in how.needs
    how = how.with_package("gunicorn")
    inside = top.relative_to(folder).as_posix()
    chdir = "" if inside == "." else f"--chdir {inside} "
    environment = dict(_django_environment(settings.text))
    of_server = SETTINGS_MODULE.search(_module_text(top, module) or "")
    if {match[1], of_server[1] if of_server else match[1]} != {settings.module}:
        environment["DJANGO_SETTINGS_MODULE"] = settings.module
    program = f".venv/bin/python {manage.relative_to(folder).as_posix()}"
    build = how.build
    if "STATIC_ROOT" in settings.text:
        build += f" && {program} collectstatic --noinput {QUIETLY}"
    commands = ("*/management/commands/*.py", "*/*/management/commands/*.py")
    own = {path.stem for pattern in commands for path in top.glob(pattern)}
    seed = next((name for name in (*ROWS, *TABLES) if name in own), None)
    steps = ["migrate --noinput", *(["createcachetable"] if OF_CACHE in settings.text else [])]
    urls = sorted((top / settings.module.partition(".")[0]).glob("**/urls.py"))[:1]
    names = DJANGO_PATH.findall(read_text(urls[0]) or "") if urls else []
    paths = tuple(dict.fromkeys(f"/{name}" for name in names))[:MOST_PATHS]
    served = "Gunicorn serves it: `manage.py runserver` is for development"
    return FoundApp(
        how.by,
        f".venv/bin/gunicorn {chdir}{module} --bind 127.0.0.1:$PORT",
        build,
        prepare=" && ".join(f"{program} {step} {QUIETLY}" for step in steps),
        setup=f"{program} {seed} {QUIETLY}" if seed else None,
        environment=environment,
        headers=_django_headers(settings.text),
        paths=paths or ("/",),
        notes=(served, *notes, *(() if has_server else how.notes)),
        doubts=tuple(_django_doubts(settings, environment, example_of(folder))),
    )


def _django_settings(top: Path, usual: str) -> tuple[_DjangoSettings, list[str]]:
    above = usual.rpartition(".")[0]
    names = [f"{usual}.{name}" for name in PRODUCTION]
    names += [f"{above}.{name}" if above else name for name in PRODUCTION]
    chosen = next((name for name in names if _module_text(top, name) is not None), usual)
    notes = [f"{chosen} holds its settings, not {usual}"] if chosen != usual else []
    text = _with_its_bases(top, chosen)
    if chosen != usual and not IS_WHOLE.search(text):
        notes = [f"{chosen} has no applications: {usual} is taken"]
        chosen, text = usual, _with_its_bases(top, usual)
    if chosen != usual and (unknown := _undefined(text)):
        notes = [f"{chosen} calls {unknown}, which isn't there: {usual} is taken"]
        chosen, text = usual, _with_its_bases(top, usual)
    return _DjangoSettings(chosen, text), notes


def _with_its_bases(top: Path, module: str) -> str:
    """Return the text of a module, and of those in its package that it takes everything from."""
    text = _module_text(top, module) or ""
    package = module.rpartition(".")[0]
    others = re.findall(r"^from \.(\w+) import \*", text, re.MULTILINE)
    return "\n".join([text, *(_module_text(top, f"{package}.{other}") or "" for other in others)])


def _undefined(text: str) -> str | None:
    """Return a function that settings call, and that neither they nor Python have."""
    if "import *" in re.sub(r"^from \.\w+ import \*", "", text, flags=re.MULTILINE):
        return None
    called = (name for name in CALLS.findall(text) if not hasattr(builtins, name))
    unknown = (
        name for name in called if not re.search(DEFINES.format(name=name), text, re.MULTILINE)
    )
    return next(unknown, None)


def _module_text(top: Path, module: str) -> str | None:
    place = top.joinpath(*module.split("."))
    text = read_text(place.with_suffix(".py"))
    return read_text(place / "__init__.py") if text is None else text


def _wsgi(top: Path, settings: _DjangoSettings) -> str:
    match = re.search(r"""WSGI_APPLICATION\s*=\s*["']([\w.]+)\.\w+["']""", settings.text)
    if match:
        return match[1]
    places = sorted(top.glob("*/wsgi.py"))
    package = places[0].parent.name if places else settings.module.partition(".")[0]
    return f"{package}.wsgi"


def _django_environment(text: str) -> Iterator[tuple[str, str]]:
    """Return the variables that have it serve as in production, at this address."""
    hosts = ALLOWED_HOSTS.search(text)
    debug = DEBUG_VARIABLE.search(text)
    if debug and "DEBUG" in debug[1].upper() and not _answers_nobody(hosts):
        yield debug[1], "False"
    if hosts and (match := re.search(READ_VARIABLE, hosts["said"])):
        yield match[1], "127.0.0.1,localhost"
    for match in WANTED_VARIABLE.finditer(text):
        is_looked_for = re.search(rf"[\"']{match['name']}[\"'] in ", text)
        if OF_SECRET.search(match["name"]) and not is_looked_for:
            yield match["name"], FOR_MEASURING


def _answers_nobody(hosts: re.Match[str] | None) -> bool:
    """Whether no host is allowed; in development Django adds this machine by itself."""
    return hosts is not None and bool(re.match(r"\s*\[\s*\]", hosts["said"]))


def _django_headers(text: str) -> dict[str, str]:
    """Return the host that it answers to, where that isn't its address."""
    hosts = ALLOWED_HOSTS.search(text)
    listed = hosts["said"] if hosts else ""
    is_open = THIS_HOST.search(listed) or re.search(READ_VARIABLE, listed)
    name = ANY_NAME.search(listed)
    headers = {"Host": name[1]} if name and not is_open else {}
    leads_to_https = LEADS_TO_HTTPS.search(text) and "SECURE_PROXY_SSL_HEADER" in text
    return headers | (BY_HTTPS if leads_to_https else {})


LEADS_TO_HTTPS = re.compile(r"^[ \t]*SECURE_SSL_REDIRECT[ \t]*=[^#\n]*\bTrue\b", re.MULTILINE)


def _is_debugged(text: str) -> bool:
    first = DEBUG_SET.search(text)
    return first is not None and first[1] == "True"


def _django_doubts(
    settings: _DjangoSettings, environment: dict[str, str], example: str
) -> Iterator[str]:
    if _is_debugged(settings.text):
        yield f"DEBUG is True in {settings.module}: it is slower than in production"
    if _answers_nobody(ALLOWED_HOSTS.search(settings.text)) and not _is_debugged(settings.text):
        yield "ALLOWED_HOSTS is empty: add 127.0.0.1 to it, or every response is 400"
    wanted = {match["name"] for match in WANTED_VARIABLE.finditer(settings.text)}
    exemplary = {match["name"] for match in PLAIN_VALUE.finditer(example)}
    required = wanted - environment.keys() - OF_SERVICES - exemplary
    lacking = {name for name in required if not NAMED.fullmatch(name)}
    if lacking:
        names = ", ".join(sorted(lacking))
        yield f"its settings want {names}: add them as environment.NAME below [app]"
