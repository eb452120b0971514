"""Strict reading, for the lab: it knows which tool it ran, and takes no missing figure for zero."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webdyno.formats.facts import Facts, Tool
from webdyno.formats.lines import NumberedLine, plain
from webdyno.formats.output import Output


class Unreadable(Exception):  # noqa: N818 (whoever ran the tool makes a message for people of it)
    """What a tool printed isn't the account of one run; the message says what is wrong with it."""


@dataclass(frozen=True)
class Run:
    """One run of a tool, with the figures without which it would be none."""

    requests: int
    """Requests that ended, failed ones included."""
    duration_s: float
    throughput_rps: float
    output: Output
    """Everything that it said."""


def read_run(tool: Tool, text: str, needed: Iterable[str] = ()) -> Run:
    """Read what a tool printed of its one run.

    `needed` are figures of `Output` that it always prints. Raise Unreadable when one of them is
    missing, or when the text says different things about the same figure.
    """
    lines = [NumberedLine(number, plain(raw)) for number, raw in enumerate(text.splitlines(), 1)]
    facts = Facts(first_line=1, last_line=len(lines))
    for line in lines:
        if texts := tool.read(line.text):
            facts.add(line, texts)
    if facts.contradicted:
        raise Unreadable(f"it says different things about {', '.join(sorted(facts.contradicted))}")
    output = tool.output(facts)
    if output is None:
        raise Unreadable("it has no figures")
    if output.requests == 0 and output.throughput_rps is None:  # ab has none of nothing
        output = replace(output, throughput_rps=0.0)
    requests, duration_s, throughput_rps = output.requests, output.duration_s, output.throughput_rps
    missing = [
        name
        for name in ("requests", "duration_s", "throughput_rps", *needed)
        if getattr(output, name) is None
    ]
    if requests is None or duration_s is None or throughput_rps is None or missing:
        raise Unreadable(f"it doesn't report {', '.join(dict.fromkeys(missing))}")
    return Run(requests, duration_s, throughput_rps, output)
