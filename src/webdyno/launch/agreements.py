"""What was agreed to, in this process or in earlier ones, each as a text."""

from collections.abc import Iterable
from contextlib import suppress

from webdyno.core.errors import OperationError
from webdyno.core.files import append_text, state_folder
from webdyno.launch.caller import Caller

AGREED_FILE = "agreed-catalogues"
_AGREED = set[str]()
"""In this process."""


def agreed() -> set[str]:
    """Return all that was agreed to."""
    known = set(_AGREED)
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
        known.update((state_folder() / AGREED_FILE).read_text().splitlines())
    return known


def remember(agreements: Iterable[str]) -> None:
    """Ask no more about these in this process."""
    _AGREED.update(agreements)


def keep(agreements: Iterable[str], caller: Caller) -> None:
    """Ask no more about these, later either; where they can't be kept, it will be asked again."""
    new = [*dict.fromkeys(agreements)]
    remember(new)
    if not new:
        return
    try:
        file = state_folder() / AGREED_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        append_text(file, "".join(f"{each}\n" for each in new))
    except (OSError, OperationError, RuntimeError) as error:
        caller.notify(f"what you agreed to can't be kept, and will be asked again: {error}")
