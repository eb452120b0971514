"""Variables without which a program ends, or its build: sources read them and have no other value.

What sources do with a variable that isn't set differs by language; functions of an application's
own that insist on one have names that say so in any.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.core.format import listed_to
from webdyno.core.tables import read_text
from webdyno.systems.env_files import ENV_FILE
from webdyno.systems.layouts.app import SOURCES, FoundApp, Hindrance, sources
from webdyno.systems.layouts.node_package import is_of_another
from webdyno.systems.layouts.settings import (
    ASSIGNED,
    CONFIGURATIONS,
    IS_GIVEN,
    PLAIN_VALUE,
    example_of,
)
from webdyno.systems.layouts.typed_settings import (
    CAPITALS,
    CHECKED,
    CLAP,
    name_of_clap,
    of_python,
)
from webdyno.systems.layouts.variables import VARIABLE

NAME = "(?P<name>[A-Z][A-Z0-9_]+)"
INSISTS = re.compile(
    r"\b(?=\w{0,60}(?:[eE]nv|ENV|[vV]ar|String|Int|Bool|Config|Secret|Value|Setting|[gG]et))"
    r"(?!\w{0,60}(?:[rR]ole|[pP]ermission|[sS]cope|[aA]uth))"
    r"\w{0,30}(?:[mM]ust|[rR]equired?|[mM]andatory|OrThrow|OrPanic|OrFail|OrExit)\w{0,30}"
    rf"""(?:<\w{{1,30}}>)?\(\s{{0,99}}["'`]{NAME}["'`]\s{{0,99}}\)"""
)
"""A call such as `mustEnv("NAME")` or `getOrThrow("NAME")`."""
LISTED = re.compile(
    r"\b(?!\w{0,60}(?:[rR]ole|[pP]ermission|[sS]cope|[fF]ield))"
    r"\w{0,30}(?:[rR]equired|REQUIRED|[mM]andatory|MANDATORY)\w{0,30}\s{0,9}(?::[^=\n]{1,40})?"
    r""":?=\s{0,9}(?:%w|\[\]string)?[\[({](?P<names>[\s"'`,A-Z0-9_]{3,1500})[\])}]"""
)
"""A list of names."""
READ_BY_NAME = re.compile(
    r"\benv\[\w|\benviron(?:\.get\(|\[)[a-z]|\bin os\.environ\b|[gG]etenv\([a-z]"
    r"|\bENV(?:\[|\.\w{1,9}\??\()[a-z]"
)
"""Each variable of such a list."""
OF_SVELTE = re.compile(
    r"""\bimport\s{0,9}\{(?P<names>[^{}]{1,500})\}\s{0,9}from\s{0,9}["']\$env/static/(?:private|public)["']"""
)
"""What SvelteKit's build writes into its modules."""
WANTED_TYPE = re.compile(
    r"\A\s*(?:str|int|float|Secret(?:Str|Bytes)|\w+Url|\w+Dsn|EmailStr|[Ll]ist\[[\w.]+\])\s*(?:#|$)"
)
"""Of a field without a value."""
READ_AT_ONCE = re.compile(
    r"""^(?!\s|#)[^\n#]{0,200}?\benviron\[["'](?P<name>[A-Z][A-Z0-9_]+)["']\](?!\s{0,9}=[^=])""",
    re.MULTILINE,
)
"""As a module of Python's is imported, without a value in its place."""
IS_CONVERTED = re.compile(
    r"""\b(?:int|float|literal_eval|loads)\(\s{0,9}os\.(?:environ\.get|getenv)\("""
    r"""\s{0,9}["'](?P<name>[A-Z][A-Z0-9_]+)["']\s{0,9}\)\s{0,9}\)"""
)
"""Without a value it is an error."""
RAISES = re.compile(
    r"""^(?P<variable>\w{1,60})\s{0,9}=\s{0,9}os\.(?:environ\.get|getenv)\("""
    r"""["'](?P<name>[A-Z][A-Z0-9_]+)["']\)[^\n]{0,99}\s{1,99}if not (?P=variable)\s{0,9}:"""
    r"""\s{1,99}(?:raise|sys\.exit|exit\()""",
    re.MULTILINE,
)


def _of_python(text: str) -> Iterator[str]:
    yield from IS_CONVERTED.findall(text)
    yield from (match["name"] for match in RAISES.finditer(text))
    yield from of_python(text, WANTED_TYPE)


OF_RUST = re.compile(
    rf"""\b(?:env::)?var\(\s{{0,9}}"{NAME}"\s{{0,9}}\)\s{{0,99}}(?:\.(?:expect|unwrap)\()"""
)
HAS_DEFAULT = {"Option", "Vec", "bool"}
"""Types of arguments that need not be given."""


def _of_rust(text: str) -> Iterator[str]:
    yield from OF_RUST.findall(text)
    for match in CLAP.finditer(text):
        if match["type"] not in HAS_DEFAULT and "default" not in match["says"]:
            yield name_of_clap(match)


OF_ENVIRONMENT = re.compile(
    r"\bprocess\.env\b|validationSchema|@fastify/env|fastify-env|createEnv\("
)
"""In a source whose schema is of variables."""
CHECKS = re.compile(rf"{CHECKED.pattern}(?P<rest>[^\n]*(?:\n[ \t]+\.[^\n]*)*)", CHECKED.flags)
NEED_NOT_BE = re.compile(
    r"\.(?:optional|default|catch|nullish|nullable|prefault)\(|efault\s*:|Optional\("
)
MUST_BE = re.compile(r"\.required\(")
ENDS = re.compile(
    rf"\bif\s{{0,9}}\(\s{{0,9}}!\s{{0,9}}process\.env\.{NAME}\s{{0,9}}\)\s{{0,9}}\{{?\s{{0,99}}"
    r"(?:console\.\w{1,9}\([^\n]{0,200}\s{1,99})?(?:throw\b|process\.exit\()"
)


DECLARED = re.compile(
    rf"^(?:export )?(?:const|let|var) [^\n]{{0,200}}?\bprocess\.env\.{NAME}"
    r"(?:!|\s{1,9}as string\b)",
    re.MULTILINE,
)
"""As a module is read, said to be there: what takes it ends without."""


def _of_script(text: str) -> Iterator[str]:
    yield from DECLARED.findall(text)
    for names in OF_SVELTE.findall(text):
        yield from CAPITALS.findall(names)
    yield from ENDS.findall(text)
    if OF_ENVIRONMENT.search(text):
        for match in CHECKS.finditer(text):
            is_joi = re.search(r":\s*[Jj]oi\.", match[0]) is not None
            if MUST_BE.search(match["rest"]) if is_joi else not NEED_NOT_BE.search(match["rest"]):
                yield match["name"]


ENDS_IF_EMPTY = (
    r"""[ \t]*== ""(?: \|\|[^\n{&]{1,200})?[ \t]*\{[ \t]*\n(?:[^\n{}]{1,200}\n){0,2}"""
    r"[^\n{}]{0,200}(?:\.Fatal|\bpanic\(|\bos\.Exit\b"
    r"|\breturn [^\n]{0,99}(?:errors\.New|Errorf)\()"
)
"""In Go, behind a name: without a value it is an error."""
EMPTY_IN_GO = re.compile(
    rf"""\bos\.Getenv\("{NAME}"\)(?:[ \t]*\n\s{{0,99}}if \w{{1,40}}|;[ \t]*\w{{1,40}})?"""
    rf"{ENDS_IF_EMPTY}"
)
REQUIRED_TAG = re.compile(
    r"""`(?=[^`\n]{0,200}(?:,\s?required|,\s?notEmpty|(?:env-)?required:"true"))"""
    r"""(?![^`\n]{0,200}efault:")[^`\n]{0,200}?\b(?:env|envconfig):"(?P<name>[A-Z][A-Z0-9_]*)\b"""
)


def _of_go(text: str) -> Iterator[str]:
    yield from EMPTY_IN_GO.findall(text)
    yield from REQUIRED_TAG.findall(text)


OF_RUBY = re.compile(
    rf"""^[^\n#]{{0,200}}?\bENV\.fetch[( ]\s{{0,9}}["']{NAME}["']\)?+"""
    r"""(?![\w ]{0,9}[,{]|\s{0,9}do\b)""",
    re.MULTILINE,
)
IN_DEVELOPMENT = re.compile(r"\b(?:development|test)\b")
OF_JVM = re.compile(
    r"\b\w{0,30}[eE]nv\w{0,30}"
    rf"""\(\s{{0,9}}"{NAME}"\s{{0,9}}\)\s{{0,99}}(?:!!|\?:\s{{0,99}}(?:throw\b|error\())"""
)
COMMENT_OF_ELIXIR = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
OF_ELIXIR = re.compile(
    rf"""\bSystem\.(?:fetch_env!\(|get_env\((?=["'][A-Z0-9_]{{1,80}}["']\)\s{{0,99}}\|\|\s{{0,99}}raise\b))"""
    rf"""["']{NAME}["']"""
)
RAISED_IN_ELIXIR = re.compile(rf"\benvironment variable {NAME} is (?:missing|not set)")
RUNTIME = "import Config"
"""In a configuration of Elixir's."""


def _of_jvm(text: str) -> Iterator[str]:
    yield from OF_JVM.findall(text)


def _of_ruby(text: str) -> Iterator[str]:
    for match in OF_RUBY.finditer(text):
        if not IN_DEVELOPMENT.search(match[0]):
            yield match["name"]


def _of_elixir(text: str) -> Iterator[str]:
    if RUNTIME in text:
        own = COMMENT_OF_ELIXIR.sub("", text)
        yield from (*OF_ELIXIR.findall(own), *RAISED_IN_ELIXIR.findall(own))


BY_LANGUAGE: Mapping[str, Callable[[str], Iterator[str]]] = {
    ".py": _of_python,
    ".rs": _of_rust,
    ".go": _of_go,
    ".rb": _of_ruby,
    ".exs": _of_elixir,
    **dict.fromkeys((".java", ".kt"), _of_jvm),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".svelte"), _of_script),
}
OF_ENDINGS = frozenset(BY_LANGUAGE)


