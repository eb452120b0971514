"""Variables of the environment that settings read, and files that show which there are."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import ENV_FILE, example_file
from webdyno.systems.layouts.app import FoundApp, sources
from webdyno.systems.layouts.typed_settings import READERS, keys_of_viper
from webdyno.systems.repository import Repository

LOADS_ENV_FILE = re.compile(
    r"dotenv|env-file|env_file|read_env|decouple|environs|@nestjs/config|@prisma/client|cleanenv"
    r"|\"(?:next|nuxt|astro|@sveltejs/kit)\":"
    r"|[\"'/]\.env[\"'\s]"
)
NAMES_LOADERS = ("package.json", "requirements.txt", "pyproject.toml", "Gemfile", "Cargo.toml")
ANY_PORT = "0"
OF_NODE = {".js", ".mjs", ".cjs", ".ts"}
PLAIN_VALUE = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?P<name>[A-Z][A-Z0-9_]*)="
    r"(?P<value>\"[^\"$\n]*\"|'[^'$\n]*'|[^\s$#\"']+)[ \t\r]*(?:#.*)?$",
    re.MULTILINE,
)
IS_GIVEN = re.compile(
    r"PORT|HOST|SOCKET|PG[A-Z]+"
    r"|(?:\w+_)?(?:DATABASE|DB|PG|POSTGRES(?:QL)?|MYSQL|MARIADB|REDIS)_+"
    r"(?:URL|URI|DSN|HOST\w*|SERVER|PORT|USER\w*|PASS\w*|NAME|DB|DATABASE)"
    r"|MONGODB_URI|RABBITMQ_(?:URL|HOST|PORT|USER|PASSWORD)|NATS_URL|MEMCACHE_SERVERS"
)
"""What webdyno gives itself, or its services."""
LISTENS_AS_WELL = re.compile(
    r"\w*(?:GRPC|METRICS|ADMIN|DEBUG|HEALTH|PPROF|MANAGEMENT|INTERNAL)_PORT"
)
IGNORES_ENV_FILE = re.compile(r"^(?:\*\*/|/)?\*?\.env(?:\*|\.\*)?[ \t\r]*$", re.MULTILINE)
ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?(?P<name>[A-Z][A-Z0-9_]*)[ \t]*=", re.MULTILINE)
PLACEHOLDER = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::[^}]*)?\}")
"""Of Spring's, Quarkus' and Micronaut's configurations, with a default or without."""
CONFIGURATIONS = {".properties", ".yml", ".yaml"}


def example_of(folder: Path) -> str:
    """Return the text of the file that shows variables, empty where there is none."""
    name = example_file(folder)
    return (read_text(folder / name) or "") if name else ""


def committed_values(folder: Path) -> set[str]:
    """Return the variables that a `.env` of the repository's own gives values to."""
    ignored = (read_text(up / ".gitignore") or "" for up in (folder, *folder.parents[:2]))
    of_symfony = (folder / "symfony.lock").is_file()  # which has it in Git, ignored or not
    if not of_symfony and any(IGNORES_ENV_FILE.search(text) for text in ignored):
        return set()
    text = read_text(folder / ENV_FILE) or ""
    return {match["name"] for match in PLAIN_VALUE.finditer(text) if match["value"].strip("\"'")}


def loads_env_file(folder: Path) -> bool:
    """Whether sources, or packages that they need, read a file `.env`."""
    files = [*sources(folder), *(folder / name for name in NAMES_LOADERS)]
    return any(LOADS_ENV_FILE.search(read_text(path) or "") for path in files)


def settings_of(folder: Path) -> set[str]:
    """Return the names of variables that typed settings read, and those of `.env.example`."""
    names = set(ASSIGNED.findall(example_of(folder)))
    names |= set(ASSIGNED.findall(read_text(folder / ENV_FILE) or ""))
    return names | _read_by_sources(folder)


def _read_by_sources(folder: Path) -> set[str]:
    """Return the names of variables that typed settings read."""
    names = set[str]()
    for path in sources(folder):
        if read := READERS.get(path.suffix):
            names.update(read(read_text(path) or ""))
    of_viper = (read_text(path) or "" for path in sources(folder, {".go"}))
    names.update(keys_of_viper("\n".join(text for text in of_viper if "spf13/viper" in text)))
    for path in sources(folder, CONFIGURATIONS):
        if path.stem == "application":  # others are of a profile
            names.update(PLACEHOLDER.findall(read_text(path) or ""))
    return names


def with_env_file(app: FoundApp, folder: Path, repository: Repository) -> FoundApp:
    """Return a program whose revisions get the example of a `.env` that isn't in Git.

    The file itself is one person's: neither colleagues nor CI have it.
    """
    inside = folder.resolve() / app.dir
    file = (inside / ENV_FILE).relative_to(repository.top)
    is_ignored = str(file) in repository.ignored_files()
    is_there = (inside / ENV_FILE).exists()
    if not app.start or (is_there and not is_ignored):
        return app
    if not is_there and example_file(inside) is None and _ends_without_file(inside):
        note = f"it ends without {file}, which isn't in Git: build makes an empty one"
        build = f"touch {ENV_FILE} && {app.build}" if app.build else f"touch {ENV_FILE}"
        return replace(app, build=build, notes=(*app.notes, note))
    if (example := example_file(inside)) is None:
        doubt = (
            f"Git ignores {file}, so revisions don't have it: what the application needs of it "
            "belongs below [app], as environment.NAME"
        )
        return replace(app, doubts=(*app.doubts, doubt)) if is_ignored else app
    copies = _copies(inside, example)
    if copies in (app.build or ""):
        return app
    if not (is_ignored or loads_env_file(inside)):
        return _with_values_of(app, example, inside)
    note = f"Git ignores {file}: revisions get {example} in its place"
    if not is_there:
        note = f"it reads {file}, which isn't in Git: revisions get {example} in its place"
    build = f"{copies} && {app.build}" if app.build else copies
    app = replace(app, build=build, notes=(*app.notes, note))
    return _with_values_of(app, example, inside) if _starts_without_file(app, inside) else app


