"""One module per tool: what its lines look like, and what they say."""

import re

from webdyno.audit.tools.ab import AB
from webdyno.audit.tools.facts import Tool
from webdyno.audit.tools.h2load import H2LOAD
from webdyno.audit.tools.hey import HEY
from webdyno.audit.tools.httperf import HTTPERF
from webdyno.audit.tools.oha import OHA
from webdyno.audit.tools.redis import REDIS
from webdyno.audit.tools.siege import SIEGE
from webdyno.audit.tools.wrk import WRK

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
