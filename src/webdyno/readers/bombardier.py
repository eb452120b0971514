"""bombardier: its text and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, non_2xx, patterns
from webdyno.readers.json_figures import amount, inside, scaled, whole_amount
from webdyno.readers.output import Output
from webdyno.readers.urls import url_figures

GROUPS = ("1xx", "2xx", "3xx", "4xx", "5xx")


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    statuses = {group: facts.integer(f"answers_{group}") for group in GROUPS}
    if "rate_rps" not in figures or statuses["2xx"] is None:
        return None
    by_status = {group: number for group, number in statuses.items() if number}
    failed = facts.integer("others") or 0
    figures |= {
        "by_status": by_status,
        "non_2xx": non_2xx(by_status) or 0,
        "failed": failed,
        "requests": sum(by_status.values()) + failed,
        "time_limit_s": facts.time_s("asked"),
    }
    figures["mean_ms"], figures["max_ms"] = (in_ms(facts.texts.get(n)) for n in ("mean", "max"))
    per_second = in_bytes(facts.texts.get("transfer"))
    figures["transfer_kib_s"] = None if per_second is None else per_second / 1024
    return Output(tool="bombardier", loop="closed", **figures | url_figures(facts.texts.get("url")))


BOMBARDIER = Tool(
    name="bombardier",
    opening=r"Bombarding \S+ (?:for|with) |Statistics\s+Avg\s+Stdev\s+Max$",
    restart=r"Bombarding \S+ (?:for|with) ",
    patterns=patterns(
        r"Bombarding (?P<url>\S+) for (?P<asked>\S+) using (?P<concurrency>INT) connection",
        r"Bombarding (?P<url>\S+) with INT requests?(?:\(s\))? using (?P<concurrency>INT) connect",
        r"Reqs/sec\s+(?P<rate_rps>NUM)\s+NUM\s+NUM$",
        r"Latency\s+(?P<mean>\S+)\s+\S+\s+(?P<max>\S+)$",
        r"(?P<percent>\d{1,2})%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"1xx - (?P<answers_1xx>INT), 2xx - (?P<answers_2xx>INT), 3xx - (?P<answers_3xx>INT), "
        r"4xx - (?P<answers_4xx>INT), 5xx - (?P<answers_5xx>INT)",
        r"others - (?P<others>INT)",
        r"Throughput:\s+(?P<transfer>\S+)/s",
        r"(?P<error>\S.{0,300}) - (?P<count>INT)$",
    ),
    chatter=("Statistics ", "Latency Distribution", "HTTP codes:", "Errors:", "Done!", "[="),
    output=_output,
)


def bombardier_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    spec, result = found.get("spec"), found.get("result")
    if not isinstance(spec, dict) or not isinstance(result, dict) or "req2xx" not in result:
        return []
    by_status = {
        group: number for group in GROUPS if (number := whole_amount(result.get(f"req{group}")))
    }
    failed = whole_amount(result.get("others")) or 0
    url = spec.get("url")
    output = Output(
        tool="bombardier",
        first_line=first_line,
        last_line=last_line,
        loop="closed",
        concurrency=whole_amount(spec.get("numberOfConnections")),
        time_limit_s=amount(spec.get("testDurationSeconds")),
        demanded_rps=amount(spec.get("rate")),
        duration_s=amount(result.get("timeTakenSeconds")),
        requests=sum(by_status.values()) + failed,
        failed=failed,
        by_status=by_status,
        non_2xx=non_2xx(by_status) or 0,
        rate_rps=amount(inside(result, "rps", "mean")),
        total_bytes=whole_amount(result.get("bytesRead")),
        mean_ms=scaled(inside(result, "latency", "mean"), 0.001),
        max_ms=scaled(inside(result, "latency", "max"), 0.001),
        **url_figures(url if isinstance(url, str) else None),
    )
    return [output]
