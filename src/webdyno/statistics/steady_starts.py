"""When a variant is steady after a start, known from all that was seen of it alone.

From one or two fresh starts, and from later starts of the load on the last of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from webdyno.statistics.interval import Logs
from webdyno.statistics.steady import (
    TOLERANCE,
    Onset,
    Series,
    autocorrelation_time,
    moving_means,
    onset,
)

EARLY_S = 0.3
"""A steady state that begins later has to be seen at more than one fresh start. An earlier one
doesn't: such a warm-up costs no more than a slot."""
FEWEST_WINDOWS = 4
"""Of a level."""
BEGINNINGS = (0.25, 0.5)
"""Shares of a look: throughput that swings slowly may have begun unlike it went on."""
Step = Literal["enough", "longer", "again"]
"""No more load after a fresh start, more of it, or another fresh start."""
FEW_LOOKS = 2.0
"""Standard errors that chance seldom passes in one place."""
FASTER = 0.05
"""ln: a variant that gets faster by so much still warms up."""


def latest_onset(after_start: Sequence[Series]) -> Onset:
    """Report from when on all that was seen after a fresh start is steady."""
    onsets = [onset(series, is_throughput=not kind) for kind, series in enumerate(after_start)]
    doubtful = max(onsets, key=lambda each: (each.doubt, each.at_s))
    return replace(doubtful, at_s=max(begins.at_s for begins in onsets))


def steady_from(
    fresh_starts: Sequence[Sequence[Series]], load_starts: Sequence[Sequence[Series]] = ()
) -> tuple[Onset, Sequence[Series]]:
    """Return from when on a variant is steady after a start, and what was seen of that start.

    A variant warms up at each start, so the start that was steady first counts: what was seen later
    in others came from elsewhere. After warming up it is never again as it was: a late change is
    believed only then. A level that swings too slowly to be called steady is taken for steady if
    neither its first quarter nor its first half is unlike what follows by more than its swings.
    What gets faster, or is faster at each later start of the load, isn't steady, however level.

    `load_starts`: those after the last of the fresh starts.
    """
    looks = [(latest_onset(each), each) for each in fresh_starts]
    looks[-1] = (_unless_faster(*looks[-1], load_starts), fresh_starts[-1])
    begins, seen = min(looks, key=_worth)
    kinds = _by_kind(fresh_starts, load_starts)
    if (begins.at_s or not begins.steady) and not begins.gets_faster:
        length_s = len(seen[0].logs) * seen[0].window_s
        begins_s = [begins.at_s] if begins.at_s else [share * length_s for share in BEGINNINGS]
        unlike_s = [
            begin_s
            for begin_s in begins_s
            if not all(_is_so_again(begin_s, *kind) for kind in kinds)
            and (begins.at_s or any(_is_beyond_swings(begin_s, series) for series in seen))
        ]
        if not unlike_s:
            why = f"no warm-up needed: the first {begins_s[-1]:.2g} s look like the rest"
            begins = Onset(0.0, steady=True, why=why)
        elif not begins.at_s:
            why = f"warm-up {unlike_s[-1]:.2g} s: throughput differs at the start and never again"
            begins = Onset(unlike_s[-1], steady=False, why=why, may_begin_later=True)
    return begins, seen


def _unless_faster(
    begins: Onset, seen: Sequence[Series], load_starts: Sequence[Sequence[Series]]
) -> Onset:
    """Return an onset as it is, unless the variant was seen to get faster after it."""
    settled = seen[0].since(begins.at_s).logs
    ends = [each[0].halves[1] for each in load_starts]
    if ends and all(_is_higher(end, settled) for end in ends):
        why = "throughput is higher at each later start of the load"
    elif not begins.steady and _gets_faster(seen, begins.at_s):
        why = "throughput still rises, and CPU per request falls"
    else:
        return begins
    return replace(begins, steady=False, why=why, may_begin_later=True, gets_faster=True)


