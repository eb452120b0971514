"""The files of a catalogue's part: nothing that leads out of its folder, nothing but files."""

import os
from pathlib import Path

from webdyno.model.mistake import Mistake


def checked_files(folder: Path) -> dict[str, Path]:
    """Give the files and folders below a folder, by their path in it, in the order of names.

    Raise Mistake for a symbolic link that leads out of the folder, and for what is neither file nor
    folder, such as a pipe, which would keep its reader waiting for ever.
    """
    inside = folder.resolve()
    found: dict[str, Path] = {}
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(top, name)
            if not path.resolve().is_relative_to(inside):
                raise Mistake(f"{path} leads out of {folder}: a catalogue's files stay inside")
            if not (path.is_file() or path.is_dir()):
                raise Mistake(f"{path} is no file and no folder; remove it")
            found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))
