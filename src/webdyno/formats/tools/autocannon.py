"""autocannon: its boxes, the tables before version 3, and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import Facts, Figures, Tool, non_2xx, patterns
from webdyno.formats.values import (
    amount,
    amounts_at,
    as_count,
    as_float,
    by_status_group,
    inside,
    url_figures,
    whole_amount,
)

PRECISE_THOUSANDS = 50
"""It rounds counts to thousands: from so many on that is an error of 1 % at most."""

BOX_PERCENTILES = {2.5: "p2_5", 50.0: "p50", 97.5: "p97_5", 99.0: "p99"}
PERCENTILES = {50.0: "p50", 90.0: "p90", 99.0: "p99", 99.9: "p99_9"}


def _more(facts: Facts, figures: Figures) -> Figures:
    answered = facts.integer("responses_2xx"), facts.integer("non_2xx")
    return {
        "requests": _requests(facts.texts["sent"], answered),
        "failed": _rounded(facts.texts.get("errors", "0")),
        "failed_timeout": _rounded(facts.texts.get("timeouts", "0")),
        "non_2xx": figures.get("non_2xx", 0),  # it says nothing of what did not happen
        "pipelining": facts.integer("pipelining") or 1,
        "percentiles_ms": facts.percentiles_ms | facts.times_ms(BOX_PERCENTILES),
    }


def _rounded(text: str) -> int | None:
    if text.endswith("k"):
        thousands = as_count(text[:-1])
        return None if thousands is None else 1000 * thousands
    return as_count(text)


def _requests(sent: str, answered: tuple[int | None, int | None]) -> int | None:
    if None not in answered:
        return sum(each or 0 for each in answered)
    thousands = as_float(sent.removesuffix("k")) or 0
    return _rounded(sent) if not sent.endswith("k") or thousands >= PRECISE_THOUSANDS else None


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    latency, requests = parsed.get("latency"), parsed.get("requests")
    if not isinstance(latency, dict) or not isinstance(requests, dict) or "non2xx" not in parsed:
        return None
    by_status = by_status_group(parsed, "{}xx")
    return {
        "concurrency": whole_amount(parsed.get("connections")),
        "pipelining": whole_amount(parsed.get("pipelining")),
        "requests": whole_amount(requests.get("total")),
        "throughput_rps": amount(requests.get("average")),
        "duration_s": amount(parsed.get("duration")),
        "failed": whole_amount(parsed.get("errors")),
        "failed_timeout": whole_amount(parsed.get("timeouts")),
        "non_2xx": non_2xx(by_status) if by_status else whole_amount(parsed.get("non2xx")),
        "by_status": by_status,
        "total_bytes": whole_amount(inside(parsed, "throughput", "total")),
        "mean_ms": amount(latency.get("average")),
        "max_ms": amount(latency.get("max")),
        "percentiles_ms": amounts_at(latency, PERCENTILES),
        **url_figures(parsed.get("url")),
    }


AUTOCANNON = Tool(
    name="autocannon",
    opening=r"Running \d+ requests test @ |[│|] Stat\s+[│|] 2\.5%|Stat\s+Avg\s+Stdev\s+Max$|"
    r"\d+ 2xx responses, \d+ non 2xx|\d+k? requests in \d[\d.]*s, \d[\d.]* [kMGT]?B read",
    looks_like="wrk",
    sure_by=r"\d+ connections(?: with \d+ pipelining factor)?$",
    restart=r"Running \d+ requests test @ |[│|] Stat\s+[│|] 2\.5%\s+[│|] 50%",
    patterns=patterns(
        r"Running (?P<asked>NUM ?s) test @ (?P<url>\S+)",
        r"Running INT requests test @ (?P<url>\S+)",
        r"Running \S+ (?:requests )?warmup @ ",
        r"(?P<concurrency>INT) connections(?: with (?P<pipelining>INT) pipelining factor)?$",
        r"[│|] Latency\s+[│|] NUM ms\s+[│|] (?P<p50>NUM ms)\s+[│|] (?P<p97_5>NUM ms)\s+"
        r"[│|] (?P<p99>NUM ms)\s+[│|] (?P<mean>NUM ms)\s+[│|] NUM ms\s+[│|] (?P<max>NUM ms)",
        r"[│|] Req/Sec\s+[│|](?: NUM\s+[│|]){4} (?P<throughput_rps>NUM)\s+[│|]",
        r"[│|] Bytes/Sec\s+[│|](?: NUM [kMGT]?B\s+[│|]){4} (?P<transfer>NUM [kMGT]?B)\s+[│|]",
        r"[│|] (?P<status>[1-5]\d\d)\s+[│|] (?P<count>INT)\s+[│|]$",
        r"[│|] (?P<percent>\d{1,2}(?:\.\d{1,3})?)\s+[│|] (?P<at>NUM)\s+[│|]$",
        r"Latency \(ms\)\s+(?P<mean>NUM)\s+NUM\s+(?P<max>NUM)$",
        r"Req/Sec\s+(?P<throughput_rps>NUM)\s+NUM\s+NUM$",
        r"Bytes/Sec\s+(?P<transfer>NUM [kMGT]?B)\s+NUM [kMGT]?B\s+NUM [kMGT]?B$",
        r"(?P<responses_2xx>INT) 2xx responses, (?P<non_2xx>INT) non 2xx responses",
        r"(?P<sent>(?:INT)k?) requests in (?P<duration_s>NUM)s, (?P<read>NUM [kMGT]?B) read",
        r"(?P<errors>(?:INT)k?) errors \((?P<timeouts>(?:INT)k?) timeouts\)",
    ),
    chatter=(
        *("┌", "├", "└", "│ Stat", "│ Code", "│ Percentile", "Req/Bytes counts", "# of samples:"),
        "Stat ",
    ),
    needed=("sent",),
    more=_more,
    read_json=_json_figures,
    bytes_step=1000,
)
