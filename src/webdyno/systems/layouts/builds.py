"""What other files say of how an application is built and started: its image, scripts, sources.

What a layout leaves out of that is taken over where it is plain, and named else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import json_table, read_text, table
from webdyno.systems.layouts.app import (
    FoundApp,
    Hindrance,
    first_of,
    first_place,
    line_of,
    sources,
)
from webdyno.systems.layouts.node_package import members_of, package_in
from webdyno.systems.layouts.settings import MOST_SCRIPTS, SCRIPTS
from webdyno.systems.layouts.start_scripts import SCRIPT_FOLDERS, SHELL_COMMENT, command_of_image

COMPILED = {"go.mod", "Cargo.toml", "CMakeLists.txt"}
"""By what is found whose program an image starts as well."""
OF_SHELL = re.compile(r"[&|;$`<>]")
OF_PORT = re.compile(r"port|listen|addr|bind|host", re.IGNORECASE)
IN_IMAGE = "{name} starts it with `{words}`, which its program may need here as well"


def with_words_of_image(app: FoundApp, folder: Path) -> FoundApp:
    """Start a program with the words that its image starts it with."""
    if app.by not in COMPILED or not app.start or " " in app.start.strip():
        return app
    name, command = command_of_image(folder)
    program, _, words = command.partition(" ")
    is_own = program.startswith((".", "/")) or "/" not in program
    if not words or not is_own or OF_SHELL.search(command):
        return app
    if program.rpartition("/")[2] in {"go", "cargo", "sh", "bash", "air", "tini", "dumb-init"}:
        return app
    if OF_PORT.search(words) or re.search(r"(?:^|[ =])/", words):
        return replace(app, doubts=(*app.doubts, IN_IMAGE.format(name=name, words=words)))
    note = f"{name} starts it with {words}"
    return replace(app, start=f"{app.start} {words}", notes=(*app.notes, note))


def with_unmade(app: FoundApp, folder: Path) -> FoundApp:
    """Name what a build would have to make, or get, and doesn't."""
    if not app.start:
        return app
    texts = {path: read_text(path) or "" for path in sources(folder, {".go", ".rs"})}
    for doubt in (
        *_unmade_files(app, folder, texts),
        *_from_outside(folder),
        *_fetched(app, folder),
        *_uninstalled(app, folder),
        *_absent(app, folder),
        *_wants_at_build(app, folder, texts),
    ):
        app = app.hindered(Hindrance.BEHIND, doubt)
    return app


EMBEDS = re.compile(r"^//go:embed[ \t]+(?:all:)?(?P<what>[\w./-]+)", re.MULTILINE)
NOT_EMBEDDED = "{place} embeds {what}, which isn't in Git: build has to make it first, as {by} does"
BUILD_SCRIPTS = ("build.sh", "render-build.sh", "render_build.sh")
FRONT_BUILD = re.compile(
    r"\b(?:(?:npm|pnpm|yarn)(?:@[\w.]{1,20})?"
    r"(?: --?\w[\w-]{0,40}(?:[= ][\w./][\w./-]{0,80})?){0,5}(?: run)?"
    r"|bun run) build(?::\w+)?\b"
)
OTHER_STEPS = re.compile(
    r"\b(?:createcachetable|compilemessages|templ generate|buf generate|trunk build"
    r"|wasm-pack build|tailwindcss -\w[^\n&;|]{0,100}|lexik:jwt:generate-keypair)\b"
)
"""Of builds and deployments: what makes something that is there before a program starts."""
LACKS_STEP = "{by} also runs `{step}`, which neither build nor setup has"
RUNS = re.compile(r"^[ \t]*RUN[ \t]+(?P<line>[^\n]+)", re.MULTILINE | re.IGNORECASE)


def _unmade_files(app: FoundApp, folder: Path, texts: dict[Path, str]) -> Iterator[str]:
    """Yield what a build makes elsewhere, and what sources take into themselves."""
    steps = list(_steps_elsewhere(folder))
    made = f"{app.build or ''} && {app.setup or ''} && {app.prepare or ''}"
    for path, text in texts.items():
        for match in EMBEDS.finditer(text) if path.suffix == ".go" else ():
            what = match["what"]
            if not any(path.parent.glob(f"{what}*")) and what not in made:
                place = line_of(folder, path, text, match.start())
                by = next((name for name, step in steps if FRONT_BUILD.search(step)), "a release")
                yield NOT_EMBEDDED.format(place=place, what=what, by=by)
                return
    for name, step in steps:
        is_front = FRONT_BUILD.fullmatch(step) is not None
        is_made = FRONT_BUILD.search(made) if is_front else " ".join(step.split()[:2]) in made
        if not is_made:
            yield LACKS_STEP.format(by=name, step=step)
            return


