"""Names of functions as a reader finds them in the source, and whether they are the program's own.

Node and Python tell `perf` the file of each function with its name: `JS:*search /srv/app.js:12:8`
and `py::search:/srv/app.py`. Of files in the folder that a program runs in, and of programs that
lie there, names are the program's own, but for those of libraries: packages that are kept in the
folder, and the standard libraries of Go, Rust and C++, which are compiled into programs.
"""

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

MOST_LETTERS = 120
"""Of a name: those of templates in C++ have no end."""
NAMELESS = "[unknown]"
"""What `perf` calls a function without a symbol."""
COMPILED = re.compile(r"^(?:/tmp/perf-\d+\.map|//anon|\[JIT\].*|\[anon.*)$")
"""Where `perf` finds what a program compiles while it runs; by process, unlike its own code."""
PYTHON = re.compile(r"^py::(?P<name>[^:]*):(?P<file>.+)$")
JAVASCRIPT = re.compile(
    r"^(?:JS|LazyCompile|Function|Script|Eval):[*~^+]?"  # the sign says how it was compiled
    r"(?P<name>.*?) ?(?P<file>(?:file:/)?/.*?|node:\S+?)?(?::\d+)*$"
)
BUILT = re.compile(r"^/.*/webdyno/revisions/\w+/files/")
"""Where revisions are built, each in a folder of its own: a function has one name in all."""
PACKAGES = re.compile(r"(?:^|/)(?:node_modules|site-packages|dist-packages|python3\.\d+)(?=/)")
CLONE = re.compile(r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm)(?:\.\d+)*)+$")
"""What compilers add to the name of a function of which they make another one."""
LIBRARIES = re.compile(
    r"^(?:"
    # The standard library of Go by its topmost folders, https://pkg.go.dev/std.
    r"(?:archive|bufio|bytes|cmp|compress|container|context|crypto|database|embed|encoding|errors|"
    r"expvar|flag|fmt|gcWriteBarrier|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|"
    r"net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|sync|syscall|testing|"
    r"text|time|type|unicode|unique|unsafe|vendor|weak)[./:]"
    r"|<?(?:&?(?:mut )?)?(?:std|core|alloc|__gnu_cxx)::"
    r")"
)


class Function(NamedTuple):
    """A function as people know it."""

    name: str
    """With the file that has it: `search (app.py)`, `main.search (server)`."""
    is_own: bool
    """Whether it is the program's own, and not a library's."""


@lru_cache(maxsize=16_384)
def function_in(symbol: str, program: str, folders: tuple[str, ...]) -> Function | None:
    """Name the function of a symbol of `perf`, found in the file `program`; None of one without.

    `folders` are those that the servers' own programs run in.
    """
    if symbol in {NAMELESS, "?"}:
        return None
    if COMPILED.match(program):
        told = PYTHON.match(symbol) or JAVASCRIPT.match(symbol)
        return _interpreted(told, folders) if told else Function(_named(symbol, ""), is_own=False)
    if program.startswith("["):  # the kernel's
        return None
    inside = _inside(program, folders)
    is_own = inside is not None and not PACKAGES.search(inside) and not LIBRARIES.match(symbol)
    return Function(_named(CLONE.sub("", symbol), PurePosixPath(program).name), is_own)


def _interpreted(told: re.Match[str], folders: tuple[str, ...]) -> Function:
    path = (told["file"] or "").removeprefix("file://")
    inside = _inside(path, folders)
    is_own = inside is not None and not PACKAGES.search(inside)
    shown = inside if inside is not None and is_own else PACKAGES.split(path)[-1]
    return Function(_named(told["name"] or "(anonymous)", shown.removeprefix("/")), is_own)


def _inside(path: str, folders: tuple[str, ...]) -> str | None:
    """Give a path below one of some folders, or below a revision's files; None where it isn't."""
    if built := BUILT.match(path):
        return path[built.end() :]
    if path and not path.startswith(("/", "<", "node:")):
        return path.removeprefix("./")
    below = (path.removeprefix(f"{folder}/") for folder in folders)
    return next((name for name in below if name != path), None)


def _named(name: str, file: str) -> str:
    whole = f"{name} ({file})" if file else name
    return whole if len(whole) <= MOST_LETTERS else f"{whole[: MOST_LETTERS - 1]}…"
