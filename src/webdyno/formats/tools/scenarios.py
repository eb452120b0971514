"""Tools whose virtual users go through scenarios: artillery, Gatling, JMeter, k6 and Locust.

artillery prints a report at the end, in two forms. Its latencies aren't read: of several metrics
each has lines of the same labels below it. Nor is its rate, a mean of periods and not of the run.
Gatling's "Global Information" has two layouts. Of JMeter's summary lines the last one counts. k6 is
read from 0.2x to 2.x. Locust prints its tables again and again.
"""

import re

from webdyno.formats.facts import (
    LENGTH,
    CommandLine,
    Facts,
    Figures,
    Tool,
    in_ms,
    non_2xx,
    patterns,
)
from webdyno.formats.text import Fields, as_count, as_float

_LENGTH = re.compile(r"(\d{1,6}) (hour|minute|second)")
_UNITS_S = {"hour": 3600, "minute": 60, "second": 1}


def _artillery(facts: Facts, figures: Figures) -> Figures:
    # In the old form errors are no requests; in the new one all that were sent are.
    answered, failed = facts.integer("answered"), sum(facts.errors.values())
    if answered is not None and figures["requests"] is not None:
        failed = max(0, figures["requests"] - answered)
    length = _LENGTH.findall(facts.texts.get("length", ""))
    return {
        "duration_s": sum((as_count(number) or 0) * _UNITS_S[unit] for number, unit in length)
        or None,
        "failed": failed,
        "failed_timeout": sum(n for error, n in facts.errors.items() if "TIMEDOUT" in error)
        or None,
        "non_2xx": non_2xx(facts.by_status) or 0,
    }


_DOTS = r":\s+(?:\.{2,}\s+)?"

ARTILLERY = Tool(
    name="artillery",
    opening=r"All VUs finished\.|(?:Summary|Complete) report @|Metrics for period to:|"
    r"Report for the previous \d+s @",
    restart=r"All VUs finished\.|Metrics for period to:|Report for the previous \d+s @",
    patterns=patterns(
        r"All VUs finished\. Total time: (?P<length>.{1,80})$",
        r"(?:Metrics for (?P<period>period) to:|Report for the previous)",
        r"(?:(?P<summary>Summary|Complete) report @)",
        rf"http\.requests{_DOTS}(?P<requests>INT)$",
        rf"http\.responses{_DOTS}(?P<answered>INT)$",
        rf"http\.codes\.(?P<status>[1-5]\d\d){_DOTS}(?P<count>INT)$",
        rf"errors\.(?P<error>[^:]{{1,200}}){_DOTS}(?P<count>INT)$",
        r"Requests completed:\s+(?P<requests>INT)$",
        r"(?P<status>[1-5]\d\d):\s+(?P<count>INT)$",
        r"(?P<error>E[A-Z]{3,30}):\s+(?P<count>INT)$",
        r"[a-z][\w.-]{0,80}:(?:\s+\.{2,}.*)?$",
    ),
    chatter=(
        *("min:", "max:", "mean:", "median:", "p95:", "p99:", "Scenarios ", "Scenario ", "RPS "),
        *("Request latency", "Codes:", "Errors:", "Phase ", "Concurrent users", "Elapsed time"),
    ),
    loop="open",
    needed=("summary", "requests"),
    more=_artillery,
    repeats=True,
)


def _gatling_row(label: str, total: str = "", failed: str = "") -> str:
    """Match `label  6000 (OK=6000  KO=0 )`, and since 3.14 `label (ms)  |  6,000 |  6,000 |  0`."""
    first = f"(?P<{total}>NUM|-)" if total else r"(?:NUM|-)"
    last = f"(?P<{failed}>NUM|-)" if failed else r"(?:NUM|-)"
    unit = r"(?: \((?:ms|rps)\))?"
    return (
        rf"{label}{unit}\s{{1,120}}(?:\|\s{{1,9}})?{first}\s+(?:\(OK=|\|\s+)(?:NUM|-)\s+"
        rf"(?:KO=|\|\s+){last}"
    )


def _gatling(facts: Facts, figures: Figures) -> Figures | None:
    if figures["requests"] is None or figures["throughput_rps"] is None:  # a dash
        return None
    return {"failed": facts.integer("failed_or_none") or 0}


