"""What came before, between and after the blocks.

The pre-flight check, pilots, adjustments, long looks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.files import MIB
from webdyno.model.long_look import LongLook, LookPart, Slope
from webdyno.model.records import AdjustmentRecord, Answer, PilotRecord, PreflightRecord
from webdyno.report import document as doc

Tell = Callable[[PilotRecord], float | None]
COLD: tuple[tuple[str, Tell], ...] = (
    ("first right answer", lambda it: it.cold.first_answer_s),
    ("90% of its rate", lambda it: it.cold.full_rate_s),
    ("CPU until then", lambda it: it.cold.cpu_s),
)
SETTINGS: tuple[tuple[str, Tell], ...] = (
    ("warm-up", lambda it: it.found.warmup_s),
    ("lead-in", lambda it: it.found.lead_in_s),
    ("window", lambda it: it.found.window_s),
    ("cycle", lambda it: it.found.period_s),
)


def pilot_records(data: PointData) -> list[PilotRecord]:
    """Give the last pilot of each arm, those that held."""
    return list({it.arm: it for it in data.records if isinstance(it, PilotRecord)}.values())


def pilot_sections(data: PointData) -> Iterator[doc.Section]:
    """Give how each arm starts, and the times found for it with the reason."""
    found = pilot_records(data)
    if found:
        yield doc.Section(
            "Each arm alone, before the blocks",
            [
                _table(found, "from a cold start", COLD),
                _table(found, "times found", SETTINGS),
                *(doc.Paragraph(_why(it), label=it.arm, look="soft") for it in found),
            ],
            note="A pilot looks at one arm at a time: how it starts, and which times it needs "
            "until it is steady. Each arm has a lead-in of its own; all have the longest window.",
        )


def _table(found: Sequence[PilotRecord], what: str, told: Sequence[tuple[str, Tell]]) -> doc.Table:
    rows = [[it.arm, *(_seconds(tell(it)) for _, tell in told)] for it in found]
    heads = [doc.Column(what, "name"), *(doc.Column(name, "value") for name, _ in told)]
    return doc.Table(heads, [doc.RowGroup(rows)])


def _why(pilot: PilotRecord) -> str:
    return pilot.found.why + ("" if pilot.found.steady else "; steady state was not confirmed")


def _seconds(seconds: float | None) -> str:
    """Two digits: a pilot is short."""
    return text.MISSING if seconds is None else text.duration(float(f"{seconds:.2g}"))


def adjustments_made(data: PointData) -> Iterator[str]:
    """Tell what was adjusted while the run went on, in its order."""
    for record in data.records:
        if isinstance(record, AdjustmentRecord):
            after = f"after block {record.block}" if record.block else "before the first block"
            anew = "; what was measured before doesn't count" if record.anew else ""
            yield f"{record.rule}, {after}: {record.what.rstrip('.')}{anew}"


HEADERS_THAT_MATTER = (
    "Content-Type",
    "Content-Encoding",
    "Content-Length",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Cache-Control",
    "Expires",
    "Vary",
    "ETag",
    "Last-Modified",
    "Accept-Ranges",
    "Set-Cookie",
)
"""Headers that change the work of server or client; Date and Server only change the bytes."""


@dataclass(frozen=True)
class PreflightRow:
    """One thing that was looked at, as each arm had it."""

    about: str
    """The path that was asked for (the paths, where arms have their own), or `settings`."""
    what: str
    by_arm: dict[str, str]
    wrong: bool
    """An arm's answer is not what the site promises."""

    @property
    def differs(self) -> bool:
        """Whether the arms are not alike in this."""
        return len(set(self.by_arm.values())) > 1


@dataclass(frozen=True)
class Preflight:
    """Everything that was looked at before the load."""

    arms: list[str]
    lines: list[PreflightRow]

    @property
    def shown(self) -> list[PreflightRow]:
        """What differs between arms, or is wrong on all of them."""
        return [line for line in self.lines if line.differs or line.wrong]

    @property
    def alike(self) -> list[str]:
        """The names of what is the same everywhere."""
        different = {line.what for line in self.shown}
        names = dict.fromkeys(line.what for line in self.lines)
        return [name for name in names if name != "path" and name not in different]


def preflight_of(data: PointData) -> Preflight:
    """Give the pre-flight check of the first block, and what differed in later blocks only.

    There are no arms in it when the run ended before any was asked.
    """
    found = [record for record in data.records if isinstance(record, PreflightRecord)]
    lines: dict[tuple[str, str], PreflightRow] = {}
    for record in found:
        for line in _lines(record):
            known = lines.get((line.about, line.what))
            if known is None or (line.differs and not known.differs):
                lines[line.about, line.what] = line
    arms = list(found[0].answers) if found else []
    return Preflight(arms, lines=list(lines.values()))


