"""Applications in C and C++, as CMake builds them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import MOST_MEMBERS, FoundApp, is_of_interest, sources

CMAKE = "CMakeLists.txt"
OUT = "build"
ENDINGS = {".c", ".cpp", ".cc", ".cxx"}
COMMENT = re.compile(r"#[^\n]*")
CALL = re.compile(
    r"\b(?P<name>project|add_executable|add_subdirectory|set_target_properties|set)"
    r"\s*\((?P<words>[^()]*)\)",
    re.IGNORECASE,
)
SERVES = re.compile(
    r"\blisten\w*\s*\(|\baddListener\(|\bMHD_start_daemon\("
    r"""|#include\s*[<"](?:[\w.]+/){0,4}(?:httplib|crow(?:_all)?|drogon|pistache|oatpp|mongoose"""
    r"""|civetweb|microhttpd|restbed|http_listener|beast|HTTPServer)\b"""
)
NAMED_SO = re.compile(
    r"(?:^|[_-])(?:server|api|web|http|httpd|serve|backend|site)(?:$|[_-])", re.IGNORECASE
)
OF_TESTS = re.compile(r"(?:^|[_-])(?:tests?|bench\w*|examples?)(?:$|[_-])|[a-z]Tests?$")
OUTPUT_NAME = re.compile(r"\bOUTPUT_NAME\s+\"?([\w.-]+)")
PROJECT_NAME = re.compile(r"\$\{(?:CMAKE_)?PROJECT_NAME\}")
OF_OUTPUTS = re.compile(r"\$\{(?:CMAKE|PROJECT)_BINARY_DIR\}")
OF_SOURCES = re.compile(r"\$\{(?:CMAKE|PROJECT)_SOURCE_DIR\}")
NONE_SERVES = "none of its programs ({names}) serves HTTP by its sources or its name"


class _Program(NamedTuple):
    name: str
    """CMake's target."""
    place: str
    """Where it is once it is built."""
    text: str
    """Of its sources."""


class _Call(NamedTuple):
    """A call in a file of CMake's."""

    inside: str
    """The file's folder."""
    name: str
    words: list[str]


def find_cmake(folder: Path) -> FoundApp | None:
    """Find the program that serves HTTP."""
    programs = [program for program in _programs(folder) if not OF_TESTS.search(program.name)]
    if not programs:
        return None
    if len(programs) == 1:  # what listens may be in a library of its own
        every = "\n".join(read_text(path) or "" for path in sources(folder, ENDINGS))
        programs = [programs[0]._replace(text=every)]
    serving = [program for program in programs if SERVES.search(program.text)]
    serving = serving or [program for program in programs if NAMED_SO.search(program.name)]
    if not serving:
        names = ", ".join(program.name for program in programs)
        return FoundApp(CMAKE, doubts=(NONE_SERVES.format(names=names),))
    if len(serving) == 1:
        return _app(serving[0])
    choices = {program.name: _app(program) for program in serving}
    return FoundApp(CMAKE, several=f"{CMAKE} has several programs", choices=choices)


def _app(program: _Program) -> FoundApp:
    configure = f"cmake -S . -B {OUT} -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF"
    build = f'{configure} && cmake --build {OUT} --target {program.name} --parallel "$(nproc)"'
    return FoundApp(CMAKE, f"./{program.place}", build, notes=("built with optimization",))


def _programs(folder: Path) -> Iterator[_Program]:
    calls = list(_calls(folder))
    project = next((call.words[0] for call in calls if call.name == "project"), "")
    names = {
        call.words[0]: named[1]
        for call in calls
        if call.name == "set_target_properties"
        if (named := OUTPUT_NAME.search(" ".join(call.words)))
    }
    outputs = {
        "".join(call.words[1:])
        for call in calls
        if call.name == "set" and call.words[0] == "CMAKE_RUNTIME_OUTPUT_DIRECTORY"
    }
    output = OF_SOURCES.sub(".", OF_OUTPUTS.sub(OUT, outputs.pop() if len(outputs) == 1 else ""))
    for call in calls:
        target, *files = (PROJECT_NAME.sub(project, word) for word in call.words)
        if call.name == "add_executable" and "$" not in target:
            top = Path(output) if output and "$" not in output else Path(OUT, call.inside)
            place = (top / names.get(call.words[0], target)).as_posix()
            yield _Program(target, place, _text(folder / call.inside, files))


def _calls(folder: Path) -> Iterator[_Call]:
    """Read CMake's file of a folder, and those of the folders that it adds."""
    todo, seen = ["."], set[str]()
    while todo and len(seen) < MOST_MEMBERS:
        inside = todo.pop(0)
        seen.add(inside)
        text = COMMENT.sub("", read_text(folder / inside / CMAKE) or "")
        for match in CALL.finditer(text):
            words = [word.strip('"') for word in match["words"].split()]
            if not words:
                continue
            call = _Call(inside, match["name"].lower(), words)
            added = f"{inside}/{words[0]}"
            if call.name == "add_subdirectory" and added not in seen and _is_inside(folder, added):
                todo.append(added)
            yield call


def _is_inside(folder: Path, name: str) -> bool:
    """Whether a folder that is added is a part of the application."""
    return ".." not in name and "$" not in name and is_of_interest(folder / name)


def _text(folder: Path, words: list[str]) -> str:
    """Return what the named sources hold; all sources of the folder where a variable lists them."""
    named = [folder / word for word in words if Path(word).suffix in ENDINGS and "$" not in word]
    files = sources(folder, ENDINGS) if any("$" in word for word in words) else named
    return "\n".join(read_text(path) or "" for path in files)
