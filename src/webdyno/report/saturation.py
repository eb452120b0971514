"""What was at its limit just below each capacity, in a sentence for each arm."""

from collections.abc import Callable, Iterator, Sequence

from webdyno.model import format as text
from webdyno.model.quantities import memory_words
from webdyno.model.saturation import Resource, ResourceUse, Saturation

HEADING = "What was at its limit just below each capacity"


def sentences(found: Sequence[Saturation]) -> Iterator[str]:
    """Say of each arm what there was no more of; of what there was least where that is nothing."""
    for it in found:
        if it.limits:
            yield f"{it.arm}: {' and '.join(WORDS[use.resource](use) for use in it.limits)}."
        elif it.uses:
            nearest = WORDS[it.nearest.resource](it.nearest)
            yield (
                f"{it.arm}: nothing that was counted, nearest to it {nearest}; "
                "what arrives at random stands in queues before anything is used up."
            )


def _percent(use: ResourceUse) -> str:
    return text.percent(use.share)


def _whole(use: ResourceUse) -> str:
    return text.number(use.whole or 0.0)


def _client(use: ResourceUse) -> str:
    late = ", too late to offer more" if use.at_limit else ""
    return f"the load generator ({_percent(use)} busy{late})"


WORDS: dict[Resource, Callable[[ResourceUse], str]] = {
    "servers-cpus": lambda it: f"the servers' CPUs ({_percent(it)} busy)",
    "busiest-cpu": lambda it: f"the busiest of the servers' CPUs ({_percent(it)} busy)",
    "cpu-quota": lambda it: f"its quota of {it.whole:g} CPUs ({_percent(it)} used)",
    "workers": lambda it: f"the {_whole(it)} workers of {it.role} ({_percent(it)} busy)",
    "connections": lambda it: f"the load's {_whole(it)} connections ({_percent(it)} in use)",
    "memory": lambda it: (
        f"the memory limit of {memory_words(int(it.whole or 0))} ({_percent(it)} used)"
    ),
    "link": lambda it: f"the link ({_percent(it)} full)",
    "client": _client,
}
"""By what it is: its name, and how much of it was in use."""