def _steps_elsewhere(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield steps of build scripts and images, each behind its file's name."""
    scripts = [f"{where}{name}" for where in SCRIPT_FOLDERS for name in BUILD_SCRIPTS]
    for name in (*scripts, "Dockerfile", "Containerfile", "nixpacks.toml", "render.yaml"):
        text = read_text(folder / name)
        if text is None:
            continue
        if name in {"Dockerfile", "Containerfile"}:
            text = "\n".join(RUNS.findall(text.replace("\\\n", " ")))
        for pattern in (FRONT_BUILD, OTHER_STEPS):
            for match in pattern.finditer(SHELL_COMMENT.sub("", text)):
                yield name, match[0].strip()


OUTSIDE = {
    "Cargo.toml": re.compile(r"""\bpath\s{0,9}=\s{0,9}"(?P<what>(?:\.\./)+[\w./-]+)\""""),
    "go.mod": re.compile(r"=>[ \t]+(?P<what>(?:\.\./)+[\w./-]+)"),
    "package.json": re.compile(r"""\"(?:file|link):(?P<what>(?:\.\./)+[\w./-]+)\""""),
    "requirements.txt": re.compile(r"^(?:-e[ \t]+)?(?P<what>(?:\.\./)+[\w./-]+)", re.MULTILINE),
    "pyproject.toml": re.compile(r"""\bpath\s{0,9}=\s{0,9}"(?P<what>(?:\.\./)+[\w./-]+)\""""),
}
NOT_HERE = "{file} wants {what}, which isn't there: a revision has only what its repository has"


def _from_outside(folder: Path) -> Iterator[str]:
    """Yield what lists of packages take from elsewhere on somebody's machine."""
    for file, taken in OUTSIDE.items():
        for match in taken.finditer(read_text(folder / file) or ""):
            if not (folder / match["what"]).exists():
                yield NOT_HERE.format(file=file, what=match["what"])
                break


FETCHES = re.compile(
    r"\bgit clone\b[^\n;&|#]{1,200}?(?:://|git@)\S{1,200}[ \t]{1,9}"
    r"(?P<folder>[^\s;&|-][^\s;&|]{0,99})|\b(?:curl|wget)\b[^\n;&|#]{0,300}?[ \t]"
    r"(?:-[a-zA-Z]{0,5}[oO]|--output(?:-document)?)[ =]{1,9}(?P<file>[^\s;&|]{1,200})"
)
ASSIGNS = re.compile(
    r"""^[ \t]*(?P<name>\w+)[ \t]*:?=[ \t]*["']?(?P<value>[\w.:/@-]+)["']?[ \t]*$""", re.MULTILINE
)
OF_VARIABLE = re.compile(r"\$[{(]?(?P<name>\w+)[})]?")
PLAIN_PATH = re.compile(r"\w[\w-]*(?:[./][\w-]+)*")
FETCHING = (*SCRIPTS, "Makefile", "justfile", "Dockerfile")
FETCHED = "{by} gets {what}, which isn't in Git, and {place} names it: build has to get that first"


def _fetched(app: FoundApp, folder: Path) -> Iterator[str]:
    """Yield what scripts get from elsewhere and sources name."""
    scripts = [path for pattern in FETCHING for path in sorted(folder.glob(pattern))]
    for script in scripts[:MOST_SCRIPTS]:
        text = read_text(script) or "" if script.is_file() else ""
        for what in _targets(SHELL_COMMENT.sub("", text)):
            is_there = (folder / what).exists() or script.name in (app.build or "")
            name = re.compile(rf"[\"'/]{re.escape(what)}(?=[\"'/])")
            if not is_there and (place := first_place(folder, name)):
                by = script.relative_to(folder)
                yield FETCHED.format(by=by, what=what, place=place)
                return


def _targets(text: str) -> Iterator[str]:
    """Yield the relative paths at which a script puts what it gets."""
    values = {match["name"]: match["value"] for match in ASSIGNS.finditer(text)}
    filled = OF_VARIABLE.sub(lambda named: values.get(named["name"], named[0]), text)
    for match in FETCHES.finditer(filled):
        what = (match["folder"] or match["file"]).strip("\"'").removeprefix("./").rstrip("/")
        if PLAIN_PATH.fullmatch(what):
            yield what


IN_FOLDER = re.compile(
    r"(?:\bcd[ \t]+|\bnode[ \t]+|--prefix[ =]|--cwd[ =])(?:\./)?(?P<inside>[\w-]+)(?=[/ \t&]|$)"
)
"""In a script of Node's: it starts something in a folder."""
NOT_INSTALLED = (
    "it starts what is in {inside}, whose packages build doesn't install: "
    "`npm ci --prefix {inside}` behind it does"
)
IN_IMAGE_OF_NODE = re.compile(
    r"\b(?:node|bun|tsx|ts-node)(?:[ \t]+--?[\w=-]+){0,9}[ \t]+(?:\./)?"
    r"(?P<file>[\w./-]+?)(?:\.[cm]?[jt]s)?(?=\s|$)"
)
ANOTHER_FILE = "{name} starts {file}, and here another file is started: see which is meant"


def _uninstalled(app: FoundApp, folder: Path) -> Iterator[str]:
    """Yield a folder with packages of its own that a script leads to, and another file's."""
    package = package_in(folder)
    if app.by != "package.json" or package is None:
        return
    members = {each.folder for each in members_of(folder, package)}
    says = " ".join(filter(None, (app.start, *package.scripts.values())))
    started = next((says for name, says in package.scripts.items() if name == "start"), "")
    for match in IN_FOLDER.finditer(f"{app.start} {started}"):
        inside = folder / match["inside"]
        data = json_table(read_text(inside / "package.json") or "")
        is_built = re.search(rf"\b{re.escape(match['inside'])}\b", app.build or "")
        hooks = " ".join(package.scripts.get(name, "") for name in ("postinstall", "build"))
        is_hooked = match["inside"] in hooks and "install" in hooks
        if table(data, "dependencies") and not (is_built or is_hooked or inside in members):
            yield NOT_INSTALLED.format(inside=match["inside"])
            break
    name, command = command_of_image(folder)
    of_image = IN_IMAGE_OF_NODE.search(command)
    own = IN_IMAGE_OF_NODE.search(app.start or "")
    if of_image and own and of_image["file"] not in says:
        yield ANOTHER_FILE.format(name=name, file=of_image["file"])


STARTS_FILE = re.compile(
    r"(?:^|[ \t/])(?:node|tsx|ts-node|python3?)[ \t]+"
    r"(?:(?:-r|--require|--import|--loader|--project)[ \t]+\S+[ \t]+|--?(?!m\b)[\w=-]+[ \t]+){0,9}"
    r"(?:\./)?(?P<file>\w[\w./-]*)(?=[ \t]|$)"
)
RUNS_SCRIPT = re.compile(r"\brun (?P<name>\w[\w:.-]*)")
OF_COMPOSER = re.compile(r"/vendor/autoload\.php\b")
MADE_BY_BUILD = {"dist", "build", "lib", "out", ".output", ".next", "node_modules"}
ENDINGS_OF_NODE = ("", ".js", ".mjs", ".cjs", "/index.js", ".ts")
ABSENT = "it starts {file}, which isn't there, and nothing here makes it: --start names another"


def _absent(app: FoundApp, folder: Path) -> Iterator[str]:
    """Yield a file that is started and that neither Git nor a build has."""
    package, by_script = package_in(folder), RUNS_SCRIPT.search(app.start or "")
    by_manager = package.scripts.get(by_script["name"], "") if package and by_script else ""
    match = STARTS_FILE.search(by_manager or app.start or "")
    by_composer = OF_COMPOSER.search(read_text(folder / "public/index.php") or "")
    if by_composer and not ((folder / "composer.json").is_file() or (folder / "vendor").is_dir()):
        yield NOT_HERE.format(file="public/index.php", what="vendor, by a composer.json")
    if match is None or re.search(r"\bcd ", app.start or ""):
        return
    file = match["file"]
    is_made = Path(file).parts[0] in MADE_BY_BUILD and " run " in (app.build or "")
    if not is_made and not any((folder / f"{file}{end}").exists() for end in ENDINGS_OF_NODE):
        yield ABSENT.format(file=file)


CHECKED_QUERY = re.compile(r"\bquery(?:_as|_scalar|_file|_file_as)?!\s{0,9}\(")
WANTS_DATABASE = (
    "sqlx checks its queries against a database as it is built: `cargo sqlx prepare` keeps what it "
    "needs in .sqlx"
)
TOOLCHAINS = ("vcpkg.json", "conanfile.txt", "conanfile.py")
WANTS_TOOLCHAIN = (
    "{file} names its libraries: build has to install those, and to name the toolchain"
)


def _wants_at_build(app: FoundApp, folder: Path, texts: Mapping[Path, str]) -> Iterator[str]:
    """Yield what compilers want that isn't in Git."""
    of_sqlx = app.by == "Cargo.toml" and any(map(CHECKED_QUERY.search, texts.values()))
    if of_sqlx and not ((folder / ".sqlx").is_dir() or (folder / "sqlx-data.json").is_file()):
        yield WANTS_DATABASE
    if app.by == "CMakeLists.txt" and (file := first_of(folder, *TOOLCHAINS)):
        yield WANTS_TOOLCHAIN.format(file=file)
