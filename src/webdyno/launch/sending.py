"""What of yours requests would hold: files and variables, which not everybody may have sent."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.core.text import SECRET
from webdyno.core.variant import key_parts
from webdyno.launch.caller import Caller
from webdyno.launch.consent import keyed_texts, not_allowed

if TYPE_CHECKING:
    from webdyno.systems.project import Project


def refuse_reading(asked: object, caller: Caller) -> None:
    """Raise UserError where requests would be filled from your files or environment, and may not.

    `asked`: keywords of a call, or an experiment.
    """
    if caller.allows_commands:
        return
    for text, why in read_of_yours(asked, Path.cwd()):
        raise not_allowed(text, why)


def read_of_yours(asked: object, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the variables and files that requests are filled from, and what each is.

    Files by where their paths lead from a folder, whatever they look like.
    """
    for key, text in keyed_texts(asked):
        for secret in SECRET.finditer(text):
            yield secret[0], "is a variable of your environment"
        if "file" in key and re.fullmatch(r"(.+_)?file", key_parts(key)[-1]):
            yield f"{key} = {_led_to(folder, text)}", "is a file of yours"


def _led_to(folder: Path, text: str) -> str:
    try:
        return os.path.realpath(folder / text)
    except (OSError, ValueError):  # a NUL in it, which no file has
        return text


def project_around(folder: Path, caller: Caller) -> "Project | None":
    """Find the `webdyno.toml` around a folder.

    Raise UserError where it has files or variables of yours sent, and the caller may not: a
    repository that an agent works in could have named them.
    """
    from webdyno.systems.project import APP, Project

    project = Project.around(folder)
    if project is not None:
        data = project.file.data
        refuse_reading({key: value for key, value in data.items() if key != APP}, caller)
    return project
