"""PHP: Laravel, Symfony, and pages with an index.php."""

import json
import re
from pathlib import Path
from typing import Any

from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp
from webdyno.systems.layouts.files import first_of, read_text, table

INSTALL = "composer install --quiet --no-dev --no-interaction --optimize-autoloader"
WORKERS = "PHP_CLI_SERVER_WORKERS=$(nproc)"
OWN_SERVER = (
    "PHP's own server starts it, which has no cache of compiled code: in production PHP-FPM is "
    "behind nginx; `webdyno init --image .` measures a container with those"
)
IS_PACKAGE = re.compile(r"[\w.-]+/[\w.-]+")
"""Others, such as `ext-pdo_mysql`, are a part of PHP: composer installs none of them."""
LARAVEL_KEY = "base64:d2ViZHluby13ZWJkeW5vLXdlYmR5bm8td2ViZHluby0="
"""Of 32 bytes, as Laravel wants it."""


def find_in(folder: Path) -> FoundApp | None:
    """Start what composer.json or an index.php shows."""
    text = read_text(folder / "composer.json")
    root = next(
        (path for path in ("public", "web", ".") if (folder / path / "index.php").is_file()), None
    )
    if root is None:
        return None
    needs = _needs(text or "{}")
    build = INSTALL if any(map(IS_PACKAGE.fullmatch, needs)) else None
    by = "composer.json" if text is not None else f"{root}/index.php".removeprefix("./")
    if "laravel/framework" in needs:
        return _laravel(folder, needs, build)
    environment = {}
    if needs & {"symfony/framework-bundle", "symfony/symfony"}:
        environment = {"APP_ENV": "prod", "APP_DEBUG": "0", "APP_SECRET": FOR_MEASURING}
    front = f"{root}/index.php".removeprefix("./") if needs else ""
    start = f"{WORKERS} php -S 127.0.0.1:$PORT -t {root} {front}".rstrip()
    return FoundApp(by, start, build, environment=environment, doubts=(OWN_SERVER,))


def _laravel(folder: Path, needs: set[str], build: str | None) -> FoundApp:
    environment = {"APP_ENV": "production", "APP_DEBUG": "false", "APP_KEY": LARAVEL_KEY}
    example = first_of(folder, ".env.example")
    build = f"{build} && cp -n .env.example .env" if build and example else build
    prepare = None
    settings = read_text(folder / ".env.example") or ""
    if "DB_CONNECTION=sqlite" in settings:
        build = f"{build} && touch database/database.sqlite"
        prepare = "php artisan migrate --force --quiet"
    if "laravel/octane" in needs:
        start = "php artisan octane:start --host=127.0.0.1 --port=$PORT"
        return FoundApp("composer.json", start, build, prepare=prepare, environment=environment)
    start = f"{WORKERS} php artisan serve --no-reload --host=127.0.0.1 --port=$PORT"
    doubts = (OWN_SERVER,)
    return FoundApp(
        "composer.json", start, build, prepare=prepare, environment=environment, doubts=doubts
    )


def _needs(text: str) -> set[str]:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    return {str(name) for name in table(data, "require")}
