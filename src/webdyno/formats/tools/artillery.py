"""artillery: the report at the end of a run, in both of its forms.

Latencies aren't read: of several metrics each has lines of the same labels below it. Nor is the
rate, which is a mean of periods and not that of the run.
"""

import re

from webdyno.formats.facts import Facts, Figures, Tool, non_2xx, patterns
from webdyno.formats.values import as_count

_LENGTH = re.compile(r"(\d{1,6}) (hour|minute|second)")
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _more(facts: Facts, figures: Figures) -> Figures:
    # In the old form errors are no requests; in the new one all that were sent are.
    answered, failed = facts.integer("answered"), sum(facts.errors.values())
    if answered is not None and figures["requests"] is not None:
        failed = max(0, figures["requests"] - answered)
    length = _LENGTH.findall(facts.texts.get("length", ""))
    return {
        "duration_s": sum((as_count(number) or 0) * _SECONDS[unit] for number, unit in length)
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
    more=_more,
    repeats=True,
)
