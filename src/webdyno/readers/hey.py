"""hey, and boom, which it was called before."""

from webdyno.readers.facts import Facts, Tool, non_2xx, patterns
from webdyno.readers.output import Output


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "rate_rps" not in figures or "duration_s" not in figures:
        return None
    if facts.by_status or facts.errors:
        answered, failed = sum(facts.by_status.values()), sum(facts.errors.values())
        figures |= {"requests": answered + failed, "failed": failed}
        figures["non_2xx"] = non_2xx(facts.by_status)
    for name, what in (("mean_ms", "mean_s"), ("max_ms", "max_s")):
        seconds = facts.number(what)
        figures[name] = None if seconds is None else seconds * 1000
    return Output(tool="hey", loop="closed", **figures)


HEY = Tool(
    name="hey",
    opening=r"Total:\s+\d[\d.]* secs",
    patterns=patterns(
        r"Total:\s+(?P<duration_s>NUM) secs",
        r"Slowest:\s+(?P<max_s>NUM) secs",
        r"Average:\s+(?P<mean_s>NUM) secs",
        r"Requests/sec:\s+(?P<rate_rps>NUM)",
        r"Total data:\s+(?P<body_bytes>INT) bytes",
        r"Size/request:\s+(?P<document_bytes>INT) bytes",
        r"(?P<percent>\d{1,2}(?:\.\d{1,4})?)%+ in (?P<at>NUM secs)",
        r"\[(?P<status>\d{3})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.*)",
        r"NUM \[INT\]",
    ),
    output=_output,
    chatter=(
        *("Fastest:", "Response time histogram", "Latency distribution", "Details (", "DNS"),
        *("req write", "resp ", "Status code dist", "Error dist"),
    ),
)
