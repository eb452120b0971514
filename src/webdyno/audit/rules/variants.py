"""Whether two variants that are compared did the same work under the same load."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from webdyno.audit.reader import AuditedText
from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.formats import Command, Output

RULES: list[AuditRule[AuditedText]] = []

RESPONSES_DIFFER, HEADS_DIFFER = 1.5, 150
"""Ratio and bytes by which responses differ that can't be the same body under different heads."""

SAME_SIZE = 0.02
"""Documents that differ less may be one page with another date in it."""

_DUEL = (
    "webdyno compare nginx apache-prefork --site static --path /100KB.txt puts one load on both, "
    "in turns"
)
_SETTINGS = {
    "connections at once:": "concurrency",
    "keep-alive": "keepalive_requested",
    "the loop": "loop",
}
"""What people call it -> attribute of Output."""


def _subjects(document: AuditedText) -> Iterator[list[Output]]:
    """Group outputs that ask for the same document: one path, or a path made unreadable."""
    by_path: dict[str, list[Output]] = defaultdict(list)
    for output in document.web_outputs:
        if output.document_bytes is not None or output.throughput_rps is not None:
            by_path[_readable(output.path) or ""].append(output)
    yield from by_path.values()


def _readable(text: str | None) -> str | None:
    """Return a name, unless it was made unreadable: `********`, `<server>`, `HOST`."""
    if not text or "**" in text or "xxx" in text.lower() or text[0] == "<" or text.isupper():
        return None
    return text


def _variant(output: Output) -> str | None:
    """Return the variant of an output: its server and where it listens, as far as they are known.

    Two addresses may have servers of one name, and one name may be measured twice.
    """
    host = _readable(output.host)
    place = f"{f'[{host}]' if ':' in host else host}:{output.port or 80}" if host else None
    if output.server and place and output.port:
        return f"{output.server} at {place}"
    return output.server or place


def _by_variant(outputs: list[Output]) -> dict[str, list[Output]]:
    variants = defaultdict[str, list[Output]](list)
    for output in outputs:
        if variant := _variant(output):
            variants[variant].append(output)
    return variants


def _short_name(variant: str | None, other: str | None) -> str:
    """Name a variant shortly: by its server alone where the other one has another server."""
    server, _, _ = (variant or "").partition(" at ")
    return server if server != (other or "").partition(" at ")[0] else variant or ""


@rule(
    RULES,
    "different-documents",
    why="The two variants did not do the same work. Bytes decide the throughput of static files, "
    "and a page of another length was made by other code.",
    instead=f"{_DUEL}, and gives no verdict while the bodies differ.",
)
def different_documents(document: AuditedText) -> Iterator[Violation]:
    reported: set[tuple[object, ...]] = set()
    for outputs in _subjects(document):
        sized = [each for each in outputs if each.document_bytes is not None and _variant(each)]
        for before, after in pairwise(sized):
            a, b = before.document_bytes or 0, after.document_bytes or 0
            if _variant(before) == _variant(after):
                continue  # one server whose page was changed in between
            key = (*sorted((a, b)), *sorted((_variant(before) or "", _variant(after) or "")))
            if key in reported or abs(a - b) <= SAME_SIZE * max(a, b):
                continue
            reported.add(key)
            one, other = _variant(before), _variant(after)
            what = f"{_short_name(one, other)} (line {before.where('document_bytes')}) served "
            what += f"{numeral(a)} bytes and {_short_name(other, one)} {numeral(b)}, a factor of "
            factor = numeral(max(a, b) / max(1, min(a, b)))
            yield Violation(after.where("document_bytes"), f"{what}{factor}", tool=after.tool)


def _response(output: Output) -> float | None:
    """Bytes of a response with its head, of outputs that don't name the document's length."""
    if output.document_bytes is not None or output.failed or output.non_2xx:
        return None
    if output.total_bytes is None and output.body_bytes is not None and output.requests:
        return output.body_bytes / output.requests
    return output.response_bytes


