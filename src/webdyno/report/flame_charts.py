"""Flame graphs of variants whose servers were sampled.

A flame graph's box is a call, as wide as the CPU time that a request spends in it and in what it
calls (Gregg, "The Flame Graph", Communications of the ACM 2016), in microseconds per request for
all variants. Its color says whether all calls of its name take more or less than in the variant it
is compared with: other programs call the kernel by other ways.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from sys import intern
from typing import NamedTuple

import altair as alt

from webdyno.core import format as text
from webdyno.core.errors import UserError
from webdyno.core.files import read_given
from webdyno.core.run import MOST_STACKS_BYTES, read_stacks, stacks_file
from webdyno.media.document import Figure, Panel
from webdyno.media.drawing import TOOLTIP, WIDTH_PX, css_variable, drawn, values
from webdyno.report.show import PointView

CALL_PX, LETTER_PX = 17, 6.6
NARROWEST = 0.01
"""Share of the widest variant that a box needs to be drawn: spires of a few pixels say nothing."""
NAMELESS = "[unknown]"
ALIKE = 0.1
"""Share of the larger of two times by which they have to differ to be coloured."""
COLOURS = {
    "more": css_variable("worse"),
    "less": css_variable("better"),
    "alike": css_variable("open"),
}

Call = tuple[str, ...]
"""The stack down to it, the outermost call first."""


class Box(NamedTuple):
    """A call in a flame graph."""

    call: Call
    begin_us: float
    us: float


def flame_figure(run: Path, point: PointView) -> Figure | None:
    """Draw the variants next to each other; None where no stacks were kept of two of them."""
    whole_us: dict[str, float] = {}
    against: dict[str, str] = {}
    for explanation in point.judgement.explanations:
        if explanation.by_samples:
            a, b, whole = explanation.a, explanation.b, explanation.whole
            whole_us |= {b: whole.b_us, a: whole.a_us}
            against |= {a: b}
            against.setdefault(b, a)
    stacks = {variant: kept for variant in whole_us if (kept := _kept(run, variant))}
    if len(stacks) < 2:
        return None
    by_name = {
        variant: spent_by_name_us(stack, whole_us[variant]) for variant, stack in stacks.items()
    }
    widest_us = max(whole_us[variant] for variant in stacks)
    panels = [
        _panel(
            number,
            variant,
            spent_us(stacks[variant], whole_us[variant], NARROWEST * widest_us),
            by_name[variant],
            by_name.get(against[variant], {}),
            widest_us,
        )
        for number, variant in enumerate(stacks)
    ]
    return Figure(
        name="flames",
        title="What the servers' CPUs did",
        caption="A box is a call, as wide as the CPU time that a request spends in it and in what "
        "it calls. Red: all calls of that name take more than in the variant it is compared with, "
        "or are only here. Green: less. Yellow: about as much.",
        panels=tuple(panels),
        by_variant=False,
    )


def _kept(run: Path, variant: str) -> Counter[str]:
    try:
        kept = read_given(stacks_file(run, variant), MOST_STACKS_BYTES, below=run)
    except (UserError, OSError):
        return Counter()
    return read_stacks(kept.decode(errors="replace"))


def spent_us(
    stacks: Mapping[str, int], whole_us: float, narrowest_us: float = 0.0
) -> dict[Call, float]:
    """Return the time per request in each call and what it calls, `whole_us` in all.

    Without what a call makes that takes less than `narrowest_us`: there may be any number.
    """
    each_us = whole_us / sum(stacks.values())
    counts = Counter[Call]()
    # Calls of themselves are one, and so are those above each other that have no name.
    left = [
        (tuple(intern(name) for name, _ in groupby(stack.split(";"))), count)
        for stack, count in stacks.items()
    ]
    depth = 1
    while left:
        for calls, count in left:
            counts[calls[:depth]] += count
        left = [
            (calls, count)
            for calls, count in left
            if len(calls) > depth and counts[calls[:depth]] * each_us >= narrowest_us
        ]
        depth += 1
    return {call: count * each_us for call, count in counts.items()}


def spent_by_name_us(stacks: Mapping[str, int], whole_us: float) -> dict[str, float]:
    """Return the time per request in all calls of a name and what they call, a sample once."""
    samples = sum(stacks.values())
    counts = Counter[str]()
    for stack, count in stacks.items():
        for name in set(stack.split(";")):
            counts[name] += count
    return {name: count / samples * whole_us for name, count in counts.items()}


def boxes(spent: Mapping[Call, float], narrowest_us: float) -> Iterator[Box]:
    """Place the calls: each above its caller, those of one caller next to each other by name."""
    begins: dict[Call, float] = {}
    for call in sorted(spent):
        caller = call[:-1]
        begin_us = begins.get(caller, 0.0)
        begins[call] = begin_us
        begins[caller] = begin_us + spent[call]
        if spent[call] >= narrowest_us:
            yield Box(call, begin_us, spent[call])


def _panel(
    number: int,
    variant: str,
    spent: Mapping[Call, float],
    here: Mapping[str, float],
    there: Mapping[str, float],
    widest_us: float,
) -> Panel:
    """Draw a variant's calls; `here` and `there` are times by name, its own and the other's."""
    placed = list(boxes(spent, NARROWEST * widest_us))
    rows = [
        _row(box, here[box.call[-1]], there.get(box.call[-1], 0.0), widest_us) for box in placed
    ]
    depth = max((len(box.call) for box in placed), default=1)
    x = alt.X("begin:Q", title="µs per request").scale(domain=[0, widest_us], nice=False)
    base = alt.Chart(values(rows)).encode(
        y=alt.Y("row:Q", axis=None).scale(domain=[0, depth], nice=False)
    )
    chart = alt.layer(
        base.mark_rect(stroke=css_variable("card"), strokeWidth=0.5).encode(
            x=x.axis(grid=False),
            x2="end:Q",
            y2="above:Q",
            fill=alt.Fill("change:N", legend=None).scale(
                domain=list(COLOURS), range=list(COLOURS.values())
            ),
            fillOpacity=alt.value(0.35),
            description=TOOLTIP,
        ),
        base.mark_text(align="left", baseline="middle", dx=3, dy=-CALL_PX / 2, fontSize=11).encode(
            x=x, text="label:N"
        ),
    )
    whole = text.significant(sum(value for call, value in spent.items() if len(call) == 1), 3)
    return Panel(
        name=f"flames-{number}",
        alt=f"Flame graph of {variant}: {whole} µs of CPU per request.",
        svg=drawn(chart, height=depth * CALL_PX),
        heading=f"{variant}: {whole} µs per request",
    )


def _row(box: Box, here_us: float, there_us: float, widest_us: float) -> dict[str, object]:
    name, row = box.call[-1], len(box.call) - 1
    if name == NAMELESS or abs(here_us - there_us) < ALIKE * max(here_us, there_us):
        change = "alike"
    else:
        change = "more" if here_us > there_us else "less"
    us, here, there = (text.significant(time_us, 3) for time_us in (box.us, here_us, there_us))
    letters = int((box.us / widest_us * WIDTH_PX - 6) / LETTER_PX)
    label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    return {
        "begin": float(f"{box.begin_us:.6g}"),
        "end": float(f"{box.begin_us + box.us:.6g}"),
        "row": row,
        "above": row + 1,
        "change": change,
        "label": label,
        "told": f"{name}: {us} µs; all calls of it {here} µs, there {there} µs",
    }
