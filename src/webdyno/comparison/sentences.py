"""What a comparison says, in sentences: for the headline, and next to a verdict's name."""

from collections.abc import Iterator, Sequence
from typing import Literal

from webdyno.core.findings import CostAtRate
from webdyno.core.format import (
    DASH,
    between,
    change,
    ci,
    ci_level,
    count,
    is_useful,
    listed,
    lower_first,
    minutes,
    percent,
    ratio_range,
    significant,
    times,
    upper_first,
)
from webdyno.core.judgement import DIFFERENT, ClearFact, Comparison, Rank, Ranking, Verdict
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.statistics.verdict import MOST_EQUAL, ruled_out, ruled_out_difference

MOST_PLACES_SAID = 5
"""The table has them all."""
MOST_MINUTES = 60.0
"""So long it may take to decide, for anybody to be asked to."""
CORE_DIGITS = 3
"""Of what servers cost, in a sentence; the table has their interval."""
BEYOND_1 = {"exact-test", "near-threshold"}
"""Why a comparison can be open whose CI excludes 1."""
OF_SPEED = {"throughput", "latency"}
"""Kinds of metrics on which who is better is faster; less memory isn't faster."""


def headline(deciding: Sequence[Comparison]) -> str:
    """Describe the comparisons on the deciding metric; a reason that several share stands once."""
    return "; ".join(dict.fromkeys(with_verdict(comparison) for comparison in deciding))


def ranking_headline(ranking: Ranking, metric: str, costs: Sequence[CostAtRate] = ()) -> str:
    """Describe the ranks, the best first: `1. nginx · 2–3. caddy, node (order open), by …`."""
    by = f"by {METRICS[metric].metric.label}"
    if costs:
        by += f" {rate_words(costs)}"
    if not ranking.ranks or ranking.is_unmeasured:
        return f"no variant has a rank {by}"
    places = list(places_of(ranking))
    said = [_place(ranking, place) for place in places[:MOST_PLACES_SAID]]
    if left := sum(map(len, places[MOST_PLACES_SAID:])):
        said.append(f"{left} more")
    # Figures may distinguish pairs, and the exact test need more rounds: pairs differ in how many.
    whys = {pair.why.partition(". ")[0] for pair in ranking.pairs if pair.needs_rounds}
    return "; ".join([f"{' · '.join(said)}, {by}", *map(_inside, sorted(whys)[:1])])


def places_of(ranking: Ranking) -> Iterator[list[Rank]]:
    """Yield ranks, those together that may be each other's."""
    place: list[Rank] = []
    for rank in ranking.ranks:
        if place and rank.best > max(each.worst for each in place):
            yield place
            place = []
        place.append(rank)
    yield place


def _place(ranking: Ranking, place: Sequence[Rank]) -> str:
    """Describe a place: of several variants equal ones, or an open order, which is no tie.

    Of those whose order is open with the next ones alone, each has ranks of its own.
    """
    names = [rank.variant for rank in place]
    best, worst = min(rank.best for rank in place), max(rank.worst for rank in place)
    numbers = str(best) if best == worst else f"{best}{DASH}{worst}"
    if len(place) == 1:
        return f"{numbers}. {names[0]}"
    if max(rank.best for rank in place) >= min(rank.worst for rank in place):
        own = ", ".join(f"{rank_words(rank)}. {rank.variant}" for rank in place)
        return f"{own} (order open)"
    pairs = [pair for pair in ranking.pairs if pair.a in names and pair.b in names]
    equal = pairs and all(pair.verdict is Verdict.EQUIVALENT for pair in pairs)
    return f"{numbers}. {', '.join(names)} ({'equal' if equal else 'order open'})"


def rank_words(rank: Rank) -> str:
    """Return the ranks that a variant may have: `2`, or `2–4`."""
    return str(rank.best) if rank.best == rank.worst else f"{rank.best}{DASH}{rank.worst}"


def verdict_word(verdict: Verdict, metric: str) -> str:
    """Name a verdict on a metric: `faster`, of memory or CPU time `better`."""
    if METRICS[metric].kind in OF_SPEED:
        return str(verdict)
    return {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict, str(verdict))


def with_verdict(comparison: Comparison) -> str:
    """Describe the comparison in one sentence, with the verdict's name in it."""
    if comparison.verdict is Verdict.INVALID:
        return f"invalid: {_inside(comparison.why)}"
    if comparison.verdict is Verdict.INCOMPLETE:
        return _inside(comparison.why)
    clear = [clear_sentence(comparison, comparison.clear)] if comparison.clear else []
    verdict = "".join(_subject_and_verdict(comparison))
    opening = f"{verdict}{_for_metric(comparison)}: {sentence(comparison)}"
    return "; ".join([*clear, opening, *map(_inside, further(comparison))])