def wanted_in(text: str, ending: str) -> Iterator[str]:
    """Return the variables that the text of a source insists on; `ending`: of its file."""
    if read := BY_LANGUAGE.get(ending):
        yield from read(text)
    yield from INSISTS.findall(text)
    for match in LISTED.finditer(text) if READ_BY_NAME.search(text) else ():
        yield from CAPITALS.findall(match["names"])


GIVEN = re.compile(r"\b([A-Z][A-Z0-9_]*)=")
"""In a command."""
WITHOUT_DEFAULT = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
BUNDLED = {".ts", ".js", ".tsx", ".jsx", ".svelte", ".vue"}
OF_BUNDLE = re.compile(
    r"\bimport\.meta\.env\.(VITE_\w*(?:KEY|TOKEN|UR[LI]|HOST|ENDPOINT)\w*)\b(?!\s{0,9}(?:\|\||\?|as\b))"
)
"""What a bundle of Vite's has without a value in its place: the build reads it."""
OF_SYMFONY = re.compile(
    r"%env\((?!(?:\w{1,30}:){0,5}default:)(?:\w{1,30}:){0,5}([A-Z][A-Z0-9_]*)\)%"
)
DEFAULT_OF_SYMFONY = re.compile(r"\benv\(([A-Z][A-Z0-9_]*)\)['\"]?[ \t]*:")
ELSEWHERE_IN_SYMFONY = re.compile(
    r"^when@(?:dev|test):[ \t\r]*\n(?:[ \t#][^\n]*\n|\r?\n)*|#[^\n]*", re.MULTILINE
)
"""What development and tests alone read, and comments."""
COMMENT_OF_SCRIPT = re.compile(r"^[ \t]*//[^\n]*", re.MULTILINE)
OF_SETTINGS = re.compile(r"settings|conf|constants|env")
WITH_DEFAULT = re.compile(r"\$\{([A-Z][A-Z0-9_]*):")
OF_FRONT = re.compile(
    r"(?:[A-Z0-9]+_)*(?:CORS|ALLOWED|FRONT_?END|CLIENT)_(?:[A-Z0-9]+_)*(?:ORIGINS?|URL)"
    r"|(?:APP|WEB|SITE|BASE|PUBLIC)_(?:BASE_)?URL"
)
"""Where users' browsers come from, or come to: it is written into headers and links alone."""
FRONT_HOST = "localhost"
FRONT = f"http://{FRONT_HOST}:3000"
CHECKS_HOST = "HostAuthorization"
"""In a source of Rack's: requests for the front's host alone are answered."""
WANTS_HTTPS = re.compile(
    r"""["'`](?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b[^"'`\n]{0,60}\b(?:must|should|needs?)\b"""
    r"""[^"'`\n]{0,40}\bhttps://"""
)
"""In what sources say of a variable."""
IN_PRODUCTION = re.compile(r"\b(?:production|isProd\w*)\b")
NO_HTTPS = "in production it wants https:// in {names}: --env NAME=https://… gives them"
READ_WITHOUT = {".js", ".mjs", ".cjs", ".ts", ".py", ".go", ".java", ".kt"}
"""Endings of sources whose languages go on without a variable."""
OTHERWISE = re.compile(
    r"""["'`]\s{0,9},|["'`]?\s{0,9}[)\]]{0,3}\s{0,9}"""
    r"(?:\|\||\?|&&|[=!]==?|=[^=>]|;[ \t]{0,9}\w{1,40}[ \t]{0,9}[!=]="
    r"|or\b|in\b|if\b|is\b|\n\s{0,99}if\b)"
)
"""Behind a reading: there is another value, or it is looked at whether there is one."""
ASKED_BEFORE = re.compile(r"(?:\b(?:if|not|elif|while)|&&|\|\||[?!])\s{0,9}\(?\s{0,9}(?:os\.)?$")
OF_TOOLS = re.compile(r"(?:^|/)(?:scripts?|tools?|seed\w*|[^/]*seed[^/]*)(?:/|$)|\.config\.|migrat")
USUAL = re.compile(
    r"(?:NODE|NPM|NEXT|NUXT|VITE|REACT_APP|VUE_APP|EXPO|FLASK|DJANGO|VERCEL|RENDER|RAILWAY|HEROKU"
    r"|FLY|GITHUB|GIT|SENTRY|OTEL|LOG|DEBUG|CORS|BUILD|VERSION|CI|TZ|HOME|PATH|PWD|USER|HOSTNAME"
    r"|ENV|ENVIRONMENT|DYNO|APP_(?:ENV|NAME|VERSION)|TMPDIR|SHELL|TERM|XDG)(?:_\w+)?"
)
"""Of frameworks, hosters and shells."""
MOST_NAMED = 8
UNSURE = (
    "its sources read {names}, and nothing gives them: --env NAME=VALUE gives those that it can't "
    "do without"
)
LACKS = "its settings want {names}: --env NAME=VALUE gives them, environment.NAME below [app]"


