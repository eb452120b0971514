"""Whether there is enough of an output to conclude from: requests, time, and figures."""

from collections.abc import Iterator

from webdyno.audit.rules import AuditRule, Violation, numeral
from webdyno.formats.output import Output

ENOUGH_ABOVE = 10
"""Samples that should lie above a percentile before it means anything."""
TAIL = 90.0
"""Percentiles from here up are about the rare long waits that a closed loop hardly sees."""
SHORT_S = 5
AB_DEFAULT_REQUESTS = 50_000
"""`ab -t` without -n stops after so many requests, whatever the time is."""


def _tail(output: Output) -> Iterator[Violation]:
    if not output.requests:
        return
    beyond = {
        percent: output.requests * (100 - percent) / 100
        for percent in output.percentiles_ms
        if 50 < percent < 100
    }
    thin = sorted(percent for percent, above in beyond.items() if above < ENOUGH_ABOVE)
    if thin:
        above = f"{beyond[thin[0]]:.2g}"
        what = f"p{thin[0]:g} of {numeral(output.requests)} requests has {above} of them above it"
        if len(thin) > 1:
            what += f", p{thin[-1]:g} has {beyond[thin[-1]]:.1g}"
        yield Violation(output.where("requests"), what, serious=False)


def _closed_loop(output: Output) -> Iterator[Violation]:
    if output.loop != "closed" or not output.percentiles_ms or output.concurrency == 1:
        return
    highest = max((p for p in output.percentiles_ms if p < 100), default=0.0)
    if highest < TAIL:
        return
    what = f"percentiles up to p{highest:g} from a closed loop"
    yield Violation(output.where("percentiles_ms"), what, serious=False)


def _short(output: Output) -> Iterator[Violation]:
    took_s = output.duration_s
    if took_s is None or took_s >= SHORT_S:
        return
    what = f"the run took {numeral(took_s)} s"
    limit_s = output.time_limit_s
    if limit_s and limit_s > 2 * took_s and output.requests == AB_DEFAULT_REQUESTS:
        what += f" instead of {numeral(limit_s)}: ab -t stops at {numeral(AB_DEFAULT_REQUESTS)} "
        what += "requests unless -n comes behind it"
    yield Violation(output.where("duration_s"), what, serious=False)


def _reply_rate(output: Output) -> Iterator[Violation]:
    if output.reply_rate_samples is not None and output.reply_rate_samples < 6:
        what = f"the reply rate's spread is from {numeral(output.reply_rate_samples)} samples"
        yield Violation(output.where("reply_rate_samples"), what, serious=False)


def _only_rates(output: Output) -> Iterator[Violation]:
    if output.requests is None and output.duration_s is None and output.demanded_rps is None:
        what = (
            f"{output.path or output.tool}: throughput, but neither length nor number of requests"
        )
        yield Violation(output.first_line, what, serious=False)


RULES = (
    AuditRule(
        "thin-tail",
        _tail,
        why="A percentile with few samples above it is one or two odd requests, and another run "
        "gives another.",
        instead="webdyno load URL --time 60s for more of them (p99 with 95% confidence takes 299 "
        "requests without a miss); webdyno compare nginx apache-event says which percentiles have "
        "too few.",
    ),
    AuditRule(
        "closed-loop",
        _closed_loop,
        why="Each connection waits for its response before it asks again, so while the server "
        "stalls nobody asks: the percentiles exclude the waiting that users would have had.",
        instead="webdyno load URL --rate RATE --poisson asks by a timetable and counts from when "
        "a request was due.",
    ),
    AuditRule(
        "short-run",
        _short,
        why="Servers take seconds to start workers, fill caches and compile; a short run "
        "measures that, and one incident moves everything.",
        instead="webdyno load URL --time 30s; webdyno compare nginx apache-prefork warms up, and "
        "repeats until the interval is narrow.",
    ),
    AuditRule(
        "few-rate-samples",
        _reply_rate,
        why="httperf takes one sample each 5 s; minimum, maximum and deviation of a handful say "
        "nothing of how steady the server is.",
        instead="webdyno load URL --rate RATE --time 60s --format csv -o windows.csv gives a row "
        "per second.",
    ),
    AuditRule(
        "only-throughput",
        _only_rates,
        why="Without the run's length and its failures there is nothing to check it by.",
        instead="Keep the whole output: redis-benchmark prints all of it without -q, and "
        "webdyno load URL --format json does for HTTP.",
    ),
)
