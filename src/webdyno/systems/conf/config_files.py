"""Reads the files of a configuration, as the user it will run as, and fills variables in."""

import glob
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.files import cause_of
from webdyno.core.service import Line, Origin
from webdyno.core.text import SECRET
from webdyno.host.users import ServerUser, name_of

MOST_BYTES = 4_000_000
"""Of one file."""
MOST_BYTES_TOGETHER = 16_000_000
MOST_FILES = 2_000
DEEPEST = 20
"""Includes within includes; more of them go round in a circle."""
MOST_WILDCARD_FOLDERS = 3
BRACED = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\}")
"""`${NAME}`; a form has a group `name`, and perhaps a group `default`."""
BRACED_OR_PLAIN = re.compile(r"\$(?:\{(?P<name>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))")
"""As `envsubst` knows them."""


@dataclass
class ConfigFiles:
    """The files of one configuration; raises UserError for one that can't be read."""

    user: ServerUser | None = None
    """Who has to be allowed to read what is included; None for ourselves."""
    caller: ServerUser | None = None
    """Who has to be allowed to read the file that he named himself."""
    found_nothing: list[str] = field(default_factory=list, init=False)
    """Includes with wildcards for which there is no file."""
    texts: dict[Path, str] = field(default_factory=dict, init=False)
    """Those that were read."""
    _count: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def text(self, file: Path, named: Origin | None = None, depth: int = 0) -> str:
        """Read a file that the line `named` includes, behind `depth` others that include it."""
        place = f"{named} includes {file}, which" if named else f"{file}"
        if depth > DEEPEST:
            raise UserError(
                f"{place} is the file number {depth} that includes another one; files that include "
                "each other in a circle can't be read"
            )
        self._count += 1
        if self._count > MOST_FILES:
            raise UserError(
                f"{place} is one file too many: more than {MOST_FILES:,} are included, counting a "
                "file each time; include fewer"
            )
        content = _content(file, place, self.user if named else self.caller)
        self._bytes += len(content)
        if self._bytes > MOST_BYTES_TOGETHER:
            raise UserError(
                f"{place} is too much: all files together have more than "
                f"{MOST_BYTES_TOGETHER // 1_000_000} MB; include fewer"
            )
        self.texts[file] = text = content.decode("utf-8-sig", "replace")
        return text

    def lines(self, file: Path, named: Origin | None = None, depth: int = 0) -> Iterator[Line]:
        for number, line in enumerate(self.text(file, named, depth).split("\n"), 1):
            yield Line(line.removesuffix("\r"), Origin(str(file), number))

    def files_of_include(self, pattern: str, folders: Sequence[Path], named: Origin) -> list[Path]:
        """Find the files that an include means, in the first folder where there are any.

        Raise UserError where there are none, unless the pattern has wildcards.
        """
        places = (
            [Path(pattern)] if pattern.startswith("/") else [folder / pattern for folder in folders]
        )
        parts = [part for part in Path(pattern).parts if glob.has_magic(part)]
        if len(parts) > MOST_WILDCARD_FOLDERS:
            raise UserError(f"{named} includes {pattern}: that has too many wildcards")
        for place in dict.fromkeys(places):
            # Not Path.glob, which gives hidden files, which servers pass over.
            paths = glob.iglob(str(place)) if "\0" not in pattern else ()  # noqa: PTH207
            files = sorted(map(Path, islice(paths, MOST_FILES + 1)))
            if len(files) > MOST_FILES:
                raise UserError(
                    f"{named} includes {pattern}: that is more than {MOST_FILES:,} files"
                )
            if files:
                return files
        if parts:
            self.found_nothing.append(f"{named} includes {pattern}, and there is no such file")
            return []
        looked = " and no ".join(map(str, dict.fromkeys(places)))
        raise UserError(
            f"{named} includes {pattern}, but there is no {looked}; add it, or correct it"
        )


def _content(file: Path, place: str, reader: ServerUser | None) -> bytes:
    try:
        handle = os.open(file, os.O_PATH | os.O_CLOEXEC)  # opening a device may do something
    except (OSError, ValueError) as error:
        raise UserError(f"{place} can't be read: {cause_of(error)}") from None
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise UserError(f"{place} can't be read: is a directory")
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UserError(f"{place} is no regular file; name one")
        if reader and not reader.may_read_opened(handle):
            raise UserError(
                f"{place} can't be read by {name_of(reader)}, as whom it is read; allow that, "
                "or leave it out"
            )
        opened = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as content:
            data = content.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{place} can't be read: {cause_of(error)}") from None
    finally:
        os.close(handle)
    if len(data) > MOST_BYTES:
        raise UserError(f"{place} has more than {MOST_BYTES // 1_000_000} MB; give a smaller one")
    return data


@dataclass
class Variables:
    """Variables by name; those without a value are noted, to be named all at once."""

    values: Mapping[str, str]
    unset: dict[str, Origin] = field(default_factory=dict, init=False)
    """Where each of them stands first."""

    def fill(
        self, text: str, origin: Origin, form: re.Pattern[str] = BRACED, own: Collection[str] = ()
    ) -> str:
        """Fill a text that begins at `origin`; names in `own` have values in the file, and stay."""

        def value(match: re.Match[str]) -> str:
            groups = match.groupdict()
            name = groups["name"] or groups.get("plain") or ""
            default = groups.get("default")
            if name in own:
                return match[0]
            if name not in self.values and default is None:
                line = origin.line + text.count("\n", 0, match.start())
                self.unset.setdefault(name, origin._replace(line=line))
                return match[0]
            given = self.values.get(name, default or "")
            if SECRET.search(given):
                raise UserError(
                    f"{origin.file}: {match[0]} would be a secret of your environment, and the run "
                    f"keeps this configuration; write a value itself, as in --env {name}=VALUE"
                )
            return given

        return form.sub(value, text)

    def demand_all(self) -> None:
        """Raise UserError, naming all of them, where some have no value."""
        if not self.unset:
            return
        places = ", ".join(f"{name} ({origin})" for name, origin in self.unset.items())
        example = " ".join(f"--env {name}=VALUE" for name in self.unset)
        raise UserError(f"variables have no value: {places}; give each one, as in {example}")