def _inside(sentence: str) -> str:
    return lower_first(sentence).rstrip(".")


def verdict_title(comparison: Comparison) -> str:
    """Name the verdict in large letters, and its subject: `nginx is FASTER`, `INCONCLUSIVE`."""
    if comparison.verdict is Verdict.INVALID:
        return "INVALID"
    subject, word = _subject_and_verdict(comparison)
    return f"{subject}{word.upper()}{_for_metric(comparison)}"


def _for_metric(comparison: Comparison) -> str:
    return f" for {METRICS[comparison.metric].short}" if comparison.clear else ""


def clear_title(comparison: Comparison, clear: ClearFact) -> str:
    """Name in large letters what another metric says: `slow needs MORE CPU per request`."""
    subject, word, metric = _clear_words(comparison, clear)
    return f"{subject} {word.upper()} {metric}"


def clear_sentence(comparison: Comparison, clear: ClearFact) -> str:
    """Describe it in one sentence, with how much that is."""
    return f"{' '.join(_clear_words(comparison, clear))}: {clear_change(comparison, clear)}"


def clear_change(comparison: Comparison, clear: ClearFact) -> str:
    """Describe how much it is: `+4.3% (95% CI +2.4 to +6.1%), compared with base`."""
    how_much = ruled_out if clear.verdict is Verdict.EQUIVALENT else change
    return f"{how_much(clear.ratio)}, compared with {comparison.b}"


def _clear_words(comparison: Comparison, clear: ClearFact) -> tuple[str, str, str]:
    """Return `slow needs`, `more`, `CPU per request`."""
    rule = METRICS[clear.metric]
    verb = "needs" if rule.metric.better == "lower" and rule.kind != "latency" else "has"
    more, less = ("longer", "shorter") if rule.kind == "latency" else ("more", "less")
    word = more if clear.ratio.estimate > 1 else less
    if clear.verdict is Verdict.EQUIVALENT:
        word = "equally much"
    return f"{comparison.a} {verb}", word, rule.short


def sentence(comparison: Comparison) -> str:
    """Describe what was found and how sure it is, where the verdict's name stands before it."""
    if comparison.ratio is None or comparison.verdict is Verdict.INVALID:
        return comparison.why
    sure = comparison.decisive or comparison.ratio
    verb, ratio = "takes" if comparison.costs else "has", times(sure)
    subject = "" if _is_better_or_worse(comparison) else f"{comparison.a} {verb} "
    if comparison.costs:
        estimates = [cost.cores_per_1000_rps.estimate for cost in comparison.costs]
        cores = " against ".join(significant(cores, CORE_DIGITS) for cores in estimates)
        return (
            f"{subject}{ratio} the CPU of {comparison.b} {rate_words(comparison.costs)} "
            f"({_interval(comparison)}), {cores} cores per 1,000 requests/s"
        )
    of_baseline = f"the {METRICS[comparison.metric].short} of {comparison.b}"
    if comparison.verdict is Verdict.INCONCLUSIVE and is_useful(sure):
        return f"{subject}{between(sure)} {of_baseline} ({ci_level(sure.confidence)})"
    bound = f"{side} " if (side := bound_of(comparison)) else ""
    return f"{subject}{bound}{ratio} {of_baseline} ({_interval(comparison)})"


def rate_words(costs: Sequence[CostAtRate]) -> str:
    """Describe at which arrival rate there are some costs; at which rates, where they differ."""
    rates = dict.fromkeys(f"{cost.rate_rps:,g}" for cost in costs)
    return f"at {listed(rates)} requests/s"


def bound_of(comparison: Comparison) -> Literal["at least", "at most", ""]:
    """Describe which bound the ratio is where one variant was limited, and may be faster."""
    if set(comparison.limited_by) == {comparison.a}:
        return "at least"
    return "at most" if set(comparison.limited_by) == {comparison.b} else ""


def _is_better_or_worse(comparison: Comparison) -> bool:
    return comparison.verdict in DIFFERENT


def _subject_and_verdict(comparison: Comparison) -> tuple[str, str]:
    """Return the verdict's name, after its subject where it has one: `nginx is `, `faster`."""
    word = verdict_word(comparison.verdict, comparison.metric)
    if not _is_better_or_worse(comparison):
        return "", word
    if comparison.costs:
        less = comparison.verdict is Verdict.FASTER
        return f"{comparison.a} ", "costs less" if less else "costs more"
    return f"{comparison.a} is ", word


