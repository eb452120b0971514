"""What is written by name is written by `core/files.py`, which follows no link.

Elsewhere a file may be opened for writing where nobody can have put a link: below a folder that was
made for it a moment ago, which nobody else may enter, or among the kernel's own files.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import webdyno

SOURCES = Path(webdyno.__file__).parent
ONE_PLACE = "core/files.py"
ALLOWED = {
    "interfaces/cli/__init__.py": "standard streams that lead to /dev/null",
    "interfaces/cli/audit.py": "standard streams that lead to /dev/null",
    "cluster/dispatch.py": "flags for `open_here`",
    "core/debug_log.py": "flags for `open_here`",
    "measure/calibration.py": "a copy of the engine in a workspace, which is ours alone",
    "cluster/agent.py": "a parcel, unpacked into a temporary folder",
    "host/machine.py": "a device and files of the kernel's",
    "host/workspace.py": "locks, opened for reading",
    "host/copies.py": "copies into new folders by known names",
    "host/control_group.py": "files of the kernel's",
    "host/netns_agent.py": "files of the kernel's",
    "host/users.py": "logs, opened so that no link is followed, and looked at",
    "host/warden.py": "files of the kernel's, and names in open folders, for removal",
    "systems/containers/podman.py": "a temporary folder",
    "probes/profile.py": "pipes of its own",
    "measure/folder.py": "records, opened so that no link is followed, and looked at",
    "report/exports.py": "DuckDB writes to what `replacing` gives it",
    "interfaces/cli/report.py": "calls the writer of Parquet",
    "measure/repeat.py": "links in the catalogue of a run whose folder was just made",
    "servers/prepared.py": "a folder of the cache that its maker made a moment ago",
    "servers/needs.py": "a folder of the cache, as are its logs",
    "servers/starting.py": "a link in a workspace, which is ours alone",
}
"""By file: why links can't lead what it writes elsewhere."""
WRITES = {
    *("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename", "renames"),
    *("copy", "copy2", "copyfile", "copytree", "move", "extractall", "write_parquet", "to_csv"),
}
OPENS = {"open", "fdopen"}
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
NO_FILES = {"copy.copy", "renderable.copy", "counts[used].copy", "move"}


def test_nothing_else_writes_by_name() -> None:
    writing = dict(_writing())
    unknown = {file: calls for file, calls in writing.items() if file not in ALLOWED}
    assert not unknown, "write it with core/files.py"
    assert writing.keys() == ALLOWED.keys(), "these no longer write: take them off the list"


def _writing() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        places = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.Attribute)]
        found = [f"{place.lineno}: {ast.unparse(place):.80}" for place in places if _writes(place)]
        if found and name != ONE_PLACE and not name.startswith("systems/catalog/"):
            yield name, found


def _writes(place: ast.Call | ast.Attribute) -> bool:
    if isinstance(place, ast.Attribute):
        return place.attr in FLAGS
    function = ast.unparse(place.func)
    name = function.rpartition(".")[2]
    if name in WRITES:
        return function not in NO_FILES
    if name == "replace" and len(place.args) == 1 and not place.keywords:  # of a Path
        return True
    return name in OPENS and _mode_writes(place)


def _mode_writes(call: ast.Call) -> bool:
    """Whether it opens what may be there; `x` makes a file, and follows no link."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [it.value for it in given if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    modes = [text for text in texts if text and set(text) <= set("rwxabt+")]
    return any(set(mode) & set("wa+") and "x" not in mode for mode in modes)


MAKES_FOLDERS = {
    "servers/layout.py": "in a folder that is still private",
    "servers/prepared.py": "in a folder that is still private",
    "measure/repeat.py": "in the catalog of a run whose folder was just made",
    "systems/target.py": "in a workspace, which is ours alone",
}
"""By file: why no link of another's can be on the way."""


def test_folders_that_a_user_names_are_made_by_make_folder() -> None:
    """Which follows no link of another user's where it makes those above."""
    assert _those_with(r"mkdir\(parents=True") == MAKES_FOLDERS.keys()


CHANGES_MODES = {
    "host/users.py": "opens a folder that was private",
    "host/workspace.py": "opens what is ours to write, whatever the umask is",
    "probes/profile.py": "opens a private folder's way to what is given away in it",
    "host/copies.py": "opens what was private; of a folder before anything is in it",
    "host/warden.py": "lets us into folders that are removed",
    "servers/prepared.py": "opens folders that were private",
    "systems/conf/relocation.py": "lets others through to a private folder",
    "measure/redact.py": "opens logs once no secret is in them; gives a copy the mode of its file",
}
"""By file: why nobody has opened yet what is closed to him, if anything is."""


def test_no_file_is_made_first_and_closed_to_others_then() -> None:
    """Who opened it in between would read on: `write_whole` and `new_file` give it its mode."""
    assert _those_with(r"\bf?chmod\(") == CHANGES_MODES.keys()


def _those_with(pattern: str) -> set[str]:
    """Return the files in which a pattern is found."""
    return {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_the_engine_writes_by_name_in_one_place() -> None:
    """`named.rs` has the same rule; tests write what they like."""
    engine = SOURCES.parent.parent / "loadgen/src"
    for path in engine.rglob("*.rs"):
        code = path.read_text().partition("#[cfg(test)]")[0]
        if path.name not in {"named.rs", "tests.rs"}:
            assert not re.search(r"\bFile::create|fs::write|OpenOptions.*write", code), path


def test_nothing_else_writes_csv() -> None:
    """Where it is written, no text of others becomes a formula."""
    assert _those_with(r"csv\.(Dict)?[wW]riter") == {"core/sheet.py"}