GATLING = Tool(
    name="gatling",
    title="Gatling",
    opening=r"---- (?:Global Information|Requests) -",
    patterns=patterns(
        r"---- (?:(?P<banner>Global Information)|\S)",
        _gatling_row(r"(?:request count|numberOfRequests)", "requests", "failed_or_none"),
        _gatling_row("Global", "so_far", "failed_so_far"),  # while it runs
        _gatling_row(r"(?:mean response time|meanResponseTime)", "mean_ms"),
        _gatling_row(r"(?:max response time|maxResponseTime)", "max_ms"),
        _gatling_row(
            r"(?:mean requests/sec|mean throughput|meanNumberOfRequestsPerSecond)", "throughput_rps"
        ),
        r"response time (?P<percent>\d{1,2}(?:\.\d{1,4})?)(?:st|nd|rd|th) percentile(?: \(ms\))?"
        r"\s++(?:\|\s*+)?(?P<at>NUM)",
        _gatling_row(r"\w[\w ]{1,60}"),
        r"\S.{0,200}\s(?:\|\s{1,9}(?:NUM|-)\s){2}\|\s{1,9}(?:NUM|-)$",
        r"\S.{0,200}\s\(OK=INT\s{1,9}KO=INT\s{0,9}\)$",
        r"(?:waiting:\s+INT\s+/ )?(?:active|running):\s+INT\s+/ done:",
        r"(?:OK: )?(?:t [<>]|NUM ms <).{1,80}\(\s*NUM%\)$",
        r"(?:KO|failed)\s+INT\s+\(\s*NUM%\)$",
        r"\S.{0,200}\s{1,120}INT\s+\(\s*NUM%\)$",
    ),
    chatter=("====", "Please open", "Reports generated", "Generating reports"),
    loop=None,
    more=_gatling,
    made_of={"failed_or_none": "failed"},
)


WHOLE_SECONDS_FROM = 60
"""JMeter cuts lengths to whole seconds; shorter ones are too inexact to compare with a rate."""
JMETER_PERCENTILES = {90.0: "pct1ResTime", 95.0: "pct2ResTime", 99.0: "pct3ResTime"}


def _jmeter_seconds(text: str) -> float | None:
    """Read `00:01:30`, and `9.9s` as before version 2.11. Whole seconds are cut off."""
    if ":" not in text:
        return as_float(text.removesuffix("s"))
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    total = (hours * 60 + minutes) * 60 + seconds
    return None if total < WHOLE_SECONDS_FROM else float(total)


def _jmeter_json(parsed: Fields) -> Figures | None:
    total = parsed.inside("Total")
    if "sampleCount" not in total:
        return None
    return {
        "requests": total.count("sampleCount"),
        "failed": total.count("errorCount"),
        "throughput_rps": total.amount("throughput"),
        "mean_ms": total.amount("meanResTime"),
        "max_ms": total.amount("maxResTime"),
        "percentiles_ms": total.amounts_at(JMETER_PERCENTILES),
    }


JMETER = Tool(
    name="jmeter",
    title="JMeter",
    opening=r"summary [=+]\s+\d",
    repeats=True,
    patterns=patterns(
        r"summary =\s+(?P<requests>INT) in\s+(?P<took>\d{1,4}:\d\d:\d\d|NUMs) =\s+"
        r"(?P<throughput_rps>NUM)/s Avg:\s+(?P<mean_ms>INT) Min:\s+INT Max:\s+(?P<max_ms>INT) "
        r"Err:\s+(?P<failed>INT) \(",
        r"summary \+\s+INT in\s",
    ),
    chatter=(
        "Waiting for possible",
        "Tidying up",
        "... end of run",
        "Starting ",
        "Created the tree",
    ),
    more=lambda facts, _: {"duration_s": _jmeter_seconds(facts.texts["took"])},
    read_json=_jmeter_json,
)


K6_PERCENTILES = {50.0: "med", 90.0: "p(90)", 95.0: "p(95)", 99.0: "p(99)"}
_MARK = r"(?:[✓✗]\s+)?"
_TREND = r"\.{2,}:\s+avg=(?P<mean>\S+)\s+min=\S+\s+med=(?P<med>\S+)\s+max=(?P<max>\S+)"
_SHARES = r"(?:✓ (?P<yes>INT)\s+✗ (?P<no>INT)|(?P<part>INT) out of (?P<whole>INT))"


