"""wrk, and wrk2, which looks the same but keeps to a rate."""

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, patterns
from webdyno.readers.output import Output
from webdyno.readers.urls import url_figures


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    took_ms, read = in_ms(facts.texts.get("took")), in_bytes(facts.texts.get("read"))
    if took_ms is not None:
        figures["duration_s"] = took_ms / 1000
    if read is not None:
        figures["total_bytes"] = int(read)
    per_second = in_bytes(facts.texts.get("transfer"))
    if per_second is not None:
        figures["transfer_kib_s"] = per_second / 1024
    figures["mean_ms"] = in_ms(facts.texts.get("mean"))
    figures["max_ms"] = in_ms(facts.texts.get("max"))
    figures["under_way"] = _under_way(facts, figures["mean_ms"])
    figures |= url_figures(facts.texts.get("url"))
    figures["time_limit_s"] = facts.time_s("asked")
    # Both say nothing of what did not happen.
    figures.setdefault("non_2xx", 0)
    errors = [facts.integer(f"failed_{kind}") for kind in ("connect", "receive", "timeout")]
    figures["failed"] = sum(count or 0 for count in [*errors, facts.integer("failed_write")])
    wrk2 = "calibration" in facts.texts
    return Output(tool="wrk2" if wrk2 else "wrk", loop="open" if wrk2 else "closed", **figures)


def _under_way(facts: Facts, mean_ms: float | None) -> float | None:
    """Requests under way by Little's law, from the median: wrk adds late answers to its mean.

    Without percentiles the median is at least the mean less the deviation.
    """
    rate, stdev_ms = facts.number("rate_rps"), in_ms(facts.texts.get("stdev"))
    median_ms = facts.percentiles_ms.get(50.0)
    if median_ms is None and mean_ms is not None and stdev_ms is not None:
        median_ms = max(0.0, mean_ms - stdev_ms)
    return None if rate is None or median_ms is None else rate * median_ms / 1000


WRK = Tool(
    name="wrk",
    opening=r"Running \S+ test @ ",
    patterns=patterns(
        r"Running (?P<asked>\S+) test @ (?P<url>\S+)",
        r"INT threads? and (?P<concurrency>INT) connections?$",
        r"Thread calibration: (?P<calibration>mean)",
        r"Latency\s+(?P<mean>\S+)\s+(?P<stdev>\S+)\s+(?P<max>\S+)\s+\S+$",
        r"(?P<percent>\d{1,3}(?:\.\d{1,6})?)%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"NUM\s+[01]\.\d{6}\s+INT(?:\s+(?:NUM|inf))?$",
        r"(?P<requests>INT) requests in (?P<took>\S+), (?P<read>\S+) read",
        r"Socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"Non-2xx or 3xx responses: (?P<non_2xx>INT)",
        r"Requests/sec:\s+(?P<rate_rps>NUM)",
        r"Transfer/sec:\s+(?P<transfer>\S+)",
    ),
    output=_output,
    chatter=(
        *("Initialised ", "Thread Stats", "Req/Sec", "Latency Distribution"),
        *("Detailed Percentile", "Value ", "#[", "----------"),
    ),
)
