"""What variants did at multiples of their capacity, as a table."""

from collections.abc import Callable, Iterator, Sequence

from webdyno.model import format as text
from webdyno.model.explain import Overload, OverRounds
from webdyno.report import document as doc

NOTE = (
    "The last two of four seconds at a multiple of the capacity; medians of the rounds that tried "
    "it. Goodput: requests within the objectives, then as a share of the capacity. Back: how long "
    "half of the capacity broke the objectives afterwards."
)
HEADINGS = ("goodput, req/s", "of capacity", "failed", "p50", "p99", "back after")


def overload_section(found: Sequence[Overload]) -> Iterator[doc.Section]:
    """Say what came of asking for more than the capacity, where that was tried."""
    if found:
        columns = [
            doc.Column("variant", "name", obvious=True),
            doc.Column("load", "value"),
            *(doc.Column(heading, "value", spare=heading == "p50") for heading in HEADINGS),
        ]
        rows = [doc.RowGroup(list(map(_row, found)))]
        table = doc.Table(columns, rows, style="brief")
        yield doc.Section("Beyond capacity", [table], NOTE, "goodput is what meets the objectives")


def _row(found: Overload) -> list[doc.Cell | str]:
    return [
        found.variant,
        f"{found.times:g}{text.TIMES}",
        _median(found.goodput_rps, _rate),
        _median(found.of_capacity, text.percent),
        _median(found.failed, text.percent),
        _median(found.p50_us, text.latency),
        _median(found.p99_us, text.latency),
        back_words(found),
    ]


def _median(spread: OverRounds | None, written: Callable[[float], str]) -> str:
    return written(spread.median) if spread else text.MISSING


def _rate(rps: float) -> str:
    return text.significant(rps) if rps else "0"


def back_words(found: Overload) -> str:
    """Say how long it took to come back, and in how many rounds it didn't."""
    if found.died:
        return f"it died ({found.died} of {found.rounds})"
    if not found.back_s:
        return "not in 10 s"
    said = text.duration(float(f"{found.back_s.median:.2g}"))
    return said if found.back == found.rounds else f"{said} ({found.back} of {found.rounds})"
