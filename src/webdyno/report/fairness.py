"""The fairness certificate as a table of what differs between the arms."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.records import Answer, CertificateRecord

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
class FairnessRow:
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
class Fairness:
    """Everything that was looked at before the load."""

    arms: list[str]
    lines: list[FairnessRow]

    @property
    def shown(self) -> list[FairnessRow]:
        """What differs between arms, or is wrong on all of them."""
        return [line for line in self.lines if line.differs or line.wrong]

    @property
    def alike(self) -> list[str]:
        """The names of what is the same everywhere."""
        different = {line.what for line in self.shown}
        names = dict.fromkeys(line.what for line in self.lines)
        return [name for name in names if name != "path" and name not in different]


def fairness(data: PointData) -> Fairness | None:
    """Give the certificate of the first block, and what differed in later blocks only.

    None when the run ended before any arm was asked.
    """
    found = [record for record in data.records if isinstance(record, CertificateRecord)]
    if not found:
        return None
    lines: dict[tuple[str, str], FairnessRow] = {}
    for record in found:
        for line in _lines(record):
            known = lines.get((line.about, line.what))
            if known is None or (line.differs and not known.differs):
                lines[line.about, line.what] = line
    return Fairness(arms=list(found[0].answers), lines=list(lines.values()))


def _lines(record: CertificateRecord) -> list[FairnessRow]:
    lines = [
        _line(by_arm, what, tell, wrong)
        for by_arm in _by_request(record.answers)
        for what, tell, wrong in _ASPECTS
    ]
    for name in dict.fromkeys(name for each in record.settings.values() for name in each):
        by_arm = {arm: each.get(name) or text.MISSING for arm, each in record.settings.items()}
        lines.append(FairnessRow("settings", name, by_arm, wrong=False))
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
) -> FairnessRow:
    return FairnessRow(
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
