"""redis-benchmark: its text, and the one line per command of `-q`."""

import re
from collections.abc import Iterator

from webdyno.formats.facts import Tool, patterns
from webdyno.formats.lines import NumberedLine
from webdyno.formats.output import Output
from webdyno.formats.values import NUMBER, as_float

_QUIET = re.compile(
    rf"\b([A-Z][A-Z_]{{1,40}}(?: \([^)]{{0,60}}\))?): ({NUMBER}) requests per second"
    rf"(?:, p50=({NUMBER}) msec)?"
)


REDIS = Tool(
    name="redis-benchmark",
    opening=r"(?:.*\s)?====== [^=]{1,80} ======",
    patterns=patterns(
        r"(?:.*\s)?====== (?P<path>[^=]{1,80}) ======",
        r"(?P<requests>INT) requests completed in (?P<duration_s>NUM) seconds",
        r"(?P<concurrency>INT) parallel clients",
        r"throughput summary: (?P<throughput_rps>NUM) requests per second",
        r"(?P<throughput_rps>NUM) requests per second$",
        r"(?P<percent>\d{1,3}(?:\.\d{1,4})?)% <= (?P<at>NUM milliseconds)",
        r"INT bytes payload",
        r"NUM(?:\s+NUM){5}$",
    ),
    needed=("throughput_rps",),
    chatter=(
        *("keep alive", "host config", "multi-thread", "Latency by perc", "Cumulative dist"),
        *("Summary:", "latency summary", "avg "),
    ),
)


def redis_quiet(line: NumberedLine) -> Iterator[Output]:
    """Read `SET: 105273.69 requests per second`; several commands may stand in a line."""
    for name, rate, median in _QUIET.findall(line.text):
        yield Output(
            tool="redis-benchmark",
            first_line=line.number,
            last_line=line.number,
            loop="closed",
            path=name,
            throughput_rps=as_float(rate),
            percentiles_ms={50.0: p50} if (p50 := as_float(median)) is not None else {},
        )
