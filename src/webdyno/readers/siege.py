"""siege: its text, and the JSON that it prints since 4.0.5."""

from webdyno.readers.facts import Facts, Tool, patterns
from webdyno.readers.output import Output


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    hits, failed = figures["requests"], figures.get("failed") or 0
    succeeded, data_mb = facts.integer("succeeded"), facts.number("data_mb")
    figures["requests"] = hits + failed
    if succeeded is not None:
        # A 404 is a transaction for it and no failed one, but no successful one either.
        figures["non_2xx"] = max(0, hits - succeeded)
    if data_mb is not None:
        figures["body_bytes"] = int(data_mb * 1024 * 1024)
    for name, what in (("mean_ms", "mean_s"), ("max_ms", "max_s")):
        seconds = facts.number(what)
        figures[name] = None if seconds is None else seconds * 1000
    return Output(tool="siege", loop="closed", **figures)


def _line(label: str, key: str, name: str, unit: str = "") -> str:
    return rf'(?:{label}:|\{{?\s*"{key}":)\s+(?P<{name}>NUM)(?:{unit})?,?$'


SIEGE = Tool(
    name="siege",
    opening=r'Transactions:\s+\d+ hits|\{?\s*"transactions":\s',
    patterns=patterns(
        _line("Transactions", "transactions", "requests", " hits"),
        _line("Availability", "availability", "availability", " %"),
        _line("Elapsed time", "elapsed_time", "duration_s", " secs"),
        _line("Data transferred", "data_transferred", "data_mb", " MB"),
        _line("Response time", "response_time", "mean_s", " secs"),
        _line("Transaction rate", "transaction_rate", "rate_rps", " trans/sec"),
        _line("Throughput", "throughput", "throughput", " MB/sec"),
        _line("Concurrency", "concurrency", "concurrency_seen"),
        _line("Successful transactions", "successful_transactions", "succeeded"),
        _line("Failed transactions", "failed_transactions", "failed"),
        _line("Longest transaction", "longest_transaction", "max_s"),
        _line("Shortest transaction", "shortest_transaction", "min_s"),
    ),
    output=_output,
)