def _shares(yes: str, no: str, part: str, whole: str) -> str:
    named = _SHARES.replace("<yes>", f"<{yes}>").replace("<no>", f"<{no}>")
    return named.replace("<part>", f"<{part}>").replace("<whole>", f"<{whole}>")


def _k6(facts: Facts, figures: Figures) -> Figures:
    passed, missed = facts.integer("checks_passed"), facts.integer("checks_missed")
    checks = facts.integer("checks_all"), facts.integer("checks_failed")
    if passed is not None and missed is not None:
        checks = passed + missed, missed
    turn_ms = in_ms(facts.texts.get("turn"))
    return {
        "loop": "open" if "dropped" in figures else None,
        "percentiles_ms": facts.times_ms({50.0: "med", 90.0: "p90", 95.0: "p95", 99.0: "p99"}),
        "failed": facts.integer("failed_of_old") or facts.integer("failed_of_new") or 0,
        "duration_s": facts.time_s("ran"),
        "checks": checks[0],
        "failed_checks": checks[1],
        "under_way": _iterations_under_way(facts.number("iterations_rps"), turn_ms),
    }


def _iterations_under_way(throughput_rps: float | None, mean_ms: float | None) -> float | None:
    """Mean number of iterations under way: an iteration may send several requests at once."""
    return None if throughput_rps is None or mean_ms is None else throughput_rps * mean_ms / 1000


def _k6_json(parsed: Fields) -> Figures | None:
    """Read what --summary-export and handleSummary write."""
    metrics = _k6_metrics(parsed)
    if "http_reqs" not in metrics or "http_req_duration" not in metrics:
        return None
    requests, duration = metrics.inside("http_reqs"), metrics.inside("http_req_duration")
    failed, checks = metrics.inside("http_req_failed"), metrics.inside("checks")
    seconds = parsed.amount("config", "duration")
    total = requests.count("count")
    rate = requests.amount("rate")
    if rate is None and seconds and total is not None:  # the form of version 2 has no rates
        rate = total / seconds
    passes = checks.count("passes" if "passes" in checks else "matches")
    misses = checks.count("fails")
    iterations_rps = metrics.amount("iterations", "rate")
    return {
        "loop": "open" if "dropped_iterations" in metrics else None,
        "requests": total,
        "throughput_rps": rate,
        "duration_s": seconds,
        # It counts the requests for which "failed" is so as passes.
        "failed": failed.count("passes" if "passes" in failed else "matches"),
        "dropped": metrics.count("dropped_iterations", "count"),
        "concurrency": metrics.count("vus_max", "value"),
        "checks": None if passes is None or misses is None else passes + misses,
        "failed_checks": misses,
        "total_bytes": metrics.count("data_received", "count"),
        "mean_ms": duration.amount("avg"),
        "max_ms": duration.amount("max"),
        "percentiles_ms": duration.amounts_at(K6_PERCENTILES),
        "under_way": _iterations_under_way(
            iterations_rps, metrics.amount("iteration_duration", "avg")
        ),
    }


def _k6_metrics(parsed: Fields) -> Fields:
    """Read name → figures: flat, below `values`, or in the list of version 2."""
    listed = parsed.inside("results").objects("metrics")
    named = {str(each["name"]): each for each in listed if "name" in each}
    metrics = Fields(named or parsed.inside("metrics"))
    return Fields({name: metrics.inside(name, "values") or metrics[name] for name in metrics})