@different_documents.also(RULES)
def different_responses(document: AuditedText) -> Iterator[Violation]:
    reported: set[tuple[str, str]] = set()
    for outputs in _subjects(document):
        sized = [(each, size) for each in outputs if (size := _response(each)) and _variant(each)]
        for (before, a), (after, b) in pairwise(sized):
            one, other = _variant(before) or "", _variant(after) or ""
            apart = abs(a - b) > HEADS_DIFFER and max(a, b) > RESPONSES_DIFFER * min(a, b)
            if not apart or before.tool != after.tool or (one, other) in reported:
                continue
            reported |= {(one, other), (other, one)}
            what = f"{_short_name(one, other) or one} (line {before.first_line}) answered with "
            what += (
                f"{numeral(a)} bytes, heads included, and {_short_name(other, one) or other} with "
            )
            yield Violation(
                after.first_line, f"{what}{numeral(b)}", serious=one != other, tool=after.tool
            )


@rule(
    RULES,
    "unknown-sizes",
    why="Whether the variants served the same document was not looked at: an empty or wrong "
    "response is fast.",
    instead=f"{_DUEL}, and gives no verdict while the bodies differ.",
)
def unknown_sizes(document: AuditedText) -> Iterator[Violation]:
    for outputs in _subjects(document):
        variants = _by_variant(outputs)
        for variant, mine in variants.items() if len(variants) > 1 else ():
            sizes = ((each.document_bytes, each.body_bytes, each.response_bytes) for each in mine)
            if all(size is None for each in sizes for size in each):
                what = f"{variant}: no size of its responses is given"
                yield Violation(mine[0].first_line, what, serious=False, tool=mine[0].tool)


@rule(
    RULES,
    "different-settings",
    why="Requests that are sent together share packets and system calls: the variant with "
    "pipelining looks many times faster by that alone.",
    instead=f"{_DUEL}, and never pipelines.",
)
def pipelining_differs(document: AuditedText) -> Iterator[Violation]:
    by_tool: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for output in document.of(Output):
        if output.pipelining is not None:
            by_tool[output.tool].append((output.pipelining, output.where("pipelining")))
    for command in document.of(Command):
        by_tool[command.tool].append((command.pipelining or 1, command.line))
    for tool, runs in by_tool.items():
        deep = next((run for run in runs if run[0] > 1), None)
        plain = next((run for run in runs if run[0] == 1), None)
        if deep and plain:
            what = f"line {deep[1]} was measured with {numeral(deep[0])} requests at once over a "
            what += f"connection (pipelining), line {plain[1]} with one"
            yield Violation(max(deep[1], plain[1]), what, tool=tool)


@rule(
    RULES,
    "different-settings",
    why="The variants differ in more than the server, so they are measured, too.",
    instead=f"{_DUEL}, and lists what else differs between them.",
)
def different_settings(document: AuditedText) -> Iterator[Violation]:
    """Two variants should have at least one value of each setting in common."""
    for name, attribute in _SETTINGS.items():
        for outputs in _subjects(document):
            known = []
            for variant, mine in _by_variant(outputs).items():
                if values := {getattr(each, attribute) for each in mine} - {None}:
                    known.append((variant, values, mine[0]))
            for (one, values, before), (other, others, after) in pairwise(known):
                if not values & others:
                    what = f"{_short_name(one, other)} (line {before.first_line}) was measured "
                    what += f"with {name} {_setting_words(values)}, "
                    what += f"{_short_name(other, one)} with {_setting_words(others)}"
                    yield Violation(after.first_line, what, tool=after.tool)


def _setting_words(values: set[object]) -> str:
    shown = sorted(values, key=lambda value: value if isinstance(value, int) else 0)[:5]
    words = ["on" if value is True else "off" if value is False else str(value) for value in shown]
    return ", ".join(words) + (", …" if len(values) > len(shown) else "")


@rule(
    RULES,
    "copied-output",
    why="Two runs never give the same figures to the last digit: one was copied.",
    instead="webdyno run keeps every slot in the run's folder and makes the report from it.",
)
def copied_output(document: AuditedText) -> Iterator[Violation]:
    seen: dict[tuple[object, ...], Output] = {}
    for output in document.of(Output):
        figures = (output.throughput_rps, output.duration_s, output.mean_ms, output.total_bytes)
        if output.requests is None or None in figures[:2]:
            continue
        first = seen.setdefault(figures, output)
        if first is not output and _variant(first) != _variant(output):
            what = f"the same figures as in line {first.first_line}, for {_variant(output)} "
            what += f"instead of {_variant(first)}"
            yield Violation(output.first_line, what, tool=output.tool)