def _gets_faster(seen: Sequence[Series], at_s: float) -> bool:
    """Whether throughput rises and CPU per request falls: alone it may be others who leave."""
    halves = [series.since(at_s).halves for series in seen]
    if len(halves) < 2:
        return False
    (slower, faster), (costly, cheap) = halves[:2]
    return _is_higher(faster, slower) and _is_higher(costly, cheap)


def _is_higher(logs: Logs, than: Logs) -> bool:
    """Whether its mean is higher by more than `FASTER`, and than the swings of both make it."""
    if min(len(logs), len(than)) < FEWEST_WINDOWS:
        return False
    error = (_variance_of_mean(logs) + _variance_of_mean(than)) ** 0.5
    return bool(logs.mean() - than.mean() > max(FASTER, FEW_LOOKS * error))


def _variance_of_mean(logs: Logs) -> float:
    return autocorrelation_time(logs) * float(logs.var()) / len(logs)


def _by_kind(
    fresh_starts: Sequence[Sequence[Series]], load_starts: Sequence[Sequence[Series]]
) -> list[tuple[Sequence[Series], Sequence[Series]]]:
    """Return the throughputs of all starts, and what else was seen at all fresh ones."""
    fresh, begun = ([*zip(*each, strict=False)] for each in (fresh_starts, load_starts))
    return [*zip(fresh, [*begun, *[()] * len(fresh)], strict=False)]


def _worth(look: tuple[Onset, Sequence[Series]]) -> tuple[float, ...]:
    """Order looks: those that show a steady state, the earliest first, then the longest ones."""
    begins, seen = look
    length = len(seen[0].logs)
    return (0, begins.at_s, -length) if begins.steady else (1, -length, begins.doubt, begins.at_s)


def _is_so_again(
    at_s: float, fresh_starts: Sequence[Series], load_starts: Sequence[Series]
) -> bool:
    """Whether at some time the level was as it is until `at_s` after a start.

    It is not if all beginnings lie on one side of all that came later, in stretches of that length
    or shorter; of starts of load that is the second half. Those that followed a shorter look came
    too early to count.
    """
    before: list[float] = []
    later: list[float] = []
    for series in fresh_starts:
        if not len(series.logs):  # some starts have no CPU time on record
            continue
        begin = _windows(at_s, series)
        before.append(float(series.logs[:begin].mean()))
        later += _levels(series.logs[begin:], begin)
    last = fresh_starts[-1]
    came_later = len(last.logs) >= _windows(at_s, last)
    for series in load_starts if came_later else ():
        later += _levels(series.halves[1], _windows(at_s, series))
    if not before or not later:
        return False
    return min(before) <= max(later) + TOLERANCE and max(before) >= min(later) - TOLERANCE


def _is_beyond_swings(at_s: float, series: Series) -> bool:
    """Whether the mean until then differs from the rest's by more than the swings seen make it."""
    begin = _windows(at_s, series)
    parts = [series.logs[:begin], series.logs[begin:]]
    if min(map(len, parts)) < FEWEST_WINDOWS:
        return True
    variance = sum(map(_variance_of_mean, parts))
    return bool(abs(parts[1].mean() - parts[0].mean()) > FEW_LOOKS * variance**0.5)


def _windows(length_s: float, series: Series) -> int:
    """Count its windows in so long a time; what was seen at other starts may be known by others."""
    return max(1, round(length_s / series.window_s))


def _levels(logs: Logs, size: int) -> list[float]:
    if len(logs) < FEWEST_WINDOWS:
        return []
    return [float(mean) for mean in moving_means(logs, min(size, len(logs)))]


def next_step(
    fresh_starts: Sequence[Sequence[Series]],
    load_starts: Sequence[Sequence[Series]] = (),
    *,
    is_last_start: bool,
) -> Step:
    """Return what to do after looks at fresh starts, the last of which still runs.

    A change that is seen late is what the variant does at each start, or came from elsewhere:
    another start shows which, if there may be one.
    """
    begins, _ = steady_from(fresh_starts, load_starts)
    if begins.gets_faster:
        return "longer"
    if begins.at_s > EARLY_S and not is_last_start:
        return "again"
    return "enough" if begins.steady else "longer"
