"""What load generators print, one module per tool, and what browsers save (HAR).

The lab reads outputs strictly (`read_run`), the auditor leniently and in any text.
"""

import re

from webdyno.readers.ab import AB
from webdyno.readers.facts import Tool
from webdyno.readers.h2load import H2LOAD
from webdyno.readers.hey import HEY
from webdyno.readers.httperf import HTTPERF
from webdyno.readers.oha import OHA
from webdyno.readers.redis import REDIS
from webdyno.readers.siege import SIEGE
from webdyno.readers.wrk import WRK

TOOLS = (AB, HTTPERF, WRK, H2LOAD, OHA, HEY, SIEGE, REDIS)

READABLE = "ab, httperf, autobench, wrk, wrk2, h2load, hey, oha, siege and redis-benchmark"
"""All of them in words; autobench's and oha's other forms are read by functions of their own."""

_OPENINGS = re.compile("|".join(f"(?P<tool{n}>{tool.opening})" for n, tool in enumerate(TOOLS)))


def opened_by(text: str) -> Tool | None:
    """Give the tool that begins an output with such a line."""
    found = _OPENINGS.match(text)
    if not found or not found.lastgroup:
        return None
    return TOOLS[int(found.lastgroup.removeprefix("tool"))]
