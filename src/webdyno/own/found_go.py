"""Go modules: which of their programs listens, and by which flags it hears its address."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.own.found import FoundApp, read_text, sources

LISTENS = re.compile(
    r"ListenAndServe|\bhttp\.Serve(?:TLS)?\(|\bnet\.Listen\("
    r"|\b(?:app|r|e|router|engine)\.(?:Listen|Run|Start)\("
)
FLAG = re.compile(
    r"""\bflag\.(?:String|Int|Uint)(?:Var)?\(\s*(?:&[\w.]+,\s*)?"""
    r""""(?P<name>[\w.-]+)",\s*"?(?P<usual>[\w.:\[\]-]*)"?"""
)
ADDRESS = re.compile(r"[\w.\[\]:-]*:\d{1,5}")
NAMES = ("listen", "addr", "address", "bind", "http", "http-addr", "port")
"""Of flags that say where clients ask, the most telling first."""


def go(folder: Path) -> FoundApp | None:
    """Find the programs of a module, and choose the one that listens."""
    if not (folder / "go.mod").is_file():
        return None
    mains = [path for path in sources(folder) if _is_main(path)]
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", None)
    programs = {it: _program(it, _text(folder / it)) for it in folders}
    listening = [it for it in folders if LISTENS.search(_text(folder / it))]
    if len(folders) == 1:
        return programs[folders[0]]
    if len(listening) == 1:
        app = programs[listening[0]]
        doubt = f"of {len(folders)} programs ({', '.join(folders)}) only {listening[0]} listens"
        return replace(app, doubts=(doubt, *app.doubts))
    several = listening or folders
    doubt = f"there are {len(several)} programs: {', '.join(several)}"
    first = programs[several[0]]
    return replace(
        first,
        doubts=(doubt, *first.doubts),
        several="go.mod has several programs",
        choices={it: programs[it] for it in several},
    )


def _program(folder: str, text: str) -> FoundApp:
    package = "." if folder == "." else f"./{folder}"
    build = f"go build -o server {package}"
    flags = {} if '"PORT"' in text else dict(_flags(text))
    asked = next((name for name in NAMES if name in flags), None)
    if asked is None:
        return FoundApp("go.mod", "./server", build)
    start, doubts = ["./server", f"-{asked} {_given(flags[asked])}"], []
    for name, usual in flags.items():
        if name != asked and ADDRESS.fullmatch(usual):
            start.append(f"-{name} 127.0.0.1:0")
            doubts.append(
                f"-{name} is another listener, on {usual} unless told: both variants run at the "
                "same time, so it gets any free port"
            )
    return FoundApp("go.mod", " ".join(start), build, doubts=tuple(doubts))


def _given(usual: str) -> str:
    return "$PORT" if usual.isdecimal() else "127.0.0.1:$PORT"


def _flags(text: str) -> Iterator[tuple[str, str]]:
    """Give the flags that take an address or a port, with what they are unless given."""
    for found in FLAG.finditer(text):
        name, usual = found["name"], found["usual"]
        if ADDRESS.fullmatch(usual) or (usual.isdecimal() and "port" in name):
            yield name, usual


def _text(folder: Path) -> str:
    return "\n".join(read_text(path) or "" for path in sorted(folder.glob("*.go")))


def _is_main(path: Path) -> bool:
    is_test = path.name.endswith("_test.go")
    return path.suffix == ".go" and not is_test and "\npackage main" in f"\n{read_text(path)}"
