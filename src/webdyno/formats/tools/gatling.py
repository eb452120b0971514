"""Gatling: the "Global Information" on its console, in both of its layouts."""

from webdyno.formats.facts import Facts, Figures, Tool, patterns


def _row(label: str, total: str = "", failed: str = "") -> str:
    """Give `label   6000 (OK=6000   KO=0 )` and since 3.14 `label (ms)  |  6,000 |  6,000 |  0`."""
    first = f"(?P<{total}>NUM|-)" if total else r"(?:NUM|-)"
    last = f"(?P<{failed}>NUM|-)" if failed else r"(?:NUM|-)"
    unit = r"(?: \((?:ms|rps)\))?"
    return (
        rf"{label}{unit}\s{{1,120}}(?:\|\s{{1,9}})?{first}\s+(?:\(OK=|\|\s+)(?:NUM|-)\s+"
        rf"(?:KO=|\|\s+){last}"
    )


def _more(facts: Facts, figures: Figures) -> Figures | None:
    if figures["requests"] is None or figures["throughput_rps"] is None:  # a dash
        return None
    return {"failed": facts.integer("failed_or_none") or 0}


GATLING = Tool(
    name="gatling",
    opening=r"---- (?:Global Information|Requests) -",
    patterns=patterns(
        r"---- (?:(?P<banner>Global Information)|\S)",
        _row(r"(?:request count|numberOfRequests)", "requests", "failed_or_none"),
        _row("Global", "so_far", "failed_so_far"),  # while it runs
        _row(r"(?:mean response time|meanResponseTime)", "mean_ms"),
        _row(r"(?:max response time|maxResponseTime)", "max_ms"),
        _row(
            r"(?:mean requests/sec|mean throughput|meanNumberOfRequestsPerSecond)", "throughput_rps"
        ),
        r"response time (?P<percent>\d{1,2}(?:\.\d{1,4})?)(?:st|nd|rd|th) percentile(?: \(ms\))?"
        r"\s+\|?\s*(?P<at>NUM)",
        _row(r"\w[\w ]{1,60}"),
        r"\S.{0,200}\s(?:\|\s{1,9}(?:NUM|-)\s){2}\|\s{1,9}(?:NUM|-)$",
        r"\S.{0,200}\s\(OK=INT\s{1,9}KO=INT\s{0,9}\)$",
        r"(?:waiting:\s+INT\s+/ )?(?:active|running):\s+INT\s+/ done:",
        r"(?:OK: )?(?:t [<>]|NUM ms <).{1,80}\(\s*NUM%\)$",
        r"(?:KO|failed)\s+INT\s+\(\s*NUM%\)$",
        r"\S.{0,200}\s{1,120}INT\s+\(\s*NUM%\)$",
    ),
    chatter=("====", "Please open", "Reports generated", "Generating reports"),
    loop=None,
    more=_more,
)