def _interval(comparison: Comparison) -> str:
    """Return the interval on which the verdict rests: the worst case where something interfered."""
    if comparison.worst_case:
        return ci(comparison.worst_case)
    return ratio_range(comparison.ratio) if comparison.ratio else ""


def further(comparison: Comparison) -> Iterator[str]:
    """Describe what verdict and ratio leave open: how equal, at least how much, what is needed."""
    yield from further_of_verdict(comparison)
    yield from (f"{label}: {lower_first(said)}" for label, said in known_and_needed(comparison))


def further_of_verdict(comparison: Comparison) -> Iterator[str]:
    """Yield the same without what is known and needed where it is inconclusive."""
    parts = [*_certainty(comparison), _answer(comparison), comparison.reason, comparison.later]
    yield from map(as_sentence, filter(None, parts))


def as_sentence(said: str) -> str:
    return f"{upper_first(said).rstrip('.')}."


def _answer(comparison: Comparison) -> str | None:
    asked = comparison.one_sided
    if asked is None:
        return None
    return f"{asked.question}? {asked.answer}: {asked.why.rstrip('.')}"


def _certainty(comparison: Comparison) -> Iterator[str | None]:
    if comparison.negligible:
        yield "the difference is below the practical threshold"
    elif comparison.verdict is Verdict.EQUIVALENT:
        yield f"±{percent(comparison.delta)} counts as equal"
        yield comparison.rules_out
    elif comparison.verdict in DIFFERENT:
        better = comparison.a if comparison.verdict is Verdict.FASTER else comparison.b
        limit = comparison.limited_by.get(better)
        yield limit and f"the {limit} limited {better}, which may {what_may_be(comparison)}"


def known_and_needed(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield of an inconclusive comparison what is known, why it is open, and what to do."""
    if comparison.verdict is not Verdict.INCONCLUSIVE or comparison.ratio is None:
        return
    if comparison.delta > MOST_EQUAL:
        most = percent(comparison.delta)
        yield "Why", f"Too noisy to say: copies of {comparison.b} differ by up to {most}."
        return
    if comparison.rules_out:
        yield "Known", as_sentence(comparison.rules_out)
    if comparison.is_beyond_client:
        return
    why = _why_open_beyond_1(comparison)
    if why:
        yield "Why", why
    for label, said in _what_is_needed(comparison):
        if not (why and label == "Why"):
            yield label, as_sentence(said)


def _why_open_beyond_1(comparison: Comparison) -> str:
    """Return why there is no verdict where the CI that is shown excludes 1; else nothing."""
    shown = comparison.decisive
    if comparison.because not in BEYOND_1 or not shown or shown.low <= 1 <= shown.high:
        return ""
    return comparison.why


def what_may_be(comparison: Comparison) -> str:
    return "take more than found" if comparison.metric == CAPACITY else "be faster than measured"


def _what_is_needed(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Describe what keeps the answer away and would bring it: more rounds help against chance."""
    if comparison.worst_case and comparison.sampling_verdict is not Verdict.INCONCLUSIVE:
        word = verdict_word(comparison.sampling_verdict or comparison.verdict, comparison.metric)
        limits = comparison.limited_by.items()
        limited = [f"{name} was {by}-limited" for name, by in limits if by != "link"]
        may = f"{listed(limited)}, and may {what_may_be(comparison)}"
        yield (
            "Why",
            f"looks {word}, but {may if limited else 'interference could explain all of it'}",
        )
        if comparison.more_rounds is None:
            yield "Do", "change what interferes; more time on this machine would not help"
            return
    elif comparison.more_rounds is None or (comparison.more_minutes or 0.0) > MOST_MINUTES:
        yield from _why_no_time_is_enough(comparison)
        return
    if comparison.more_rounds is not None and comparison.more_minutes is not None:
        took = minutes(comparison.more_minutes * 60)
        more = f"about {count(comparison.more_rounds, 'more round')} ({took})"
        yield "Do", f"{more} should decide if the ratio stays as it is"


def _why_no_time_is_enough(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Distinguish a difference that is near the limit from one that could be anything."""
    wide = comparison.decisive
    if wide and ruled_out_difference(wide) <= MOST_EQUAL:
        yield "Why", "too close to call in reasonable time"
        return
    yield "Why", "too noisy for an answer in reasonable time"
    if comparison.worst_case:
        yield "Do", "repeat it on a quieter machine: more time on this one would hardly help"


def ratio_words(compared: Sequence[Comparison]) -> list[str]:
    """Return each ratio with its interval, as far as there are any: `nginx 2.1× of apache (…)`."""
    return [
        f"{comparison.a} {times(comparison.ratio)} ({ratio_range(comparison.decisive)})"
        for comparison in compared
        if comparison.ratio and comparison.decisive
    ]