def wanted_variables(folder: Path) -> set[str]:
    """Return the variables without which a program of a folder ends."""
    wanted = {
        name
        for path in sources(folder, SOURCES | OF_ENDINGS)
        for name in wanted_in(read_text(path) or "", path.suffix)
    }
    for path in sources(folder, {".py"}):
        if any(map(OF_SETTINGS.search, path.relative_to(folder).parts)):
            wanted |= set(READ_AT_ONCE.findall(read_text(path) or ""))
    for path in sources(folder, BUNDLED):
        if is_of_another(path, folder):
            continue
        wanted |= set(OF_BUNDLE.findall(COMMENT_OF_SCRIPT.sub("", read_text(path) or "")))
    files = sources(folder, CONFIGURATIONS)
    placeholders = "\n".join(read_text(path) or "" for path in files if path.stem == "application")
    lacking = {*WITHOUT_DEFAULT.findall(placeholders)} - {*WITH_DEFAULT.findall(placeholders)}
    texts = (read_text(path) or "" for path in files if path.parent.name not in {"dev", "test"})
    of_symfony = ELSEWHERE_IN_SYMFONY.sub("", "\n".join(texts))
    lacking |= {*OF_SYMFONY.findall(of_symfony)} - {*DEFAULT_OF_SYMFONY.findall(of_symfony)}
    return wanted | lacking


