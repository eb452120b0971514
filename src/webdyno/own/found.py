"""What `webdyno init` finds in a folder, and how its readers look at files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOST_FILES = 300
MOST_BYTES = 200_000
MOST_PATHS = 6
SKIPPED = {
    *("node_modules", "target", "vendor", "venv", "__pycache__", "test", "tests", "dist", "build")
}
SOURCES = {".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rb", ".ru", ".rs"}


@dataclass(frozen=True)
class FoundApp:
    """What was found, and by which file."""

    by: str
    start: str | None = None
    """How it starts as a program. It has one of start, image and conf; none of them where only the
    user can tell."""
    build: str | None = None
    paths: tuple[str, ...] = ("/",)
    doubts: tuple[str, ...] = field(default=())
    """What may be wrong about it, as sentences."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """By path: the status of its valid response, where that is another one than 200."""
    heeds_port: bool = False
    """Whether its framework listens on $PORT, though no source says so."""
    connections: int | None = None
    """So many its server takes at once; None where there is nothing to heed."""
    image: str | None = None
    """As behind `image:`."""
    conf: str | None = None
    """As behind `conf:`."""
    root: str | None = None
    """The document root, in the place of what `conf` names."""
    command: str | None = None
    """Of an image: what it starts, for who would rather do without a container."""
    several: str = ""
    """Of `choices`: what there are several of, as `compose.yaml has several services`."""
    choices: Mapping[str, "FoundApp"] = field(default_factory=dict)
    """By name: what it may be, where only the user can tell which."""

    @property
    def is_whole(self) -> bool:
        """Whether it is known how it starts."""
        return any((self.start, self.image, self.conf))


def read_text(path: Path) -> str | None:
    """Give a file's text; None where there is none that can be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return None


def first_of(folder: Path, *names: str) -> str | None:
    return next((name for name in names if (folder / name).is_file()), None)


def sources(folder: Path) -> list[Path]:
    """List files of source text, those at the top first; hidden folders and tests are excluded."""
    found: list[Path] = []
    folders = [folder]
    while folders and len(found) < MOST_FILES:
        here = folders.pop(0)
        inside = sorted(here.iterdir())
        found += [it for it in inside if it.suffix in SOURCES and it.is_file()]
        folders += [it for it in inside if _is_of_interest(it)]
    return found[:MOST_FILES]


def _is_of_interest(path: Path) -> bool:
    hidden = path.name.startswith(".") or path.name in SKIPPED
    return path.is_dir() and not path.is_symlink() and not hidden
