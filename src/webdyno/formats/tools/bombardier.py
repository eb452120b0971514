"""bombardier: its text and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import Facts, Figures, Tool, non_2xx, patterns
from webdyno.formats.values import amount, by_status_group, inside, url_figures, whole_amount


def _more(facts: Facts, _: Figures) -> Figures:
    groups, failed = facts.groups(), facts.integer("others") or 0
    return groups | {"failed": failed, "requests": sum(groups["by_status"].values()) + failed}


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    spec, result = parsed.get("spec"), parsed.get("result")
    if not isinstance(spec, dict) or not isinstance(result, dict) or "req2xx" not in result:
        return None
    by_status = by_status_group(result, "req{}xx")
    failed = whole_amount(result.get("others")) or 0
    return {
        "concurrency": whole_amount(spec.get("numberOfConnections")),
        "time_limit_s": amount(spec.get("testDurationSeconds")),
        "demanded_rps": amount(spec.get("rate")),
        "duration_s": amount(result.get("timeTakenSeconds")),
        "requests": sum(by_status.values()) + failed,
        "failed": failed,
        "by_status": by_status,
        "non_2xx": non_2xx(by_status) or 0,
        "throughput_rps": amount(inside(result, "rps", "mean")),
        "total_bytes": whole_amount(result.get("bytesRead")),
        "mean_ms": amount(inside(result, "latency", "mean"), 0.001),
        "max_ms": amount(inside(result, "latency", "max"), 0.001),
        **url_figures(spec.get("url")),
    }


BOMBARDIER = Tool(
    name="bombardier",
    opening=r"Bombarding \S+ (?:for|with) |Statistics\s+Avg\s+Stdev\s+Max$",
    restart=r"Bombarding \S+ (?:for|with) ",
    patterns=patterns(
        r"Bombarding (?P<url>\S+) for (?P<asked>\S+) using (?P<concurrency>INT) connection",
        r"Bombarding (?P<url>\S+) with INT requests?(?:\(s\))? using (?P<concurrency>INT) connect",
        r"Reqs/sec\s+(?P<throughput_rps>NUM)\s+NUM\s+NUM$",
        r"Latency\s+(?P<mean>\S+)\s+\S+\s+(?P<max>\S+)$",
        r"(?P<percent>\d{1,2})%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"1xx - (?P<responses_1xx>INT), 2xx - (?P<responses_2xx>INT), "
        r"3xx - (?P<responses_3xx>INT), 4xx - (?P<responses_4xx>INT), 5xx - (?P<responses_5xx>INT)",
        r"others - (?P<others>INT)",
        r"Throughput:\s+(?P<transfer>\S+)/s",
        r"(?P<error>\S.{0,300}) - (?P<count>INT)$",
    ),
    chatter=("Statistics ", "Latency Distribution", "HTTP codes:", "Errors:", "Done!", "[="),
    needed=("throughput_rps", "responses_2xx"),
    more=_more,
    read_json=_json_figures,
)
