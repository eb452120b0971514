"""Files of variables, which Git mostly ignores, and the examples that stand next to them."""

import re
from pathlib import Path

ENV_FILE = ".env"
ENDINGS = ("example", "sample", "template", "dist", "exemple", "exemplo", "ejemplo")
EXAMPLE = re.compile(
    rf"\.?env[._-](?:\w+[._-])?(?:{'|'.join(ENDINGS)})(?:-\w+)*|\.?(?:example|sample)[._-]env"
)
"""The name of a file that shows which variables there are."""


def example_file(folder: Path) -> str | None:
    """Return the name of the file that shows variables; of several the shortest."""
    names = [path.name for path in folder.iterdir() if EXAMPLE.fullmatch(path.name)]
    return min(names, key=lambda name: (len(name), name), default=None)


def or_example(path: Path) -> Path:
    """Return a file of variables or, where there is only its example, that."""
    try:
        return path if path.exists() else _example_of(path) or path
    except OSError:  # a name that is too long for one
        return path


def _example_of(path: Path) -> Path | None:
    if not path.parent.is_dir():
        return None
    named = (path.with_name(f"{path.name}.{ending}") for ending in ENDINGS)
    if own := next(filter(Path.is_file, named), None):
        return own
    name = example_file(path.parent) if path.name == ENV_FILE else None
    return path.parent / name if name else None
