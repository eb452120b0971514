"""What a difference is made of, in sentences."""

from webdyno.model import format as text
from webdyno.model.explanation import CpuPart, Explanation

SMALL = 0.05
"""Share of the whole difference that a part needs to be told."""


def explanation_sentence(found: Explanation) -> str | None:
    """Say the difference and its parts; None where there surely is none."""
    if not found.whole.is_sure:
        return None
    whole = abs(found.whole.more_us.estimate)
    told = [it for it in found.parts if it.is_sure and abs(it.more_us.estimate) >= SMALL * whole]
    by = "for " if found.by_samples else ""
    largest = sorted(told, key=lambda it: -abs(it.more_us.estimate))
    parts = ", ".join(f"{_more(it)} {by}{it.what}" for it in largest)
    begins = "As sampled, a request" if found.by_samples else "A request"
    return (
        f"{begins} costs {found.a} {_more(found.whole)} CPU time than {found.b}"
        f"{f': {parts}' if parts else ''}."
    )


def _more(part: CpuPart) -> str:
    more = part.more_us
    word = "more" if more.estimate > 0 else "less"
    ends = sorted(map(abs, (more.low, more.high))) if part.is_sure else [more.low, more.high]
    around = f"{text.significant(ends[0], 3)} to {text.significant(ends[1], 3)}"
    return f"{text.significant(abs(more.estimate), 3)} µs ({around}) {word}"
