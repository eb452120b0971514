"""Whether two sides that are compared did the same work under the same load."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from webdyno.audit.document import Document
from webdyno.audit.rules.rule import Rule, Seen, number
from webdyno.readers.output import Output

SAME_SIZE = 0.02
"""Documents that differ less may be one page with another date in it."""

Sides = dict[str, list[Output]]


def _subjects(document: Document) -> Iterator[list[Output]]:
    """Group outputs that ask for the same document: one path, or a path made unreadable."""
    by_path: dict[str, list[Output]] = defaultdict(list)
    for output in document.web_outputs:
        if output.document_bytes is not None or output.rate_rps is not None:
            by_path[_known(output.path) or ""].append(output)
    yield from by_path.values()


def _known(text: str | None) -> str | None:
    """Give a name, unless it was made unreadable: `********`, `<server>`, `HOST`."""
    if not text or "**" in text or "xxx" in text.lower() or text.startswith("<"):
        return None
    return None if text.isupper() else text


def _side(output: Output) -> str | None:
    """Say which side an output is of: its server, or else where it listens."""
    if output.server:
        return output.server
    host = _known(output.host)
    return f"{host}:{output.port or 80}" if host else None


def _sides(outputs: list[Output]) -> Sides:
    sides: Sides = defaultdict(list)
    for output in outputs:
        if side := _side(output):
            sides[side].append(output)
    return sides


def _different_documents(document: Document) -> Iterator[Seen]:
    told: set[tuple[object, ...]] = set()
    for outputs in _subjects(document):
        sized = [each for each in outputs if each.document_bytes is not None and _side(each)]
        for before, after in pairwise(sized):
            a, b = before.document_bytes or 0, after.document_bytes or 0
            key = (*sorted((a, b)), *sorted((_side(before) or "", _side(after) or "")))
            if key in told or abs(a - b) <= SAME_SIZE * max(a, b):
                continue
            told.add(key)
            what = f"{_side(before)} (line {before.where('document_bytes')}) served {number(a)} "
            what += f"bytes and {_side(after)} {number(b)}, a factor of "
            factor = number(max(a, b) / max(1, min(a, b)))
            yield Seen(after.where("document_bytes"), f"{what}{factor}", tool=after.tool)


def _differing(
    name: str, setting: Callable[[Output], object]
) -> Callable[[Document], Iterator[Seen]]:
    """Make a check that two sides have at least one value of a setting in common."""

    def check(document: Document) -> Iterator[Seen]:
        for outputs in _subjects(document):
            sides = [
                (side, {value for each in mine if (value := setting(each)) is not None}, mine)
                for side, mine in _sides(outputs).items()
            ]
            known = [each for each in sides if each[1]]
            for (side, values, mine), (other, others, theirs) in pairwise(known):
                if values & others:
                    continue
                what = f"{side} (line {mine[0].first_line}) was measured with {name} "
                what += f"{_listed(values)}, {other} with {_listed(others)}"
                yield Seen(theirs[0].first_line, what, tool=theirs[0].tool)

    return check


def _listed(values: set[object]) -> str:
    shown = sorted(values, key=lambda value: value if isinstance(value, int) else 0)[:5]
    words = ["on" if value is True else "off" if value is False else str(value) for value in shown]
    return ", ".join(words) + (", …" if len(values) > len(shown) else "")


def _copied_outputs(document: Document) -> Iterator[Seen]:
    seen: dict[tuple[object, ...], Output] = {}
    for output in document.outputs:
        figures = (output.rate_rps, output.duration_s, output.mean_ms, output.total_bytes)
        if output.requests is None or None in figures[:2]:
            continue
        first = seen.setdefault(figures, output)
        if first is not output and _side(first) != _side(output):
            what = f"the same figures as in line {first.first_line}, for {_side(output)} instead "
            yield Seen(output.first_line, f"{what}of {_side(first)}", tool=output.tool)


_SETTINGS: tuple[tuple[str, Callable[[Output], object]], ...] = (
    ("connections at once:", lambda output: output.concurrency),
    ("keep-alive", lambda output: output.keepalive_requested),
    ("the loop", lambda output: output.loop),
)

_DUEL = (
    "webdyno duel nginx apache-prefork --site static --path /100KB.txt puts one load on both, in "
    "turns"
)

RULES = (
    Rule(
        "different-documents",
        _different_documents,
        why="The two sides did not do the same work. Bytes decide the rate of static files, and "
        "a page of another length was made by other code.",
        instead=f"{_DUEL}, and gives no verdict while the bodies differ.",
    ),
    *(
        Rule(
            "different-settings",
            _differing(name, setting),
            why="The sides differ in more than the server, so they are measured, too.",
            instead=f"{_DUEL}, and lists what else differs between them.",
        )
        for name, setting in _SETTINGS
    ),
    Rule(
        "copied-output",
        _copied_outputs,
        why="Two runs never give the same figures to the last digit: one was copied.",
        instead="webdyno run keeps every slot in the run's folder and makes the report from it.",
    ),
)
