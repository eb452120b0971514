"""What settings do, in sentences."""

from collections.abc import Iterator, Sequence

from webdyno.model.design import Effect
from webdyno.model.format import ratio_range, times


def sentences(found: Sequence[Effect]) -> Iterator[str]:
    """Say what each setting does that surely does something, then which of them do nothing."""
    for it in found:
        if it.is_sure:
            words = " together with ".join(it.settings)
            beyond = ", beyond what each does alone" if len(it.settings) > 1 else ""
            yield f"{words}: {times(it.ratio)} ({ratio_range(it.ratio)}){beyond}"
    unsure = [it for it in found if not it.is_sure and len(it.settings) == 1]
    for it in unsure:
        yield f"{it.settings[0]}: no difference is sure ({ratio_range(it.ratio)})"
