"""siege: its text, and the JSON that it prints since 4.0.5."""

from webdyno.formats.facts import Facts, Figures, Tool, in_ms, patterns


def _more(facts: Facts, figures: Figures) -> Figures:
    hits, failed = figures["requests"], figures.get("failed") or 0
    succeeded, data_mb = facts.integer("succeeded"), facts.number("data_mb")
    more: Figures = {"requests": hits + failed, "rated_requests": hits}
    if succeeded is not None:
        # A 404 is a transaction for it and no failed one, but no successful one either.
        more["non_2xx"] = max(0, hits - succeeded)
    if data_mb is not None:
        more["body_bytes"] = int(data_mb * 1024 * 1024)
    return more | {f"{name}_ms": _ms(facts.texts.get(name)) for name in ("mean", "max")}


def _ms(text: str | None) -> float | None:
    """Read a time: the unit is `secs`, since 4.1.7 `ms`, and seconds where there is none (JSON)."""
    return in_ms(text if not text or text[-1] == "s" else f"{text} secs")


def _line(label: str, key: str, name: str, unit: str = "") -> str:
    return rf'(?:{label}:|\{{?\s*"{key}":)\s+(?P<{name}>NUM)(?:{unit})?,?$'


def _time(label: str, key: str, name: str) -> str:
    return rf'(?:{label}:|\{{?\s*"{key}":)\s+(?P<{name}>NUM(?: (?:secs|ms))?),?$'


SIEGE = Tool(
    name="siege",
    opening=r'Transactions:\s+\d[\d.,]*\s+hits|\{?\s*"transactions":\s',
    patterns=patterns(
        _line("Transactions", "transactions", "requests", r"\s+hits"),
        _line("Availability", "availability", "availability", " %"),
        _line("Elapsed time", "elapsed_time", "duration_s", " secs"),
        _line("Data transferred", "data_transferred", "data_mb", " MB"),
        _time("Response time", "response_time", "mean"),
        _line("Transaction rate", "transaction_rate", "throughput_rps", " trans/sec"),
        _line("Throughput", "throughput", "throughput", " MB/sec"),
        _line("Concurrency", "concurrency", "concurrency_seen"),
        _line("Successful transactions", "successful_transactions", "succeeded"),
        _line("Failed transactions", "failed_transactions", "failed"),
        _line("HTTP OK received", "http_ok_received", "okay"),
        _time("Longest transaction", "longest_transaction", "max"),
        _time("Shortest transaction", "shortest_transaction", "min"),
    ),
    more=_more,
)
