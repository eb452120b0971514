"""Texts: names and titles, secrets in them, what others wrote, and how two of them differ."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Annotated, Any
from urllib.parse import SplitResult, urljoin, urlsplit

from pydantic import AfterValidator

from webdyno.core.errors import UserError
from webdyno.core.hiding import hidden, keep_secret

PICTURES = 0x2400
"""Unicode's pictures of the control characters, in their order."""
KEPT = "\n\t"
TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the direction of what follows, and with it the line around (Boucher and
Anderson, Trojan Source, USENIX Security 2023). Letters that run from right to left need none."""
SHOWN = {
    **{code: chr(PICTURES + code) for code in range(0x20) if chr(code) not in KEPT},
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *TURNING), "\ufffd"),
}


def printable(text: str) -> str:
    """Return a text as it may be shown, whoever wrote it.

    Secrets are hidden, and characters that control instead of showing become pictures, `␛` for
    escape; lines and tabs stay.
    """
    return hidden(text).translate(SHOWN)


def in_shell(path: Path | str) -> str:
    """Return a path as a word of a command line that a message gives for pasting."""
    return quote(str(path))


def in_one_line(text: str) -> str:
    """Return a text as it may be shown, in one line, such as a comment of a file.

    Names of files have line breaks where somebody wants them to.
    """
    return printable(" ".join(text.split()))


def begin_of(text: str, letters: int) -> str:
    """Return the beginning of a text of others, without secrets: half of one isn't known as one."""
    return hidden(text)[:letters]


def printable_within(value: object) -> object:
    """Return a value, such as JSON's, with all texts in it as they may be shown."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {name: printable_within(each) for name, each in value.items()}
    return [printable_within(each) for each in value] if isinstance(value, list) else value


def make_printable(value: object) -> object:
    """Make the value of a template's expression printable, if it is text.

    Secrets are hidden in texts alone: of markup, names of tags might be one.
    """
    if not isinstance(value, str):
        return value
    return value.translate(SHOWN) if hasattr(value, "__html__") else printable(value)


def split_url(url: str, base: str = "") -> SplitResult:
    """Split a URL that others wrote, seen from `base`; what is none has no parts."""
    try:
        return urlsplit(urljoin(base, url))
    except ValueError:
        return urlsplit("")


LONGEST_NAME, LONGEST_PATH = 100, 200


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(
            f"{text!r:.60} has a line break or another control character; leave it out"
        )
    return text


def _name(text: str) -> str:
    if not text or text != text.strip():
        raise ValueError(f"{text!r:.60} is no name: it is empty, or has a space at an end")
    if len(text) > LONGEST_NAME:
        raise ValueError(f"{text!r:.60} … is too long a name: {LONGEST_NAME} characters are enough")
    return _one_line(text)


def full_match(pattern: str, fault: str) -> AfterValidator:
    """Return a check that a whole text matches; `fault` says behind the text that it doesn't."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {fault}")
        return text

    return AfterValidator(check)


def readable_by(read: Callable[[Any], object]) -> AfterValidator:
    """Return a check that a value can be read, else `read` raises ValueError; it stays as it is."""

    def check(value: object) -> object:
        read(value)
        return value

    return AfterValidator(check)


def stays_inside(path: str) -> str:
    """Return a path that can't lead out of the folder it begins in, or raise ValueError."""
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts) or len(path) > LONGEST_PATH:
        raise ValueError(
            f"{path!r} should be a path inside the folder: no / at its ends, no . or .. in it"
        )
    return path


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text that can be printed in one line."""

Name = Annotated[str, AfterValidator(_name)]
"""A name that people give, such as a variant's."""


PlainName = Annotated[
    str,
    full_match(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "is no name: letters, digits, - _ and . make one, 64 at most",
    ),
]
"""Of a service, stack or site: it becomes part of file names."""
RoleName = Annotated[
    str,
    full_match(
        r"(?!lock\Z)[A-Za-z0-9][A-Za-z0-9_-]{0,23}",
        "is no name for a role: letters, digits, - and _ make one, 24 at most, and lock is taken",
    ),
]
"""Names a service's folder, which sockets lie in: their paths must not become too long."""
InsidePath = Annotated[str, AfterValidator(stays_inside)]
PackageName = Annotated[
    str, full_match(r"[a-z0-9]([a-z0-9+.-]*[a-z0-9+.])?", "is no name of a package of Debian")
]
"""As apt-get takes it for a name and nothing else: one that ends in - would be removed."""


@dataclass(frozen=True)
class Wording:
    """Marks what may be worded otherwise without a change of what is meant."""


Prose = Annotated[str, Wording()]
"""A text for people. Nothing is decided by it: what it says, codes and figures next to it say."""


ACCOUNT = re.compile(r"(?:(?<=//)|^)[^/\s]*@")
"""In an address, of a proxy or a registry; that of a proxy needn't say how it is spoken to."""
SECRET = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
"""A place that a variable of the environment fills."""


def secret_values(texts: Iterable[str], environment: Mapping[str, str]) -> set[str]:
    """Return the secrets that texts name, which are hidden from now on.

    Raise UserError for a variable that isn't there.
    """
    return {_value(name, environment) for text in texts for name in SECRET.findall(text)}


def with_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its secrets; raise UserError for a variable that isn't there."""
    return SECRET.sub(lambda place: _value(place[1], environment), text)


def _value(name: str, environment: Mapping[str, str]) -> str:
    if not (value := environment.get(name)):
        raise UserError(f"${{env:{name}}}: the environment has no {name}; export {name}=… first")
    if not value.isprintable():
        raise UserError(f"${{env:{name}}}: the value of {name} should be text in one line")
    keep_secret([value])
    return value


MOST_COMPARED = 1_000
"""Lines of each text, from the first that differ on."""
CUT = "…"
_PLACE = re.compile(r"(?<=^@@ )-(\d+)(.*) \+(\d+)(.*)(?= @@$)")


def line_diff(
    before: Sequence[str], after: Sequence[str], names: tuple[str, str] = ("", ""), around: int = 0
) -> list[str]:
    """Return a unified diff, its last line CUT where the texts go on beyond what was compared.

    `around`: as many equal lines are shown before and after each that differs.
    """
    if list(before) == list(after):
        return []
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    begin = max(sum(1 for _ in equal) - around, 0)
    end = begin + MOST_COMPARED
    compared = unified_diff(before[begin:end], after[begin:end], *names, n=around, lineterm="")
    lines = [
        _PLACE.sub(
            lambda place: f"-{int(place[1]) + begin}{place[2]} +{int(place[3]) + begin}{place[4]}",
            line,
        )
        for line in compared
    ]
    return [*lines, CUT] if before[end:] or after[end:] else lines