def _read_in_good_faith(folder: Path) -> tuple[set[str], set[str]]:
    """Return the variables that sources read as if they were always there.

    The others are those that they want to have https in, in production.
    """
    plain, others, safe = set[str](), set[str](), set[str]()
    for path in sources(folder, READ_WITHOUT):
        text = read_text(path) or ""
        safe |= set(WANTS_HTTPS.findall(text)) if IN_PRODUCTION.search(text) else set()
        is_tool = OF_TOOLS.search(str(path.relative_to(folder)))
        for match in VARIABLE.finditer(text) if not is_tool else ():
            before = text[max(match.start() - 40, 0) : match.start()]
            is_of_bundle = match[0].startswith("import.meta")
            is_asked = OTHERWISE.match(text, match.end()) or ASKED_BEFORE.search(before)
            (others if is_asked or is_of_bundle else plain).add(match["name"])
    known = {name for name in plain if USUAL.fullmatch(name) or IS_GIVEN.fullmatch(name)}
    return plain - others - known, safe


def with_wanted_variables(app: FoundApp, folder: Path) -> FoundApp:
    """Name the variables without which a program ends, and that nothing gives it."""
    if not app.start:
        return app
    wanted = wanted_variables(folder)
    examples = {match["name"]: match["value"] for match in PLAIN_VALUE.finditer(example_of(folder))}
    given = app.environment.keys() | examples.keys()
    given |= set(GIVEN.findall(f"{app.start} {app.build}"))
    given |= set(ASSIGNED.findall(read_text(folder / ENV_FILE) or ""))
    lacking = sorted(
        name for name in wanted - given if not (name == "PORT" or _is_of_service(name, app))
    )
    fronts = [name for name in lacking if OF_FRONT.fullmatch(name)]
    if fronts:
        values = {name: _address_of_front(name, folder) for name in fronts}
        note = f"its settings want {', '.join(fronts)}: a front of this machine is given"
        environment = {**app.environment, **values}
        app = replace(app, environment=environment, notes=(*app.notes, note))
        if any(CHECKS_HOST in (read_text(path) or "") for path in sources(folder, {".rb"})):
            app = replace(app, headers={"Host": FRONT_HOST, **app.headers})
    lacking = [name for name in lacking if name not in fronts]
    plain, safe = _read_in_good_faith(folder)
    said, values = " ".join(app.doubts), {**examples, **app.environment}
    unsure = sorted(name for name in plain - given - wanted if name not in said)
    if unsure:
        doubt = UNSURE.format(names=listed_to(MOST_NAMED, unsure))
        app = replace(app, doubts=(*app.doubts, doubt))
    unsafe = sorted(name for name in safe if "https:" not in values.get(name, ""))
    for doubt, names in ((LACKS, lacking), (NO_HTTPS, unsafe)):
        if names:
            app = app.hindered(Hindrance.BEHIND, doubt.format(names=", ".join(names)), *names)
    return app


def _address_of_front(name: str, folder: Path) -> str:
    """Return an address, in a list where that is what pydantic reads without words of one's own."""
    texts = (read_text(path) or "" for path in sources(folder, {".py"}))
    listed = re.compile(rf"\b{name}[ \t]*:[ \t]*[Ll]ist\[")
    in_list = any(listed.search(text) and "parse_env_var" not in text for text in texts)
    return f'["{FRONT}"]' if in_list else FRONT


def _is_of_service(name: str, app: FoundApp) -> bool:
    return bool(app.services) and IS_GIVEN.fullmatch(name) is not None
