"""Applications of Go: which of a module's programs listens, and by which flag it gets a port."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import read_text, sources

LISTENS = re.compile(
    r"ListenAndServe|\bhttp\.Serve(?:TLS)?\(|\bnet\.Listen\("
    r"|\b(?:app|r|e|router|engine|srv|server|s)\.(?:Listen|Run|Start)\("
)
SERVES = re.compile(
    r'"(?:net/http|github\.com/(?:gin-gonic/gin|labstack/echo[\w/]*|gofiber/fiber[\w/]*'
    r'|go-chi/chi[\w/]*|valyala/fasthttp))"'
)
"""Imports of what serves HTTP."""
FLAG = re.compile(
    r"""\b(?:flag|flags|fs|pflag|\w+\.Flags\(\))\.(?:String|Int|Uint)(?:Var)?P?"""
    r"""\(\s*(?:&[\w.]+,\s*)?"(?P<name>[\w.-]+)",\s*(?:"\w?",\s*)?"?(?P<usual>[\w.:\[\]-]*)"?"""
)
GIN = re.compile(r"\.Run\(\)")
"""Gin's server without an address: it listens on $PORT."""
ADDRESS = re.compile(r"[\w.\[\]:-]*:\d{1,5}")
FLAG_NAMES = (
    *("listen", "listen-addr", "addr", "address", "bind", "http", "http-addr", "port", "p"),
)
"""Of flags that say where clients ask, the most telling first."""
OUTPUTS = ("server", "program", "server.out")
"""Names for what is built, the first that is no folder."""
NAMES = ("server", "api", "web", "app", "http", "serve", "httpd", "site", "backend")
"""Of folders whose program serves, the likeliest first."""


def find_in(folder: Path) -> FoundApp | None:
    """Find the programs of a module, and choose the one that listens."""
    if not (folder / "go.mod").is_file():
        return None
    mains = [path for path in sources(folder) if _is_main(path)]
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", doubts=("go.mod has no program: no package main",))
    out = next(output for output in OUTPUTS if not (folder / output).is_dir())
    programs = {program: _program(program, _text(folder / program), out) for program in folders}
    if len(folders) == 1:
        return programs[folders[0]]
    texts = {program: _text(folder / program) for program in folders}
    listening = [program for program in folders if LISTENS.search(texts[program])]
    listening = listening or [program for program in folders if SERVES.search(texts[program])]
    likely = listening or [program for program in folders if program.rpartition("/")[2] in NAMES]
    if len(likely) == 1:
        app = programs[likely[0]]
        how = "it alone listens" if listening else "by its name"
        note = f"of {len(folders)} programs ({', '.join(folders)}) {likely[0]} is taken: {how}"
        return replace(app, notes=(note, *app.notes))
    several = likely or folders
    choices = {program: programs[program] for program in several}
    return FoundApp("go.mod", several="go.mod has several programs", choices=choices)


def _program(folder: str, text: str, out: str) -> FoundApp:
    package = "." if folder == "." else f"./{folder}"
    build = f"go build -o {out} {package}"
    flags = {} if '"PORT"' in text else dict(_flags(text))
    flag = next((name for name in FLAG_NAMES if name in flags), None)
    if flag is None:
        return FoundApp("go.mod", f"./{out}", build, heeds_port=bool(GIN.search(text)))
    address = "$PORT" if flags[flag].isdecimal() else "127.0.0.1:$PORT"
    start, doubts = [f"./{out}", f"-{flag} {address}"], []
    for name, usual in flags.items():
        if name != flag and ADDRESS.fullmatch(usual):
            start.append(f"-{name} 127.0.0.1:0")
            doubts.append(
                f"-{name} is another listener, on {usual} unless set: both variants run at the "
                "same time, so it gets any free port"
            )
    return FoundApp("go.mod", " ".join(start), build, doubts=tuple(doubts))


def _flags(text: str) -> Iterator[tuple[str, str]]:
    """Give the flags that take an address or a port, with what they are unless given."""
    for match in FLAG.finditer(text):
        name, usual = match["name"], match["usual"]
        if ADDRESS.fullmatch(usual) or (usual.isdecimal() and name in {"port", "p", "http-port"}):
            yield name, usual


def _text(folder: Path) -> str:
    return "\n".join(read_text(path) or "" for path in sorted(folder.glob("*.go")))


def _is_main(path: Path) -> bool:
    is_test = path.name.endswith("_test.go")
    text = read_text(path) or "" if path.suffix == ".go" and not is_test else ""
    is_left_out = re.search(r"^//go:build ignore|^// \+build ignore", text, re.MULTILINE)
    return "\npackage main" in f"\n{text}" and not is_left_out
