"""Flame graphs of arms whose servers were sampled, on one scale: microseconds per request.

A box is a call, as wide as the CPU time that a request spends in it and in what it calls (Gregg,
"The Flame Graph", Communications of the ACM 2016). Its colour says whether that is more or less
than in the arm it is compared with.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import altair as alt

from webdyno.model import format as text
from webdyno.model.stacks import read_stacks, stacks_file
from webdyno.report.drawing import TOLD, WIDTH_PX, Figure, Panel, drawn, values, variable
from webdyno.report.view import PointView

ROW_PX, LETTER_PX = 17, 6.6
NARROWEST = 0.004
"""Share of the widest arm that a box needs to be drawn."""
ALIKE = 0.1
"""Share of the larger of two times by which they have to differ to be coloured."""
COLOURS = {"more": variable("worse"), "less": variable("better"), "alike": variable("open")}

Call = tuple[str, ...]
"""The stack down to it, the outermost call first."""


class Box(NamedTuple):
    """A call in a flame graph."""

    call: Call
    begin_us: float
    us: float


def flame_figure(run: Path, point: PointView) -> Figure | None:
    """Draw the arms below each other; None where no stacks were kept of two of them."""
    whole_us: dict[str, float] = {}
    against: dict[str, str] = {}
    for it in point.judgement.explanations:
        if it.by_samples:
            whole_us |= {it.b: it.whole.b_us, it.a: it.whole.a_us}
            against |= {it.a: it.b}
            against.setdefault(it.b, it.a)
    spent = {
        arm: spent_us(stacks, us) for arm, us in whole_us.items() if (stacks := _kept(run, arm))
    }
    if len(spent) < 2:
        return None
    widest_us = max(whole_us[arm] for arm in spent)
    panels = [
        _panel(number, arm, spent[arm], spent.get(against[arm], {}), widest_us)
        for number, arm in enumerate(sorted(spent, key=list(whole_us).index))
    ]
    return Figure(
        name="flames",
        title="What the servers' CPUs did",
        caption="A box is a call, as wide as the CPU time that a request spends in it and in what "
        "it calls, as sampled: on one scale, microseconds per request. In the colour of worse: "
        "more than in the arm it is compared with, or only here; in the colour of better: less.",
        panels=tuple(panels),
        by_arm=False,
    )


def _kept(run: Path, arm: str) -> Counter[str]:
    try:
        return read_stacks(stacks_file(run, arm).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return Counter()


def spent_us(stacks: Mapping[str, int], whole_us: float) -> dict[Call, float]:
    """Give the time per request in each call and what it calls; of all of them it is `whole_us`."""
    samples = sum(stacks.values())
    found = Counter[Call]()
    for stack, count in stacks.items():
        calls = tuple(stack.split(";"))
        for depth in range(1, len(calls) + 1):
            found[calls[:depth]] += count
    return {call: count / samples * whole_us for call, count in found.items()}


def boxes(spent: Mapping[Call, float], narrowest_us: float) -> Iterator[Box]:
    """Place the calls: each above its caller, those of one caller beside each other by name."""
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
    arm: str,
    spent: Mapping[Call, float],
    other: Mapping[Call, float],
    widest_us: float,
) -> Panel:
    placed = list(boxes(spent, NARROWEST * widest_us))
    rows = [_row(box, other.get(box.call, 0.0), widest_us) for box in placed]
    depth = max(len(box.call) for box in placed)
    x = alt.X("begin:Q", title="µs per request").scale(domain=[0, widest_us], nice=False)
    base = alt.Chart(values(rows)).encode(
        y=alt.Y("row:Q", axis=None).scale(domain=[0, depth], nice=False)
    )
    chart = alt.layer(
        base.mark_rect(stroke=variable("card"), strokeWidth=0.5).encode(
            x=x.axis(grid=False),
            x2="end:Q",
            y2="above:Q",
            fill=alt.Fill("change:N", legend=None).scale(
                domain=list(COLOURS), range=list(COLOURS.values())
            ),
            fillOpacity=alt.value(0.35),
            description=TOLD,
        ),
        base.mark_text(align="left", baseline="middle", dx=3, dy=-ROW_PX / 2, fontSize=11).encode(
            x=x, text="label:N"
        ),
    )
    whole = text.significant(sum(it for call, it in spent.items() if len(call) == 1), 3)
    return Panel(
        name=f"flames-{number}",
        alt=f"Flame graph of {arm}: {whole} µs of CPU time per request.",
        svg=drawn(chart, height=depth * ROW_PX),
        heading=f"{arm}: {whole} µs per request",
    )


def _row(box: Box, other_us: float, widest_us: float) -> dict[str, object]:
    name, row = box.call[-1], len(box.call) - 1
    here, there = (text.significant(it, 3) for it in (box.us, other_us))
    letters = int((box.us / widest_us * WIDTH_PX - 6) / LETTER_PX)
    label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    return {
        "begin": float(f"{box.begin_us:.6g}"),
        "end": float(f"{box.begin_us + box.us:.6g}"),
        "row": row,
        "above": row + 1,
        "change": _change(box.us, other_us),
        "label": label,
        "told": f"{name}: {here} µs, there {there} µs",
    }


def _change(us: float, other_us: float) -> str:
    if abs(us - other_us) < ALIKE * max(us, other_us):
        return "alike"
    return "more" if us > other_us else "less"
