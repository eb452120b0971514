"""What packages that are installed next to webdyno add to it, by their entry points.

    [project.entry-points."webdyno.generators"]
    sloth = "webdyno_sloth:SLOTH"

docs/how-to/extend.md has all groups. Whoever uses a group asks for it here, when it is needed.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from webdyno.core.errors import UserError

T = TypeVar("T")
AUDIT_FORMATS = "webdyno.audit_formats"
GENERATORS = "webdyno.generators"
STACKS = "webdyno.stacks"


def installed(group: str, kind: type[T]) -> dict[str, T]:
    """Return what packages have in a group, by what names it in messages.

    Raise UserError for what can't be loaded, and for what is of another kind.
    """
    entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
    return {_named(entry): _loaded(entry, kind) for entry in entries}


def _loaded(entry: EntryPoint, kind: type[T]) -> T:
    try:
        value: object = entry.load()
    except Exception as error:  # what others wrote may raise anything
        raise UserError(
            f"{_named(entry)} can't be loaded: {type(error).__name__}: {error}; update its "
            "package, or uninstall it"
        ) from error
    if not isinstance(value, kind):
        raise UserError(
            f"{_named(entry)}: {entry.value} should be a {kind.__name__}, and is a "
            f"{type(value).__name__}"
        )
    return value


def _named(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
    return f"{entry.group}: {entry.name} of {package}"
