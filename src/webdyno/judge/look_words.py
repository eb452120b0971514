"""What a long look found, in words."""

from collections.abc import Iterator

from webdyno.judge.look_course import MOST_CHANGE
from webdyno.model.format import count, duration, listed, number, percent
from webdyno.model.long_look import Drift, Failing, LongLook, Slow, StallCause, Stalls, Unseen
from webdyno.model.metrics import metric_rule
from webdyno.model.quantities import memory_words

CAUSES: dict[StallCause, str] = {
    "client": "the load generator paused or had no CPU",
    "hypervisor": "the hypervisor took the servers' CPUs",
    "stopped": "a signal stopped the servers",
    "other-programs": "other programs had the servers' CPUs",
}
MORE_OPEN = "open files and connections"


def findings_words(look: LongLook) -> str:
    """Say what a long look found, how far it looked, and how it went."""
    return "; ".join([_found_words(look), *_how_it_went(look)])


def _how_it_went(look: LongLook) -> Iterator[str]:
    if look.excused:
        lasted_s = sum(it.length_s for it in look.excused)
        causes = sorted({CAUSES[it.cause] for it in look.excused if it.cause})
        yield (
            f"left out: {count(len(look.excused), 'stall')}, {duration(lasted_s)} in all, as "
            f"{listed(causes)}"
        )
    for it in look.breaks:
        yield (
            f"interrupted after {duration(it.at_s)}, and begun anew {duration(it.pause_s)} later "
            "with a fresh start"
        )
    if look.ended_by == "precision":
        yield (
            f"ended early: in all of the time asked for nothing changes by {percent(MOST_CHANGE)}"
        )
    if look.ended_by is None:
        yield "not over: `webdyno resume` goes on"


def _found_words(look: LongLook) -> str:
    found = [failing_words(it) for it in look.failing[:1]]
    found += [look.died] if look.died else []
    found += [stall_words(look)] if look.stalls else []
    found += [slow_words(look.slow, look)] if look.slow else []
    found += [drift_words(it) for it in look.drifts]
    if look.growth:
        found.append(
            f"memory grows by {memory_words(round(look.growth.bytes_per_s.estimate))} a second"
        )
    if look.more_open:
        found.append(f"{MORE_OPEN} become more by {number(look.more_open.per_s.estimate)} a second")
    return f"{', '.join(found)} (seen in {duration(look.looked_s)})" if found else _none_words(look)


def _none_words(look: LongLook) -> str:
    """Say what there was nothing of, as far as the look could have shown it."""
    words: dict[Unseen, str] = {
        "stalls": f"stalls of {duration(look.shortest_s)} or more",
        "drift": "drift",
        "leak": "leak",
    }
    looked = duration(look.looked_s)
    seen = [words[what] for what in words if what not in look.unseen]
    *others, last = seen or ["finding"]
    said = f"no {', '.join(others)} or {last} in {looked}" if others else f"no {last} in {looked}"
    if look.unseen:
        said += f", too little to tell of {listed(look.unseen)}"
    return f"{said}; what happens less often than every {looked} would not have been seen"


def look_words(look: LongLook, until_s: float | None = None) -> str:
    """Say for how long there was load, and how often the servers were started anew meanwhile."""
    looked_s = look.looked_s if until_s is None else until_s
    breaks = [it for it in look.breaks if it.at_s < looked_s]
    restarts = f"with {count(len(breaks), 'restart')}" if breaks else "without a restart"
    return f"{duration(looked_s)} of load {restarts}"


def failing_words(failing: Failing) -> str:
    """Say when requests failed, how many, and why: `after 14 s (70,000 answers) 100 % of …`."""
    when = f"after {duration(failing.at_s)} ({count(failing.answered_before, 'answer')})"
    until = "to the end" if failing.to_the_end else f"for {duration(failing.length_s)}"
    why = f": {failing.said:.200}" if failing.said else ""
    return f"{when} {percent(failing.share)} of the requests fail, {until}{why}"


def drift_words(drift: Drift) -> str:
    """Say what changed, by how much and when."""
    what = metric_rule(drift.metric).metric.label
    change = drift.change.estimate
    direction = "rises" if change > 1 else "falls"
    when = f" after {duration(drift.at_s)}" if drift.at_s is not None else ""
    return f"{what} {direction} by {percent(abs(change - 1))}{when}"


def stall_words(look: LongLook) -> str:
    """Say how long stalls are, and how often they come: `stalls of 1 s every 6 s`."""
    return _stretches(look.stalls, "stall", look) if look.stalls else "no stalls"


def slow_words(slow: Slow, look: LongLook) -> str:
    """Say how slow it gets, for how long and how often."""
    seen = _stretches(slow.stretches, "slow time", look)
    return f"{seen} at {percent(slow.level)} of the usual throughput"


def _stretches(stalls: Stalls, noun: str, look: LongLook) -> str:
    length = duration(stalls.length_s)
    if stalls.every_s is not None:
        return f"{noun}s of {length} every {duration(stalls.every_s.estimate)}"
    return f"{count(stalls.count, noun)} of {length} in {duration(look.looked_s)}"
