"""Routes whose whole path sources say: of an application, and of routers that it mounts.

Sources of Python, Node and Go hang routes on routers, which other files put below a prefix. What
hangs on one that nothing mounts, as on a function's parameter, has a path that isn't known here,
and what a guard stands before isn't for everybody.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, sources
from webdyno.systems.layouts.routes import SOURCES, known_routes, route_of

ENDINGS = {".py", ".go", ".js", ".mjs", ".cjs", ".ts"}
NAME = r"(?P<name>[A-Za-z_]\w{0,60})"
ASSIGNS = rf"\b{NAME}\s{{0,9}}(?:(?::[^=\n]{{1,60}})?:?=|:)\s{{0,9}}(?:await )?"
MAKES_APP = re.compile(
    rf"{ASSIGNS}(?:(?:fast_?api\.|flask\.|Fastify\.)?(?:Flask|FastAPI|Quart|Sanic|Bottle|Starlette)\("
    r"|express\(\)|[fF]astify\(|new (?:Hono|Elysia|OpenAPIHono)\b|createApp\("
    r"|gin\.(?:Default|New)\(|echo\.New\(|fiber\.New\(|chi\.NewRouter\(|chi\.NewMux\("
    r"|mux\.NewRouter\(|http\.NewServeMux\(|httprouter\.New\()"
)
GIVEN_IN_GO = re.compile(
    rf"\b{NAME}[ \t]+\*(?:http\.ServeMux|gin\.Engine|echo\.Echo|fiber\.App|mux\.Router)\b"
)
OF_EACH = re.compile(r"new (?:Hono|Elysia|OpenAPIHono)\b")
"""What both an application and its parts are made by."""
ENTRIES = {"index", "main", "server", "app"}
MAKES_ROUTER = re.compile(
    rf"{ASSIGNS}(?:(?:express\.)?Router\(\)|APIRouter\((?P<api>[^()]{{0,400}})"
    r"|(?:\w+\.)?Blueprint\((?P<blueprint>[^()]{0,400}(?:\(__name__\)[^()]{0,200})?))"
)
OF_PREFIX = re.compile(r"""\b(?:url_)?prefix\s{0,9}=\s{0,9}f?["'](?P<path>[^"'{}]{0,100})["']""")
GROUPS = re.compile(
    rf"{ASSIGNS}(?P<of>[A-Za-z_]\w{{0,60}})\.(?:Group|PathPrefix|basePath)\("
    r"""\s{0,9}["'](?P<path>[^"']{0,100})["'](?P<rest>[^\n]{0,200})"""
)
MOUNTS_IN_PYTHON = re.compile(
    r"\b(?P<of>\w{1,60})\.(?:include_router|register_blueprint)\(\s{0,99}(?P<what>[\w.]{1,99})"
    r"(?P<rest>[^()]{0,300}(?:\([^()]{0,99}\)[^()]{0,99})?)"
)
MOUNTS_IN_NODE = re.compile(
    r"""\b(?P<of>\w{1,60})\s{0,30}\.(?:use|route|register)\(\s{0,30}(?:["'`](?P<path>/[^"'`]{0,100})["'`]\s{0,30},)?"""
    r"""(?P<between>[^()\n;]{0,200}?)\b(?P<what>require\(\s{0,9}["'][^"']{1,200}["']\s{0,9}\)|[A-Za-z_]\w{0,60})\s{0,30},?\s{0,30}\)"""
)
IMPORTS = re.compile(
    r"""\bimport\s{1,9}(?:\{(?P<several>[^{}]{1,300})\}|(?P<one>\w{1,60}))\s{1,9}from\s{1,9}["'](?P<place>[^"'\n]{1,200})["']"""
    r"""|\b(?:const|let|var)\s{1,9}(?:\{(?P<parts>[^{}]{1,300})\}|(?P<whole>\w{1,60}))\s{0,9}=\s{0,9}require\(\s{0,9}["'](?P<required>[^"'\n]{1,200})["']"""
)
IMPORTS_IN_PYTHON = re.compile(
    r"^[ \t]*from[ \t]+(?P<place>[\w.]{1,200})[ \t]+import[ \t]+"
    r"(?:\((?P<lines>[^()]{1,800})\)|(?P<line>[^\n(]{1,300}))",
    re.MULTILINE,
)
ROUTES = re.compile(
    r"""(?P<at>@?)\b(?P<of>[A-Za-z_]\w{0,60})\s{0,30}\."""
    r"""(?:get|GET|Get|route|HandleFunc|Handle)\(\s{0,30}["'`](?:GET )?"""
    r"""(?P<path>/[^"'`\s]{0,150})?["'`](?P<rest>[^\n]{0,300})"""
)
OTHER_METHODS = re.compile(r"methods\s{0,9}=(?![^\]\n]{0,100}[\"']GET)")
GUARDS = re.compile(
    r"auth|protect|login_?required|requires?|verify|jwt|guard|is_?admin|is_?logged|permission|authoriz"
    r"|current_?user|check_?session|role|token|ensure|private|deserialize_?user|middleware\.\w",
    re.IGNORECASE,
)
"""In what stands before a handler, or around it."""
USES_GUARD = re.compile(r"\b(?P<of>\w{1,60})\.(?:use|Use)\(\s{0,9}(?P<what>[^\n\"'`)]{1,200})")
OF_ONE_USER = re.compile(r"/(?:user|me|mine|my|profile|account|dashboard|admin)(?:[/_-]|$)")
GIVES_FILES = re.compile(r"FileServer|StripPrefix|\bstatic\b", re.IGNORECASE)
BEHIND = 800
"""Letters behind a route of Python's in which decorators and parameters of its function stand."""
DEEPEST = 5
MOST_UNTRIED = 6


@dataclass
class _File:
    text: str
    apps: set[str] = field(default_factory=set)
    routers: dict[str, str] = field(default_factory=dict)
    """By name: its own prefix."""
    groups: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    """By name: what it is of, its prefix, and whether a guard stands before it."""
    imported: dict[str, str] = field(default_factory=dict)
    """By name: where it is from."""
    guarded: set[str] = field(default_factory=set)


GUARDS_ALL = re.compile(
    r"\bAPP_GUARD\b|\buseGlobalGuards\(|\bSecurityFilterChain\b|\bWebSecurityConfigurerAdapter\b"
    r"|\bbefore_action :authenticate_\w+|\bLoginRequiredMiddleware\b"
    r"|\bpath: \^/, roles: (?!PUBLIC_ACCESS)|\bpipe_through\b[^\n]{0,80}?(?:auth|login|protected)"
    r"|:(?:live_user_required|ensure_authenticated)\b"
)
"""Of NestJS, Spring, Rails, Django, Symfony and Phoenix, in sources or settings: most paths want a
login."""
STAYS_OPEN = re.compile(
    r"/(?:api/)?(?:v\d/)?(?:health\w*|ping|status|readyz|livez|log-?in|sign-?in|register|sign-?up"
    r"|docs|public[\w/-]*)?"
)


def untried_paths(app: FoundApp, folder: Path) -> list[str]:
    """Return some paths that may well be there, where nobody can ask for them."""
    by, routes = known_routes(app, folder)
    mounted = mounted_paths(folder) if by == SOURCES else None
    if mounted is not None:
        routes = [route_of("GET", path, {}) for path in mounted]
    known = [
        route for route in routes if route.filled and not route.lacks and "*" not in route.path
    ]
    plain = [route.path for route in known if route.filled == route.path]
    if mounted is None and _is_guarded_whole(folder):
        known, plain = [], list(filter(STAYS_OPEN.fullmatch, plain))
    return (plain or [route.filled or "" for route in known])[:MOST_UNTRIED] or ["/"]


def _is_guarded_whole(folder: Path) -> bool:
    files = [*sources(folder), folder / "config/packages/security.yaml"]
    return any(GUARDS_ALL.search(read_text(path) or "") for path in files)


def mounted_paths(folder: Path) -> list[str] | None:
    """Return the paths that everybody may ask for; None where no source is of such a language."""
    if (folder / "artisan").is_file():
        return list(_of_laravel(folder))
    files = {path: _read(path) for path in sources(folder, ENDINGS)}
    if not any(file.apps - {"http"} or "http.Handle" in file.text for file in files.values()):
        return None
    parts = [path for path, file in files.items() if OF_EACH.search(file.text)]
    for path in parts if len(parts) > 1 else ():
        if path.stem not in ENTRIES or path.parent not in {folder, folder / "src"}:
            files[path].routers = dict.fromkeys(files[path].apps, "")
            files[path].apps = set()
    mounts = {path: list(_mounts(path, files)) for path in files}
    paths: dict[str, None] = {}
    for path, file in files.items():
        for match in ROUTES.finditer(file.text):
            prefixes = list(_prefixes(path, match["of"], files, mounts))
            if prefixes and not _is_closed(file, path, match):
                whole = f"{prefixes[0]}{match['path'] or ''}".replace("{$}", "") or "/"
                of_node = path.suffix not in {".py", ".go"}
                paths[whole.rstrip("/") or "/" if of_node else whole] = None
    return list(paths)


ROUTE_OF_LARAVEL = re.compile(
    r"""^Route::(?P<before>[^\n;]{0,200}?)\bget\(\s{0,9}["'](?P<path>[^"'{}]{0,150})["'](?P<rest>[^;]{0,300})""",
    re.MULTILINE,
)
"""At a line's beginning: others are in a group, which may have a prefix, or a guard."""
BELOW = {"web.php": "", "api.php": "/api"}


def _of_laravel(folder: Path) -> Iterator[str]:
    for name, prefix in BELOW.items():
        for match in ROUTE_OF_LARAVEL.finditer(read_text(folder / "routes" / name) or ""):
            path = f"{prefix}/{match['path'].strip('/')}".rstrip("/") or "/"
            is_guarded = GUARDS.search(match["before"] + match["rest"]) is not None
            if not (is_guarded or OF_ONE_USER.search(path)):
                yield path


def _read(path: Path) -> _File:
    file = _File(read_text(path) or "")
    file.apps = {match["name"] for match in MAKES_APP.finditer(file.text)}
    if path.suffix == ".go":
        file.apps |= {match["name"] for match in GIVEN_IN_GO.finditer(file.text)} | {"http"}
    for match in MAKES_ROUTER.finditer(file.text):
        says = match["api"] or match["blueprint"] or ""
        own = OF_PREFIX.search(says)
        file.routers[match["name"]] = own["path"] if own else ""
        file.guarded |= {match["name"]} if "ependencies" in says else set()
    for match in GROUPS.finditer(file.text):
        is_guarded = GUARDS.search(match["rest"]) is not None
        file.groups[match["name"]] = (match["of"], match["path"], is_guarded)
    if path.suffix == ".py":
        for match in IMPORTS_IN_PYTHON.finditer(file.text):
            for part in re.split(r"[,\n]", match["lines"] or match["line"]):
                words = part.split("#")[0].split()
                if words:
                    file.imported[words[-1]] = f"{match['place']}.{words[0]}"
    elif path.suffix != ".go":
        for match in IMPORTS.finditer(file.text):
            names = match["one"] or match["whole"] or match["several"] or match["parts"] or ""
            place = match["place"] or match["required"]
            for part in names.split(","):
                words = re.split(r"\s+as\s+|:", part.strip())
                file.imported[words[-1].strip()] = place
    file.guarded |= {
        match["of"] for match in USES_GUARD.finditer(file.text) if GUARDS.search(match["what"])
    }
    return file


@dataclass
class _Mount:
    of: str
    prefix: str
    target: Path
    name: str
    """Of what is mounted, in its own file; empty for whatever is there."""
    is_guarded: bool


def _mounts(path: Path, files: Mapping[Path, _File]) -> Iterator[_Mount]:
    file = files[path]
    if path.suffix == ".py":
        for match in MOUNTS_IN_PYTHON.finditer(file.text):
            given = OF_PREFIX.search(match["rest"])
            head, _, tail = match["what"].partition(".")
            target, name = _file_of_python(path, head, tail, files)
            guarded = "ependencies" in match["rest"]
            if target:
                yield _Mount(match["of"], given["path"] if given else "", target, name, guarded)
    elif path.suffix != ".go":
        for match in MOUNTS_IN_NODE.finditer(file.text):
            what = match["what"]
            required = re.search(r"""["']([^"']+)["']""", what) if "require" in what else None
            place = required[1] if required else file.imported.get(what)
            target = _file_of_node(path, place, files) if place else None
            if target is None and (what in file.routers or what in file.apps):
                target = path
            if target:
                guarded = GUARDS.search(match["between"] or "") is not None
                prefix, name = match["path"] or "", what if target == path else ""
                yield _Mount(match["of"], prefix, target, name, guarded)


def _file_of_node(path: Path, place: str, files: Mapping[Path, _File]) -> Path | None:
    bare = re.sub(r"\.(?:js|mjs|cjs|ts)$", "", place)
    if bare.startswith("."):
        bases = [(path.parent / bare).resolve()]
    elif bare[:1] in {"@", "~", "#"} or "/" in bare:
        inner = bare.partition("/")[2]
        bases = [(up / src / inner).resolve() for up in path.parents[:4] for src in ("src", "")]
        bases += [(up / bare).resolve() for up in path.parents[:4]]
    else:
        return None
    for base in bases:
        for name in (".ts", ".js", ".mjs", ".cjs", "/index.ts", "/index.js"):
            if (module := Path(f"{base}{name}")) in files:
                return module
    return None


def _file_of_python(
    path: Path, head: str, tail: str, files: Mapping[Path, _File]
) -> tuple[Path | None, str]:
    """Return the module that a name is from, and what it is called there."""
    file = files[path]
    place = file.imported.get(head)
    if place is None:
        return (path, head) if head in file.routers else (None, "")
    parts = [part for part in place.split(".") if part]
    for module, name in ((parts, tail), (parts[:-1], parts[-1])):
        if not module or not name:
            continue
        for ending in (".py", "/__init__.py"):
            wanted = "/".join(module) + ending
            near = [each for each in files if f"/{each.as_posix()}".endswith(f"/{wanted}")]
            having = [each for each in near if name in files[each].routers]
            if having:
                return having[0], name
            if near and files[near[0]].imported.get(name) and near[0] != path:
                return _file_of_python(near[0], name, "", files)
    return None, ""


def _prefixes(
    path: Path,
    name: str,
    files: Mapping[Path, _File],
    mounts: Mapping[Path, list[_Mount]],
    depth: int = 0,
) -> Iterator[str]:
    """Yield what stands before the routes of a router; nothing where that isn't known."""
    file = files[path]
    if depth > DEEPEST or (name in file.guarded and name not in file.apps):
        return
    if name in file.groups:
        of, own, is_guarded = file.groups[name]
        if not is_guarded:
            for before in _prefixes(path, of, files, mounts, depth + 1):
                yield f"{before}/{own.strip('/')}".rstrip("/")
        return
    is_mounted = False
    for parent, each in mounts.items():
        for mount in each:
            if (
                mount.target != path
                or mount.name not in {"", name}
                or (parent, mount.of) == (path, name)
            ):
                continue
            is_mounted = True
            own = file.routers.get(name, "") if path.suffix == ".py" else ""
            if not mount.is_guarded:
                for before in _prefixes(parent, mount.of, files, mounts, depth + 1):
                    inner = [before, mount.prefix, own]
                    yield "".join(f"/{part.strip('/')}" for part in inner if part.strip("/"))
    if not is_mounted and name in file.apps:
        yield ""


def _is_closed(file: _File, path: Path, match: re.Match[str]) -> bool:
    """Whether a route isn't for everybody, by what stands around its handler."""
    around = match["rest"]
    if path.suffix == ".py":
        end = match.end() + BEHIND
        later = ROUTES.search(file.text, match.end(), end)
        begin = file.text.rfind("\n\n", 0, match.start())
        before = file.text[max(begin, 0, match.start() - BEHIND) : match.start()]
        around += file.text[match.end() : later.start() if later else end].partition("\n\n\n")[0]
        around += before if "@" in before else ""
        if not match["at"]:
            return True
    if path.suffix == ".go" and re.search(r"[^/]/$", match["path"] or ""):
        return True  # a subtree of net/http's, in which something has to be named
    is_apart = OF_ONE_USER.search(match["path"] or "") or GIVES_FILES.search(match["rest"])
    if is_apart or OTHER_METHODS.search(around):
        return True
    return GUARDS.search(around) is not None