ENDS_WITHOUT_FILE = re.compile(
    r"\bgodotenv\.Load\(\)(?:\s{0,99};|[ \t]*\n\s{0,99}if)[^\n{]{0,60}\{\s{0,99}"
    r"(?:[^\n{}]{0,99}\.Fatal|panic\(|os\.Exit)"
    r"|\bdotenv(?:y)?(?:::dotenv)?\(\)\s{0,99}\.(?:expect|unwrap)\(|\bDotenv::create\w{0,30}\([^()]{0,99}\)->load\("
)
"""What reads the file and goes on only where there is one."""


def _ends_without_file(folder: Path) -> bool:
    if (folder / "symfony.lock").is_file():
        return '"symfony/dotenv"' in (read_text(folder / "composer.json") or "")
    texts = (read_text(path) or "" for path in sources(folder))
    return any(map(ENDS_WITHOUT_FILE.search, texts))


PLACE_FOR_VALUE = re.compile(r"^\w+[ \t]*=[ \t]*(?:<[^<>\n]+>|\{[^{}\n]+\})[ \t\r]*$", re.MULTILINE)
"""A name in the place of a value, which no program takes for one."""
BY_NODE_ENV = re.compile(
    r"\.env(?:\.\$\{|['\"`.]{1,2}\s{0,9}\+?\s{0,9})\s{0,9}process\.env\.NODE_ENV[^}\n]{0,30}\}?(?P<rest>\.local)?"
)
"""The name of a file of variables that ends as NODE_ENV says."""
QUOTED_ENV_FILE = re.compile(r"""["'`/]\.env["'`]""")
SOURCED = re.compile(
    r"^[ \t]*(?:set -a;[ \t]*)?(?:source|\.)[ \t]+\S*(?:\.env\b|ENV_FILE)", re.MULTILINE
)
"""In a script of the shell's: what stands in the file then counts more than the environment."""
SCRIPTS = ("*.sh", "bin/*", "bin/*/*", "scripts/*", "script/*")
MOST_SCRIPTS = 100


def _copies(folder: Path, example: str) -> str:
    """Return what makes the file of its example, without addresses where a script reads it."""
    names = [match["name"] for match in PLAIN_VALUE.finditer(example_of(folder))]
    given = [name for name in names if IS_GIVEN.fullmatch(name)]
    named = (BY_NODE_ENV.search(read_text(path) or "") for path in sources(folder, OF_NODE))
    if by_mode := next(filter(None, named), None):
        copies = f"cp -n {example} {ENV_FILE}.production{by_mode['rest'] or ''}"
        is_one_of_two = QUOTED_ENV_FILE.search(by_mode.string)
        return f"cp -n {example} {ENV_FILE} && {copies}" if is_one_of_two else copies
    scripts = [path for pattern in SCRIPTS for path in sorted(folder.glob(pattern))]
    texts = (read_text(path) or "" for path in scripts[:MOST_SCRIPTS] if path.is_file())
    if given and any(map(SOURCED.search, texts)):
        return f"grep -vE '^({'|'.join(given)})=' {example} >{ENV_FILE}"
    if PLACE_FOR_VALUE.search(example_of(folder)):
        return f"grep -vE '=[<{{].*[>}}]' {example} >{ENV_FILE}"
    return f"cp -n {example} {ENV_FILE}"


OF_BUNDLE = re.compile(
    r"\bnode (?:\./)?build\b|\.output/server|dist/server/entry|\bre(?:mix|act-router)-serve\b"
)
"""What the build of SvelteKit, Nuxt, Astro and Remix makes: only the build reads the file."""
LOADED_IN_DEVELOPMENT = re.compile(
    r"^group[ (][^\n]{0,200}:development[^\n]{0,200}\n"
    r"(?:(?!^end)[^\n]*\n){0,60}?[ \t]+gem [\"']dotenv",
    re.MULTILINE,
)


def _starts_without_file(app: FoundApp, folder: Path) -> bool:
    """Whether the program that starts doesn't read the file, though something else does."""
    gems = read_text(folder / "Gemfile") or ""
    return bool(OF_BUNDLE.search(app.start or "") or LOADED_IN_DEVELOPMENT.search(gems))


def _with_values_of(app: FoundApp, example: str, folder: Path) -> FoundApp:
    """Return a program that gets what an example says, where nothing else says it.

    Further listeners get any free port: both variants are up at the same time.
    """
    read = None if _starts_without_file(app, folder) else _read_by_sources(folder)
    values = {
        match["name"]: ANY_PORT if LISTENS_AS_WELL.fullmatch(match["name"]) else match["value"]
        for match in PLAIN_VALUE.finditer(example_of(folder))
        if (read is None or match["name"] in read) and not IS_GIVEN.fullmatch(match["name"])
    }
    known = f"{app.start} {app.setup}"
    given = {name: text.strip("\"'") for name, text in values.items() if f"{name}=" not in known}
    if not given:
        return app
    note = f"its variables have the values of {example}"
    return replace(app, environment={**given, **app.environment}, notes=(*app.notes, note))