def _lines(record: PreflightRecord) -> list[PreflightRow]:
    lines = [
        _line(by_arm, what, tell, wrong)
        for by_arm in _by_request(record.answers)
        for what, tell, wrong in _ASPECTS
    ]
    for name in dict.fromkeys(name for each in record.settings.values() for name in each):
        by_arm = {arm: each.get(name) or text.MISSING for arm, each in record.settings.items()}
        lines.append(PreflightRow("settings", name, by_arm, wrong=False))
    return [line for line in lines if set(line.by_arm.values()) != {text.MISSING}]


def _by_request(answers: dict[str, list[Answer]]) -> list[dict[str, Answer | None]]:
    """Put the arms' answers to the first request together, then to the second, and so on.

    Arms may have paths of their own, so that requests belong together by their place.
    """
    rows = zip_longest(*answers.values())
    return [dict(zip(answers, row, strict=True)) for row in rows]


def _line(
    by_arm: dict[str, Answer | None],
    what: str,
    tell: Callable[[Answer], str],
    wrong: Callable[[Answer], bool],
) -> PreflightRow:
    return PreflightRow(
        about=", ".join(dict.fromkeys(answer.path for answer in by_arm.values() if answer)),
        what=what,
        by_arm={arm: tell(answer) if answer else text.MISSING for arm, answer in by_arm.items()},
        wrong=any(answer is not None and wrong(answer) for answer in by_arm.values()),
    )


def _status(answer: Answer) -> str:
    if answer.status is None:
        return answer.error or "no answer"
    wanted = "" if answer.has_right_status else f", not {answer.expected_status or '2xx'}"
    return f"{answer.status}{wanted}"


def _wrong_status(answer: Answer) -> bool:
    return not answer.has_right_status


def _body(answer: Answer) -> str:
    if answer.status is None:
        return text.MISSING
    told = f"{text.size(answer.body_bytes)}, SHA-256 {answer.body_sha256[:8]}…"
    if answer.encoding and answer.wire_bytes is not None:
        told += f", {text.size(answer.wire_bytes)} as {answer.encoding}"
    return told + (f": {answer.body_start[:60].strip()}" if _wrong_body(answer) else "")


def _wrong_body(answer: Answer) -> bool:
    return bool(answer.lacks) or answer.expected_sha256 not in (None, answer.body_sha256)


def _header(name: str) -> Callable[[Answer], str]:
    def tell(answer: Answer) -> str:
        values = [value for header, value in answer.headers if header.lower() == name.lower()]
        return ", ".join(values) or text.MISSING

    return tell


def _never(_: Answer) -> bool:
    return False


_ASPECTS: list[tuple[str, Callable[[Answer], str], Callable[[Answer], bool]]] = [
    ("path", lambda answer: answer.path, _never),
    ("status", _status, _wrong_status),
    ("body", _body, _wrong_body),
    ("HTTP version", lambda answer: answer.http_version or text.MISSING, _never),
    ("TLS", lambda answer: answer.tls or text.MISSING, _never),
    ("head", lambda answer: text.size(answer.head_bytes), _never),
    *((name, _header(name), _never) for name in HEADERS_THAT_MATTER),
]


WHAT = {
    "rate_rps": "requests per second",
    "server_cpu_us": "server CPU time per request",
    "memory_bytes": "memory",
}
SHARE_DIGITS = 5
"""Less than 0.001% is told as none."""


def how_it_changes(looks: Sequence[LongLook]) -> list[str]:
    """Say for each variant how fast things change; nothing of looks that were short."""
    return [
        f"{look.arm}, in an hour: {', '.join(map(_slope_words, look.slopes))}"
        for look in looks
        if look.slopes
    ]


def _slope_words(slope: Slope) -> str:
    low, centre, high = slope.per_hour.low, slope.per_hour.estimate, slope.per_hour.high
    return f"{WHAT[slope.metric]} {_signed(centre)} ({_signed(low)} to {_signed(high)})"


def _signed(share: float) -> str:
    shown = text.percent(round(abs(share), SHARE_DIGITS))
    return shown if shown == "0%" else f"{'−' if share < 0 else '+'}{shown}"


def part_words(part: LookPart) -> str:
    """Tell of a part in one line."""
    return ", ".join(_part_words(part))


def _part_words(part: LookPart) -> Iterator[str]:
    yield f"{text.number(part.rate_rps.estimate)} requests/s ({_ends(part.rate_rps)})"
    for name, time_us in (("p50", part.p50_us), ("p99", part.p99_us)):
        if time_us:
            yield f"{name} {text.significant(time_us.estimate / 1000)} ms"
    if part.server_cpu_us:
        yield f"{text.significant(part.server_cpu_us.estimate)} µs of the servers' CPU time each"
    if part.memory:
        yield f"{text.significant(part.memory.median / MIB)} MiB"
    if part.stalls:
        yield f"{text.count(part.stalls, 'stall')}, {text.duration(part.stalled_s)} in all"


def _ends(interval: Interval) -> str:
    return f"{text.number(interval.low)} to {text.number(interval.high)}"
