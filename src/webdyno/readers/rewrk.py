"""rewrk. It doesn't look at statuses, and its "percentiles" are means of what lies above them."""

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, patterns
from webdyno.readers.output import Output
from webdyno.readers.urls import url_figures


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    failed = sum(facts.errors.values())
    figures["failed"] = failed
    figures["rated_requests"] = figures["requests"]
    figures["requests"] = (figures["requests"] or 0) + failed
    figures["time_limit_s"] = facts.time_s("asked")
    figures["mean_ms"], figures["max_ms"] = (in_ms(facts.texts.get(n)) for n in ("mean", "max"))
    total, per_second = (in_bytes(facts.texts.get(name)) for name in ("read", "transfer"))
    figures["total_bytes"] = None if total is None else int(total)
    figures["transfer_kib_s"] = None if per_second is None else per_second / 1024
    return Output(tool="rewrk", loop="closed", **figures | url_figures(facts.texts.get("url")))


REWRK = Tool(
    name="rewrk",
    opening=r"Benchmarking \d+ connections @ ",
    patterns=patterns(
        r"Benchmarking (?P<concurrency>INT) connections @ (?P<url>\S+)"
        r"(?: for (?P<asked>NUM seconds?)$)?",
        r"(?P<mean>NUMms)\s+NUMms\s+NUMms\s+(?P<max>NUMms)$",
        r"Total:\s+(?P<requests>INT)\s+Req/Sec:\s+(?P<rate_rps>NUM)",
        r"Total:\s+(?P<read>NUM [KMGT]?B)\s+Transfer Rate:\s+(?P<transfer>NUM [KMGT]?B)/Sec",
        r"(?P<count>INT) Errors: (?P<error>\S.{0,300})",
        r"\|\s+NUM%\s+\|\s+NUMms\s+\|$",
    ),
    chatter=("Latencies:", "Avg ", "Requests:", "Transfer:", "+ ---", "|   Percentile"),
    output=_output,
)
