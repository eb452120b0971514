"""What a comparison says, in sentences: for the headline, and beside a verdict's name."""

from collections.abc import Iterator, Sequence
from math import ceil, floor

from webdyno.model.base import ENDLESS
from webdyno.model.format import (
    DASH,
    TIMES,
    ci,
    count,
    lower_first,
    minutes,
    number,
    percent,
    ratio_range,
    times,
    upper_first,
)
from webdyno.model.judgement import Comparison, Rank, Ranking, Verdict
from webdyno.model.metrics import METRICS

MOST_RANKS_SAID = 4
"""After the first ones; the table has them all."""
OF_SPEED = {"throughput", "latency"}
"""Kinds of metrics on which who is better is faster; less memory isn't faster."""


def headline(deciding: Sequence[Comparison]) -> str:
    """Say the comparisons on the deciding metric; a reason that several share is said once."""
    return "; ".join(dict.fromkeys(with_verdict(comparison) for comparison in deciding))


def ranking_headline(ranking: Ranking, metric: str) -> str:
    """Say who comes first, and the ranks of those after them."""
    by = f"by {METRICS[metric].metric.label}"
    first = [it.variant for it in ranking.ranks if it.best == 1]
    then = [it for it in ranking.ranks if it.best != 1]
    if not first:
        return f"no variant has a rank {by}"
    of = f"of {len(ranking.ranks)} {by}"
    said = f"{first[0]} ranks first {of}"
    if len(first) > 1:
        said = f"{', '.join(first[:-1])} and {first[-1]} share the first ranks {of}"
    shown = [f"{it.variant} ({rank_words(it)})" for it in then[:MOST_RANKS_SAID]]
    if left := len(then) - len(shown):
        shown.append(f"{left} more")
    return f"{said}; then {', '.join(shown)}" if shown else said


def rank_words(rank: Rank) -> str:
    """Give the ranks that a variant may have: `2`, or `2–4`."""
    return str(rank.best) if rank.best == rank.worst else f"{rank.best}{DASH}{rank.worst}"


def verdict_word(verdict: Verdict, metric: str) -> str:
    """Name a verdict on a metric: `faster`, of memory or CPU time `better`."""
    if METRICS[metric].kind in OF_SPEED:
        return str(verdict)
    return {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict, str(verdict))


def with_verdict(comparison: Comparison) -> str:
    """Say the comparison in one sentence, with the verdict's name in it."""
    if comparison.verdict is Verdict.INVALID:
        return f"no result: {_inside(comparison.why)}"
    if comparison.verdict is Verdict.INCOMPLETE:
        return _inside(comparison.why)
    said = f"{_named(comparison)}: {sentence(comparison)}"
    return "; ".join([said, *map(_inside, further(comparison))])


def _inside(sentence: str) -> str:
    return lower_first(sentence).rstrip(".")


def verdict_title(comparison: Comparison) -> str:
    """Name the verdict in large letters, with its subject: `nginx is FASTER`, `INCONCLUSIVE`."""
    if comparison.verdict is Verdict.INVALID:
        return "NO RESULT"
    word = verdict_word(comparison.verdict, comparison.metric).upper()
    return f"{comparison.a} is {word}" if _is_better_or_worse(comparison) else word


def sentence(comparison: Comparison) -> str:
    """Say what was found and how sure it is, where the verdict's name stands before it."""
    if comparison.ratio is None or comparison.verdict is Verdict.INVALID:
        return comparison.why
    subject = "" if _is_better_or_worse(comparison) else f"{comparison.a} has "
    of_baseline = f"the {METRICS[comparison.metric].short} of {comparison.b}"
    return f"{subject}{times(comparison.ratio)} {of_baseline} ({_interval(comparison)})"


def _is_better_or_worse(comparison: Comparison) -> bool:
    """Whether the verdict's name says who is better."""
    return comparison.verdict in {Verdict.FASTER, Verdict.SLOWER}


def _named(comparison: Comparison) -> str:
    word = verdict_word(comparison.verdict, comparison.metric)
    return f"{comparison.a} is {word}" if _is_better_or_worse(comparison) else word


def _interval(comparison: Comparison) -> str:
    """Give the interval on which the verdict rests: the worst case, where something interfered."""
    worst_case = comparison.worst_case
    if worst_case is None or comparison.ratio is None:
        return ratio_range(comparison.ratio) if comparison.ratio else ""
    return f"{ci(worst_case)}, worst case"


def further(comparison: Comparison) -> Iterator[str]:
    """Say what verdict and ratio leave open: how equal, at least how much, what is needed."""
    parts = [*_certainty(comparison), _asked(comparison), comparison.reason, comparison.later]
    said = filter(None, (*parts, comparison.clear_beside))
    yield from (f"{upper_first(part).rstrip('.')}." for part in said)


def _certainty(comparison: Comparison) -> Iterator[str | None]:
    if comparison.negligible:
        yield "the difference is below the practical threshold"
    elif comparison.verdict is Verdict.EQUIVALENT:
        yield f"±{percent(comparison.delta)} counts as equal"
        yield comparison.rules_out
    elif comparison.verdict in {Verdict.FASTER, Verdict.SLOWER}:
        yield _at_least(comparison)
    elif comparison.verdict is Verdict.INCONCLUSIVE and comparison.ratio is not None:
        yield f"±{percent(comparison.delta)} would count as equal"
        yield comparison.rules_out
        if not comparison.is_beyond_client:
            yield from _needed(comparison)


def _at_least(comparison: Comparison) -> str | None:
    """Say what is sure of a ratio whose better variant could have been faster still."""
    better = comparison.a if comparison.verdict is Verdict.FASTER else comparison.b
    decisive = comparison.decisive
    if better not in comparison.limited_by or decisive is None:
        return None
    by_client = comparison.limited_by[better] == "client"
    least = f"at least {number(floor(decisive.low * 100) / 100, 2)}{TIMES}"
    most = f"at most {number(ceil(decisive.high * 100) / 100, 2)}{TIMES}"
    ends = (least, most) if comparison.verdict is Verdict.FASTER else (most, least)
    # Beyond a link, or a client whose servers' CPU time is unknown, a variant may do anything.
    has_both = by_client and decisive.high <= ENDLESS and decisive.low >= 1 / ENDLESS
    limit = "client" if by_client else "link"
    said = " and ".join(ends if has_both else ends[:1])
    return f"it is {said}: {better} was {limit}-limited"


def _asked(comparison: Comparison) -> str | None:
    """Give the answer to a question in one direction."""
    asked = comparison.one_sided
    return f"{asked.question}? {asked.answer}: {asked.why.rstrip('.')}" if asked else None


def _needed(comparison: Comparison) -> Iterator[str]:
    if comparison.worst_case and comparison.sampling_verdict is not Verdict.INCONCLUSIVE:
        word = verdict_word(comparison.sampling_verdict or comparison.verdict, comparison.metric)
        yield f"looks {word}, but interference could explain all of it"
    elif comparison.more_rounds is None:
        yield "too close to call in reasonable time"
    if comparison.more_rounds is not None and comparison.more_minutes is not None:
        took = minutes(comparison.more_minutes * 60)
        yield f"about {count(comparison.more_rounds, 'more round')} ({took}) should decide"


def ratio_words(compared: Sequence[Comparison]) -> list[str]:
    """Give each ratio with its interval, as far as there are any: `nginx 2.1× of apache (…)`."""
    return [f"{it.a} {times(it.ratio)} ({ratio_range(it.ratio)})" for it in compared if it.ratio]