K6 = Tool(
    name="k6",
    opening=r"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|checks_total\.{2,}:|"
    rf"{_MARK}(?:checks|data_received|http_req\w*)\.{{2,}}:",
    only_first=rf"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|{_MARK}checks\.{{2,}}:",
    parts_after="section",
    restart=rf"{_MARK}data_received\.{{2,}}:",
    patterns=patterns(
        rf"{_MARK}http_reqs\.{{2,}}:\s+(?P<requests>INT)\s+(?P<throughput_rps>NUM)/s",
        rf"{_MARK}http_req_duration{_TREND}(?:.*?p\(90\)=(?P<p90>\S+))?(?:.*?p\(95\)=(?P<p95>\S+))?"
        r"(?:.*?p\(99\)=(?P<p99>\S+))?",
        rf"{_MARK}http_req_failed\.{{2,}}:\s+NUM%\s+"
        + _shares("failed_of_old", "right", "failed_of_new", "of_all"),
        rf"{_MARK}checks\.{{2,}}:\s+NUM%\s+"
        + _shares("checks_passed", "checks_missed", "checks_good", "checks_of"),
        r"checks_failed\.{2,}:\s+NUM%\s+(?P<checks_failed>INT) out of (?P<checks_all>INT)",
        rf"{_MARK}dropped_iterations\.{{2,}}:\s+(?P<dropped>INT)\s",
        rf"{_MARK}iteration_duration\.{{2,}}:\s+avg=(?P<turn>\S+)",
        rf"{_MARK}iterations\.{{2,}}:\s+(?P<iterations>INT)\s+(?P<iterations_rps>NUM)/s",
        rf"{_MARK}vus_max\.{{2,}}:\s+(?P<concurrency>INT)\s",
        rf"{_MARK}data_received\.{{2,}}:\s+(?P<read>NUM [kMGT]?B)\s",
        r"running \((?P<ran>[\dhms.]+)\), 0+/INT VUs, INT complete",
        r"(?:#+ )?█ (?P<section>GROUP|SCENARIO): ",
        r"(?:#+ )?█ (?:(?P<banner>TOTAL RESULTS)|THRESHOLDS)",
        rf"{_MARK}[\w ]{{1,80}}\.{{2,}}:\s",
        r"{ [\w:./ -]{1,200} }\.{2,}:",
        r"↳\s+INT% — ✓ INT / ✗ INT",
        r"[✓✗] ",
    ),
    chatter=("HTTP", "EXECUTION", "NETWORK", "CUSTOM", "default "),
    loop=None,
    more=_k6,
    read_json=_k6_json,
    bytes_step=1000,
    made_of={
        "failed_of_old": "failed",
        "failed_of_new": "failed",
        "checks_missed": "failed_checks",
    },
    command=CommandLine(
        options={"u": "concurrency", "vus": "concurrency"} | LENGTH,
        no_matter=(
            "e env out o config insecure-skip-tls-verify no-usage-report quiet q v verbose tag "
            "summary-export summary-trend-stats summary-mode no-color no-summary log-output "
            "http-debug"
        ),
        users_vary=True,
    ),
)


_NAME = r"(?:\S.{0,200}?)?\s{0,120}"


def _locust(facts: Facts, _: Figures) -> Figures:
    heads = facts.texts.get("heads", "").replace("%", "").split()
    cells = facts.texts.get("cells", "").split()
    return {
        "percentiles_ms": {
            percent: time_ms
            for head, cell in zip(heads, cells, strict=False)
            if (percent := as_float(head)) is not None and (time_ms := as_float(cell)) is not None
        }
    }


LOCUST = Tool(
    name="locust",
    title="Locust",
    opening=r"(?:Type\s+)?Name\s+# reqs\s+# fails\s+\|",
    repeats=True,
    patterns=patterns(
        r"(?:Type\s+)?Name\s+# reqs\s+# fails\s+\|",
        r"(?:Aggregated|Total)\s+(?P<requests>INT)\s+(?P<failed>INT)\(NUM%\)\s++(?:\|\s*+)?"
        r"(?P<mean_ms>INT)\s+INT\s+(?P<max_ms>INT)\s++(?:\|\s*+)?INT\s+\|\s+(?P<throughput_rps>NUM)",
        rf"{_NAME}INT\s+INT\(NUM%\)\s+\|",
        r"(?:Type\s+)?Name\s+(?:# reqs\s+)?(?P<heads>\d{1,3}%(?:\s+\d[\d.]{0,8}%){3,20})(?:\s|$)",
        r"(?:Aggregated|Total)\s+(?P<cells>\d{1,9}(?:\s+\d{1,9}){4,20})\s+INT$",
        rf"{_NAME}\d{{1,9}}(?:\s+\d{{1,9}}){{5,20}}$",
    ),
    chatter=(
        *("-----", "Response time percentiles", "Shutting down", "Error report", "# occurrences"),
    ),
    more=_locust,
    command=CommandLine(
        options={"u": "concurrency", "users": "concurrency", "t": "time_limit_s"}
        | {"run-time": "time_limit_s"},
        no_matter=(
            "f locustfile H host r spawn-rate hatch-rate headless no-web csv html L loglevel tags "
            "only-summary json w workers"
        ),
        users_vary=True,
    ),
)
