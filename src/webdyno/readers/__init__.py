"""What load generators print, one module per tool, and what browsers save (HAR).

The lab reads outputs strictly (`read_run`), the auditor leniently and in any text.
"""

import re

from webdyno.readers.ab import AB
from webdyno.readers.autocannon import AUTOCANNON
from webdyno.readers.bombardier import BOMBARDIER
from webdyno.readers.facts import Tool
from webdyno.readers.gatling import GATLING
from webdyno.readers.ghz import GHZ
from webdyno.readers.h2load import H2LOAD
from webdyno.readers.hey import HEY
from webdyno.readers.httperf import HTTPERF
from webdyno.readers.jmeter import JMETER
from webdyno.readers.k6 import K6
from webdyno.readers.lines import NumberedLine
from webdyno.readers.locust import LOCUST
from webdyno.readers.oha import OHA
from webdyno.readers.plow import PLOW
from webdyno.readers.redis import REDIS
from webdyno.readers.request_sheets import RequestSheet
from webdyno.readers.rewrk import REWRK
from webdyno.readers.sheets import Sheet, TotalSheet
from webdyno.readers.siege import SIEGE
from webdyno.readers.vegeta import VEGETA
from webdyno.readers.wrk import WRK
from webdyno.readers.zrk import ZRK

TOOLS = (
    *(AB, HTTPERF, WRK, H2LOAD, OHA, HEY, SIEGE, REDIS, K6, VEGETA, AUTOCANNON, BOMBARDIER),
    *(JMETER, GATLING, LOCUST, GHZ, PLOW, REWRK, ZRK),
)

READABLE = (
    "ab, autobench, autocannon, bombardier, Gatling, ghz, h2load, hey, httperf, JMeter, k6, "
    "Locust, oha, plow, redis-benchmark, rewrk, siege, vegeta, wrk, wrk2 and zrk"
)
"""All of them in words; their JSON and CSV is read by functions of their own."""

AnySheet = Sheet | TotalSheet | RequestSheet

_OPENINGS = re.compile("|".join(f"(?P<tool{n}>{tool.opening})" for n, tool in enumerate(TOOLS)))

_SURE = {(tool.looks_like, tool): re.compile(tool.sure_by) for tool in TOOLS if tool.looks_like}


def opened_by(text: str) -> Tool | None:
    """Give the tool that begins an output with such a line."""
    found = _OPENINGS.match(text)
    if not found or not found.lastgroup:
        return None
    return TOOLS[int(found.lastgroup.removeprefix("tool"))]


def after_all(tool: Tool, text: str) -> Tool:
    """Give the tool that an output is of, now that this line follows what two tools begin with."""
    for (looks_like, other), sure_by in _SURE.items():
        if looks_like == tool.name and sure_by.match(text):
            return other
    return tool


def sheet_headed_by(line: NumberedLine) -> AnySheet | None:
    """Recognise the header of a sheet."""
    return Sheet.headed_by(line) or TotalSheet.headed_by(line) or RequestSheet.headed_by(line)
