"""What came around the rounds: the pre-flight check, pilots, adjustments, long looks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from webdyno.core import format as text
from webdyno.core.files import MIB
from webdyno.core.looks import LongLook, LookPart
from webdyno.core.records import AdjustmentRecord, PilotRecord, PreflightRecord, Response
from webdyno.evidence.point_data import PointData
from webdyno.media import document as doc

PilotFigure = Callable[[PilotRecord], float | None]
COLD: tuple[tuple[str, PilotFigure], ...] = (
    ("first valid response", lambda pilot: pilot.cold.first_response_s),
    ("90% of its throughput", lambda pilot: pilot.cold.full_throughput_s),
    ("CPU until then", lambda pilot: pilot.cold.cpu_s),
)
SETTINGS: tuple[tuple[str, PilotFigure], ...] = (
    ("warm-up", lambda pilot: pilot.found.warmup_s),
    ("ramp-up", lambda pilot: pilot.found.ramp_up_s),
    ("window", lambda pilot: pilot.found.window_s),
    ("cycle", lambda pilot: pilot.found.period_s),
)


def pilot_records(data: PointData) -> list[PilotRecord]:
    """Return the last pilot of each variant, those that held."""
    pilots = (record for record in data.records if isinstance(record, PilotRecord))
    return list({pilot.variant: pilot for pilot in pilots}.values())


def pilot_sections(data: PointData) -> Iterator[doc.Section]:
    """Yield how each variant starts, and the times found for it with the reason."""
    pilots = pilot_records(data)
    whys = []
    for pilot in pilots:
        doubt = "" if pilot.found.steady else "; steady state was not confirmed"
        whys.append(doc.Paragraph(pilot.found.why + doubt, label=pilot.variant, look="soft"))
    if pilots:
        yield doc.Section(
            "Start and warm-up: each variant alone, before the rounds",
            [
                _table(pilots, "from a cold start", COLD),
                _table(pilots, "times found", SETTINGS),
                *whys,
            ],
            note="A pilot looks at one variant at a time: how it starts, and how long it takes "
            "until it is steady. Each variant has a ramp-up of its own; all have the longest "
            "window.",
        )


def _table(
    pilots: Sequence[PilotRecord], what: str, columns: Sequence[tuple[str, PilotFigure]]
) -> doc.Table:
    rows = [[pilot.variant, *(_seconds(read(pilot)) for _, read in columns)] for pilot in pilots]
    heads = [doc.Column(what, "name"), *(doc.Column(name, "value") for name, _ in columns)]
    return doc.Table(heads, [doc.RowGroup(rows)], style="brief")


def _seconds(seconds: float | None) -> str:
    """Two digits: a pilot is short."""
    return text.MISSING if seconds is None else text.duration(float(f"{seconds:.2g}"))


def adjustments_made(data: PointData) -> Iterator[str]:
    """Yield what was adjusted while the run went on, in its order."""
    for record in data.records:
        if isinstance(record, AdjustmentRecord):
            after = f"after round {record.round}" if record.round else "before the first round"
            again = "; what was measured before doesn't count" if record.again else ""
            yield f"{record.rule}, {after}: {record.what.rstrip('.')}{again}"


HEADERS_THAT_MATTER = (
    *("Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection"),
    *("Keep-Alive", "Cache-Control", "Expires", "Vary", "ETag", "Last-Modified"),
    *("Accept-Ranges", "Set-Cookie"),
)
"""Headers that change the work of server or client; Date and Server only change the bytes."""


@dataclass(frozen=True)
class PreflightRow:
    """One thing that was looked at, as each variant had it."""

    about: str
    """The path that was requested (the paths, where variants have their own), or `settings`."""
    what: str
    by_variant: dict[str, str]
    wrong: bool
    """A variant's response is not what the site promises."""

    @property
    def differs(self) -> bool:
        return len(set(self.by_variant.values())) > 1


@dataclass(frozen=True)
class Preflight:
    """Everything that was checked before the load."""

    variants: list[str]
    lines: list[PreflightRow]

    @property
    def shown(self) -> list[PreflightRow]:
        """What differs between variants, or is wrong on all of them."""
        return [line for line in self.lines if line.differs or line.wrong]

    @property
    def alike(self) -> list[str]:
        """The names of what is the same everywhere."""
        different = {line.what for line in self.shown}
        names = dict.fromkeys(line.what for line in self.lines)
        return [name for name in names if name != "path" and name not in different]


