"""How lighttpd prints a configuration: which lines there are, and which would be read otherwise.

It prints conditions and keys as they are. One with a line break in it would be read as lines that
nobody wrote.
"""

import re
from pathlib import Path

from webdyno.core.errors import UserError

_TEXT = r'"(?:\\"|[^"])*+"'
_KEY = r'"[^"]*(?<!\\)"'
_SINGLE = rf"(?:{_TEXT}|-?\d+)"
_VALUE = rf"(?:{_SINGLE}|\((?:{_SINGLE}(?:, {_SINGLE})*+)?\)|\()"
_KNOWN = re.compile(
    r"\s*+(?:"
    rf"|[A-Za-z][\w.-]*+\s*+= {_VALUE}"
    rf"|(?:{_KEY}\s*+=> )?{_VALUE},?"
    r"|\),?"
    r'|(?:else )?\$\w+\["[^"]*"\] \S+ ".*(?<!\\)" \{'
    r"|else \{"
    r"|\}(?: # end of .*)?"
    r"|# [a-z]+ \d+"
    r"|config \{"
    r")"
)


def demand_known_lines(printed: str, file: Path) -> None:
    """Raise UserError where a line isn't as lighttpd prints settings, lists and conditions."""
    for line in printed.splitlines():
        if not _KNOWN.fullmatch(line):
            raise UserError(
                f"{file}: lighttpd prints {line.strip():.80}, which would be read as something "
                "else; leave line breaks out of texts, and quotation marks out of keys of lists"
            )
