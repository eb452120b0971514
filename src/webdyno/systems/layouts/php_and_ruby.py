"""Ruby (Rails, Sinatra, whatever else has a config.ru) and PHP (Laravel, Symfony, pages)."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.tables import json_table, read_text, table
from webdyno.systems.containers.compose_file import USUAL_FILES
from webdyno.systems.env_files import ENV_FILE, example_file
from webdyno.systems.layouts.app import BY_HTTPS, FOR_MEASURING, FoundApp
from webdyno.systems.layouts.node_package import assets_of_php, assets_of_rails
from webdyno.systems.layouts.settings import example_of

BUNDLED = "bundle config set --local path .bundle && bundle install --quiet"
RAILS_PATH = re.compile(r"""\A[ \t]*get\s*\(?["']/?(?P<path>[\w./-]+)["']""")
RESOURCES = re.compile(r"\A[ \t]*resources\s+:(?P<path>\w+)")
SCOPE = re.compile(r"""\A[ \t]*(?:namespace|scope)[ (]+(?:path:\s*)?[:"']/?(?P<path>[\w/-]+)""")
OPENS = re.compile(r"\bdo\b[^\n]*$")
ROOT = re.compile(r"^[ \t]*root\b", re.MULTILINE)
SINATRA = re.compile(r"""^[ \t]*require\s+["']sinatra(?!/base)[\w/]*["']""", re.MULTILINE)
PUMA = "puma --bind tcp://127.0.0.1:$PORT config.ru"
RAKE_TASK = re.compile(r"^[ \t]*task\s+:?(\w+)", re.MULTILINE)
RAKE_TASKS = ("migrate", "seed")
"""Tasks below `db:`, in their order."""
RAILS_ENVIRONMENT = {
    "RAILS_ENV": "production",
    "SECRET_KEY_BASE": FOR_MEASURING,
    "RAILS_SERVE_STATIC_FILES": "1",
}
FORCES_TLS = re.compile(r"^[ \t]*config\.force_ssl[ \t]*=[ \t]*true\b", re.MULTILINE)
NO_RAILS_IN_DEVELOPMENT = "RAILS_ENV is production: in development each request checks the files"
MOST_PATHS = 12


def find_ruby(folder: Path) -> FoundApp | None:
    """Start config.ru under puma, or a script of Sinatra's by itself."""
    bundled = (folder / "Gemfile").is_file()
    execute, build = ("bundle exec ", BUNDLED) if bundled else ("", None)
    if (folder / "config.ru").is_file():
        if is_rails(folder):
            return _rails(folder, execute, build)
        rakefile = read_text(folder / "Rakefile") or ""
        named = RAKE_TASK.findall(rakefile) if "namespace :db" in rakefile else ()
        tasks = [f"db:{name}" for name in RAKE_TASKS if name in named]
        setup = f"{execute}rake {' '.join(tasks)}" if tasks else None
        environment, start = {"RACK_ENV": "production"}, f"{execute}{PUMA}"
        return FoundApp("config.ru", start, build, setup=setup, environment=environment)
    scripts = [
        path for path in sorted(folder.glob("*.rb")) if SINATRA.search(read_text(path) or "")
    ]
    if not scripts:
        return None
    start = f"{execute}ruby {scripts[0].name} -p $PORT -o 127.0.0.1 -e production"
    return FoundApp(scripts[0].name, start, build)


def _rails(folder: Path, execute: str, build: str | None) -> FoundApp:
    assets = (folder / "app/assets").is_dir() and build
    routes = read_text(folder / "config/routes.rb") or ""
    configured = read_text(folder / "config/environments/production.rb") or ""
    leads_to_https = FORCES_TLS.search(configured)
    paths = ["/"] if ROOT.search(routes) else []
    paths += _rails_paths(routes)
    steps = [build, assets_of_rails(folder), "bin/rails assets:precompile" if assets else None]
    return FoundApp(
        "config.ru",
        f"{execute}{PUMA}",
        " && ".join(filter(None, steps)) or None,
        prepare="bin/rails db:prepare",
        environment=RAILS_ENVIRONMENT,
        paths=tuple(dict.fromkeys(paths))[:MOST_PATHS] or ("/",),
        notes=(NO_RAILS_IN_DEVELOPMENT,),
        doubts=tuple(rails_doubts(folder)),
        headers=BY_HTTPS if leads_to_https else {},
    )


def _rails_paths(routes: str) -> list[str]:
    """Return paths below their namespaces, those of `get` first; none that are of one resource."""
    gets, resources = [], []
    around: list[tuple[int, str | None]] = []
    for line in routes.splitlines():
        if not line.strip():
            continue
        margin = len(line) - len(line.lstrip())
        while around and around[-1][0] >= margin:
            around.pop()
        prefixes = [prefix for _, prefix in around]
        below = None if None in prefixes else "".join(filter(None, prefixes))
        if (scope := SCOPE.match(line)) and OPENS.search(line):
            around.append((margin, f"/{scope['path']}"))
        elif one := RAILS_PATH.match(line):
            gets += [f"{below}/{one['path']}"] if below is not None else []
        elif several := RESOURCES.match(line):
            resources += [f"{below}/{several['path']}"] if below is not None else []
            around += [(margin, None)] if OPENS.search(line) else []
    return [*gets, *resources]


def is_rails(folder: Path) -> bool:
    """Whether a Gemfile has Rails in it."""
    gems = read_text(folder / "Gemfile") or ""
    return bool(re.search(r"""^[ \t]*gem\s+["']rails["']""", gems, re.MULTILINE))


def rails_doubts(folder: Path) -> Iterator[str]:
    """Return what a Rails application wants that revisions may not have."""
    if (folder / "config/credentials.yml.enc").is_file():
        yield "Git ignores config/master.key, which it may need: environment.RAILS_MASTER_KEY"


PHP_ROOTS = ("public", "web", ".")
INSTALL = "composer install --no-progress --no-dev --no-interaction --optimize-autoloader"
WORKERS = "PHP_CLI_SERVER_WORKERS=$(nproc)"
OWN_SERVER = (
    "PHP's own server starts it, which has no cache of compiled code: in production PHP-FPM is "
    "behind nginx; `webdyno init --image .` measures a container with those"
)
IS_PACKAGE = re.compile(r"\A[\w.-]+/[\w.-]+\Z")
"""Others, such as `ext-pdo_mysql`, are a part of PHP: composer installs none of them."""
LARAVEL_KEY = "base64:d2ViZHluby13ZWJkeW5vLXdlYmR5bm8td2ViZHluby0="
"""Of 32 bytes, as Laravel wants it."""
LARAVEL_CONNECTION = re.compile(r"^DB_CONNECTION=[\"']?(\w+)", re.MULTILINE)
LARAVEL_DEFAULT = re.compile(r"""env\(["']DB_CONNECTION["'],\s*["'](\w+)["']""")
LARAVEL_SERVICES = {"mysql": "mariadb", "mariadb": "mariadb", "pgsql": "postgresql"}
LARAVEL_REDIS = re.compile(
    r"^(?:CACHE_(?:STORE|DRIVER)|SESSION_DRIVER|QUEUE_CONNECTION)=[\"']?redis\b", re.MULTILINE
)
DOCTRINE_URL = re.compile(r"^DATABASE_URL=[\"']?(postgres(?:ql)?|mysql|mariadb):", re.MULTILINE)
HAS_ADDRESS = re.compile(r"^DATABASE_URL=", re.MULTILINE)
OF_DATABASE = re.compile(r"^[ \t]*image:[ \t]*[\"']?(postgres|mysql|mariadb)\b", re.MULTILINE)
"""In a Compose file."""
NO_DATABASE = (
    "Doctrine asks a database, and .env has no address of one: services.db below [app] starts it, "
    "and environment there says where, by the variables of config/packages"
)
STEPS_OF_SYMFONY = {
    "lexik/jwt-authentication-bundle": "lexik:jwt:generate-keypair --skip-if-exists",
    "symfonycasts/tailwind-bundle": "tailwind:build --minify",
    "symfonycasts/sass-bundle": "sass:build",
    "symfony/asset-mapper": "asset-map:compile",
}
"""By package: what makes files that it reads in production."""
FAKER = "fakerphp/faker"
"""What factories of seeds need, which `--no-dev` often excludes."""


BY_FACTORY = re.compile(r"\bfactory\(|\bfake\(|\bFaker\b")
MOST_SEEDERS = 200
UNSEEDED = (
    f"its tables stay empty: its seeders need {FAKER}, a package of development; composer install "
    "without --no-dev in build, and php artisan db:seed --force behind setup, fill them"
)


def find_php(folder: Path) -> FoundApp | None:
    """Start what composer.json or an index.php shows."""
    text = read_text(folder / "composer.json")
    roots = (path for path in PHP_ROOTS if (folder / path / "index.php").is_file())
    root = next((path for path in roots if path == "." or not _is_apart(folder / path)), None)
    if root is None:
        return None
    needs = set(table(json_table(text or ""), "require"))
    build = INSTALL if any(map(IS_PACKAGE.fullmatch, needs)) else None
    build = " && ".join(filter(None, (build, assets_of_php(folder)))) or None
    by = "composer.json" if text is not None else f"{root}/index.php".removeprefix("./")
    if "laravel/framework" in needs:
        return _laravel(folder, needs, build)
    environment: dict[str, str] = {}
    services: dict[str, str] = {}
    setup = None
    lacks: tuple[str, ...] = ()
    if needs & {"symfony/framework-bundle", "symfony/symfony"}:
        environment = {"APP_ENV": "prod", "APP_DEBUG": "0", "APP_SECRET": FOR_MEASURING}
        services, setup = _doctrine(folder, needs)
        is_named = services or HAS_ADDRESS.search(read_text(folder / ".env") or "")
        lacks = () if is_named or "doctrine/doctrine-bundle" not in needs else (NO_DATABASE,)
        made = [step for package, step in STEPS_OF_SYMFONY.items() if package in needs]
        build = " && ".join([*filter(None, [build]), *(f"php bin/console {step}" for step in made)])
    front = f"{root}/index.php".removeprefix("./") if needs else ""
    start = f"{WORKERS} php -S 127.0.0.1:$PORT -t {root} {front}".rstrip()
    return FoundApp(
        by,
        start,
        build,
        setup=setup,
        services=services,
        environment=environment,
        doubts=(OWN_SERVER, *lacks),
    )


def _doctrine(folder: Path, needs: set[str]) -> tuple[dict[str, str], str | None]:
    """Return the database that Symfony's or Compose's file names, and what makes its tables."""
    given = read_text(folder / ".env") or ""
    named = DOCTRINE_URL.search(given)
    if named is None and not HAS_ADDRESS.search(given):
        files = (read_text(folder / name) or "" for name in USUAL_FILES)
        named = OF_DATABASE.search("\n".join(files))
    if named is None or "doctrine/doctrine-bundle" not in needs:
        return {}, None
    has_own = "doctrine/doctrine-migrations-bundle" in needs and (folder / "migrations").is_dir()
    how = "migrations:migrate --no-interaction" if has_own else "schema:create --quiet"
    setup = f"php bin/console doctrine:{how} >/dev/null"
    return {"db": "postgresql" if named[1].startswith("postgres") else "mariadb"}, setup


def _is_apart(folder: Path) -> bool:
    """Whether a folder makes an image of its own, as a part of something larger."""
    return (folder / "Dockerfile").is_file()


def _laravel(folder: Path, needs: set[str], build: str | None) -> FoundApp:
    example, name = example_of(folder), example_file(folder)
    if build and name:
        build = f"{build} && cp -n {name} {ENV_FILE}"
    prepare, setup, services, exported = None, None, {}, ""
    configured = read_text(folder / "config/database.php") or ""
    connection = LARAVEL_CONNECTION.search(example) or LARAVEL_DEFAULT.search(configured)
    seeder = read_text(folder / "database/seeders/DatabaseSeeder.php") or ""
    can_seed = re.search(r"factory\(|->call\(|insert\(|create\(", seeder)
    wants_faker = FAKER not in needs and BY_FACTORY.search(_seeders(folder, seeder))
    seeds = " --seed" if can_seed and not wants_faker else ""
    unseeded = [UNSEEDED] if can_seed and wants_faker and connection else []
    if connection and connection[1] in LARAVEL_SERVICES:
        services = {"db": LARAVEL_SERVICES[connection[1]]}
        exported = f"DB_CONNECTION={connection[1]} DB_DATABASE=$DB_NAME DB_USERNAME=$DB_USER"
        setup = f"export {exported} && php artisan migrate --force{seeds}"
    elif "DB_CONNECTION=sqlite" in example:
        build = f"{build} && touch database/database.sqlite"
        migrate = "php artisan migrate --force"
        prepare, setup = (None, migrate + seeds) if seeds else (migrate, None)
    if LARAVEL_REDIS.search(example):  # by $REDIS_URL
        services["cache"] = "redis"
    start = f"{WORKERS} php artisan serve --no-reload --host=127.0.0.1 --port=$PORT"
    doubts: tuple[str, ...] = (OWN_SERVER,)
    if "laravel/octane" in needs:
        start, doubts = "php artisan octane:start --host=127.0.0.1 --port=$PORT", ()
    return FoundApp(
        "composer.json",
        f"{exported} {start}".strip(),
        build,
        setup=setup,
        prepare=prepare,
        services=services,
        environment={"APP_ENV": "production", "APP_DEBUG": "false", "APP_KEY": LARAVEL_KEY},
        doubts=(*doubts, *unseeded),
    )


def _seeders(folder: Path, first: str) -> str:
    """Return the texts of seeders that the first one calls, wherever modules have them."""
    called = set(re.findall(r"\b(\w+Seeder)\b", first))
    files = sorted((*folder.glob("database/seeders/**/*.php"), *folder.glob("*/*/**/*Seeder.php")))
    texts = (read_text(path) or "" for path in files[:MOST_SEEDERS] if path.stem in called)
    return "\n".join([first, *texts])