def preflight_of(data: PointData) -> Preflight:
    """Return the first round's pre-flight check, and what differed in later rounds only."""
    records = [record for record in data.records if isinstance(record, PreflightRecord)]
    lines: dict[tuple[str, str], PreflightRow] = {}
    for record in records:
        for line in _lines(record):
            known = lines.get((line.about, line.what))
            if known is None or (line.differs and not known.differs):
                lines[line.about, line.what] = line
    variants = list(records[0].responses) if records else []
    return Preflight(variants, lines=list(lines.values()))


def _lines(record: PreflightRecord) -> list[PreflightRow]:
    lines, variants = [], list(record.responses)
    # Variants may have paths of their own, so that requests belong together by their place.
    for responses in zip_longest(*record.responses.values()):
        known = {name: each for name, each in zip(variants, responses, strict=True) if each}
        paths = ", ".join(dict.fromkeys(response.path for response in known.values()))
        for what, written in _ASPECTS.items():
            said = {
                name: written(known[name]) if name in known else text.MISSING for name in variants
            }
            is_wrong = _WRONG.get(what, lambda _: False)
            lines.append(PreflightRow(paths, what, said, any(map(is_wrong, known.values()))))
    for what in dict.fromkeys(name for each in record.facts.values() for name in each):
        said = {name: each.get(what) or text.MISSING for name, each in record.facts.items()}
        lines.append(PreflightRow("settings", what, said, wrong=False))
    return [line for line in lines if set(line.by_variant.values()) != {text.MISSING}]


def _status(response: Response) -> str:
    if response.status is None:
        return response.error or "no response"
    wanted = "" if response.has_right_status else f", not {response.expected_status or '2xx'}"
    return f"{response.status}{wanted}"


def _body(response: Response) -> str:
    if response.status is None:
        return text.MISSING
    words = f"{text.size(response.body_bytes)}, SHA-256 {response.body_sha256[:8]}…"
    if response.encoding and response.wire_bytes is not None:
        words += f", {text.size(response.wire_bytes)} as {response.encoding}"
    return words + (f": {response.body_start[:60].strip()}" if _wrong_body(response) else "")


def _wrong_body(response: Response) -> bool:
    return bool(response.lacks) or response.expected_sha256 not in (None, response.body_sha256)


def _header(name: str) -> Callable[[Response], str]:
    def say(response: Response) -> str:
        values = [value for header, value in response.headers if header.lower() == name.lower()]
        return ", ".join(values) or text.MISSING

    return say


_ASPECTS: dict[str, Callable[[Response], str]] = {
    "path": lambda response: response.path,
    "status": _status,
    "body": _body,
    "HTTP version": lambda response: response.http_version or text.MISSING,
    "TLS": lambda response: response.tls or text.MISSING,
    "head": lambda response: text.size(response.head_bytes),
    **{name: _header(name) for name in HEADERS_THAT_MATTER},
}
_WRONG: dict[str, Callable[[Response], bool]] = {
    "status": lambda response: not response.has_right_status,
    "body": _wrong_body,
}


WHAT = {
    "throughput_rps": "throughput",
    "server_cpu_us": "CPU per request",
    "memory_bytes": "memory",
}
SHARE_DIGITS = 5
"""Less than 0.001% is reported as none."""


def how_it_changes(looks: Sequence[LongLook]) -> list[str]:
    """Return for each variant how fast things change; nothing of looks that were short."""
    sentences = []
    for look in looks:
        slopes = []
        for slope in look.slopes:
            change = slope.per_hour
            low, estimate, high = map(_signed_share, (change.low, change.estimate, change.high))
            slopes.append(f"{WHAT[slope.metric]} {estimate} ({low} to {high})")
        if slopes:
            sentences.append(f"{look.variant}, in an hour: {', '.join(slopes)}")
    return sentences


def _signed_share(share: float) -> str:
    shown = text.percent(round(abs(share), SHARE_DIGITS))
    return shown if shown == "0%" else f"{'−' if share < 0 else '+'}{shown}"


def part_words(part: LookPart) -> str:
    """Return a part in one line."""
    rate = part.throughput_rps
    ends = f"{text.number(rate.low)} to {text.number(rate.high)}"
    words = [f"{text.number(rate.estimate)} req/s ({ends})"]
    for name, time_us in (("p50", part.p50_us), ("p99", part.p99_us)):
        if time_us:
            words.append(f"{name} {text.latency(time_us.estimate)}")
    if part.server_cpu_us:
        cpu = text.latency(part.server_cpu_us.estimate)
        words.append(f"{cpu} of the servers' CPU time each")
    if part.memory:
        words.append(f"{text.significant(part.memory.median / MIB)} MiB")
    if part.stalls:
        words.append(f"{text.count(part.stalls, 'stall')}, {text.duration(part.stalled_s)} in all")
    return ", ".join(words)
