"""One slot's work shared out among several clients, and their reports joined to one.

Each client is a load generator on a host of its own. Of their reports, counts and histograms are
added, so that they are those of one client that had done it all. Rates add up. What clients say of
themselves and can't be added is said of the worst one: each is watched for its own limits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, zip_longest
from statistics import fmean
from typing import Any, TypeVar

from webdyno.core.base import Foreign
from webdyno.core.errors import UserError
from webdyno.core.load_result import (
    EndpointResult,
    EventTimes,
    LoadResult,
    Times,
    Window,
)
from webdyno.load.interface import LoadOrder, Share

MOST_SAMPLES = 5
"""Failures in words, for people; as many as the engine keeps."""

Number = TypeVar("Number", int, float)
Part = TypeVar("Part", bound=Foreign)
Rule = Callable[[Sequence[Any]], Any]
"""Makes one value of those of all clients."""


def split_order(order: LoadOrder, clients: int) -> list[LoadOrder]:
    """Return the part of a slot's work for each client; together they do exactly all of it.

    Connections of every kind and a count are divided; parts differ by one at most. An open loop's
    timetable is drawn from the order's seed by each of them, which keeps what is its own: it is the
    one that a lone client would make. Raise UserError where there are fewer connections, or
    requests, than clients.
    """
    if order.load.broadcast and clients > 1:
        raise UserError("load.broadcast: one client knows who has received a message; use one host")
    _ensure_enough("load.connections", order.load.connections, clients)
    if order.count is not None:
        _ensure_enough("load.count", order.count, clients)
    return [_part(order, Share(clients, index)) for index in range(clients)]


def _ensure_enough(key: str, there_are: int, clients: int) -> None:
    if there_are < clients:
        raise UserError(
            f"{key} = {there_are} can't be shared out among {clients} client hosts, each needs one "
            f"at least; set it to {clients} or more, or use fewer hosts"
        )


def _part(order: LoadOrder, share: Share) -> LoadOrder:
    def own(of_all: int) -> int:
        return of_all // share.of + (share.index < of_all % share.of)

    load, users, count = order.load, order.users, order.count
    if count is not None and load.loop == "closed":
        # That of an open loop is of the places in the timetable, which is everybody's.
        count = own(count)
    slow = load.slow_readers
    own_slow = own(slow.connections) if slow else 0
    if users:
        before = load.connections // share.of * share.index
        before += min(share.index, load.connections % share.of)
        values = {name: _own_values(its, before, share) for name, its in users.values.items()}
        users = replace(users, values=values)
    return replace(
        order,
        load=load.replace(
            connections=own(load.connections),
            idle_connections=own(load.idle_connections),
            slow_readers=slow.replace(connections=own_slow) if slow and own_slow else None,
        ),
        count=count,
        replay=order.replay and order.replay.part(share.of, share.index),
        share=share,
        users=users,
    )


def _own_values(values: Mapping[str, Any], before: int, share: Share) -> dict[str, Any]:
    """Return what no other client gives: rows, numbers of a counter."""
    own = dict(values)
    if table := values.get("rows"):
        rows = table["rows"]
        if table["each"] == "user":
            own["rows"] = {**table, "rows": rows[before:]}
        elif table["each"] == "turn":
            own["rows"] = {**table, "rows": rows[share.index :: share.of] or rows}
    if counter := values.get("counter"):
        step = counter["step"]
        own["counter"] = {"from": counter["from"] + share.index * step, "step": step * share.of}
    return own


def merged_results(results: Sequence[LoadResult]) -> LoadResult:
    """Return the results of all clients of a slot as one; there is one at least.

    Percentiles are those of all times together, read from the added histograms. Of the send delay,
    which has none, each figure is the worst of any client.
    """
    if not results:
        raise ValueError("there is no result to join")
    if len(results) == 1:
        return results[0]
    first = results[0]
    merged = _merge(
        results,
        _first,
        target=lambda targets: ", ".join(dict.fromkeys(targets)),
        measured_s=fmean,
        tail_s=max,
        drain_s=max,
        requests=_merge,
        **_COUNTS,
        keepalive=partial(_merge, requested=_first),
        throughput_rps=sum,
        offered_rps=sum,
        last_offered_rps=sum,
        latency_us=_merge_times,
        service_time_us=_merge_times,
        connect_time_us=_merge_times,
        send_delay_us=partial(_merge, usual=max),
        client=partial(
            _merge,
            busy=max,
            stalled_s=max,
            stalled_windows=max,
            excluded_windows=max,
            busy_waits=any,
        ),
        windows=_merge_windows,
        endpoints=_merge_endpoints,
    )
    wholes = [result.all_of_it for result in results]
    return merged.replace(
        ended_by="late" if any(result.gave_up for result in results) else first.ended_by,
        idle_connections=_merge_known(result.idle_connections for result in results),
        whole=_merge(wholes, length_s=max, **_COUNTS) if first.whole else None,
        tls=_merge_known(result.tls for result in results),
        events=_merge_events([result.events for result in results if result.events]),
        printed="\n".join(result.printed for result in results if result.printed) or None,
    )


def _first(values: Sequence[Any]) -> Any:  # noqa: ANN401 (any field's)
    return values[0]


def _merge(parts: Sequence[Part], usual: Rule = sum, **others: Rule) -> Part:
    """Merge what clients say, a field at a time: by the usual rule, but by others where named."""
    values = {
        name: _of_all(others.get(name, usual), (getattr(part, name) for part in parts))
        for name in type(parts[0]).model_fields
    }
    return parts[0].replace(**values)


def _of_all(rule: Rule, values: Iterable[Any]) -> Any:  # noqa: ANN401 (any field's)
    """Apply a rule to what all say; None where one of them doesn't."""
    known = list(values)
    return None if None in known else rule(known)


def _merge_known(parts: Iterable[Part | None]) -> Part | None:
    """Merge what not all clients had to do, such as holding idle connections."""
    known = [part for part in parts if part is not None]
    return _merge(known) if known else None


def _merge_events(parts: Sequence[EventTimes]) -> EventTimes | None:
    if not parts:
        return None
    responses = sum(part.responses for part in parts)
    events = sum(part.responses * part.per_response for part in parts)
    return _merge(
        parts,
        per_response=lambda _: events / responses if responses else 0.0,
        time_to_first_us=_merge_times,
        gap_us=_merge_times,
        per_event_us=_merge_times,
    )


def sums_by_name(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """Add figures up by their names."""
    sums: dict[str, Number] = {}
    for part in parts:
        for name, number in part.items():
            sums[name] = sums.get(name, 0) + number
    return sums


_COUNTS: dict[str, Rule] = {
    "by_status": sums_by_name,
    "failures": _merge,
    "failure_samples": lambda parts: list(dict.fromkeys(chain(*parts)))[:MOST_SAMPLES],
    "bytes": _merge,
    "connections": _merge,
}
"""What a slot's window has in common with the whole of it."""


def _merge_times(parts: Sequence[Times]) -> Times:
    """Return the distribution of all times; without histograms only its ends are known."""
    from webdyno.core.histogram import Histogram, add_encoded  # numpy takes a while to import

    shortest = _of_all(min, (part.min for part in parts))
    longest = _of_all(max, (part.max for part in parts))
    encoded = [part.histogram for part in parts if part.histogram is not None]
    if len(encoded) < len(parts):
        return Times(min=shortest, max=longest)
    counts = [Histogram.decode(each).total for each in encoded]
    measured = [part for part, count in zip(parts, counts, strict=True) if count]
    if len(measured) < len(parts):
        return _merge_times(measured) if measured else parts[0]
    histogram = add_encoded(encoded)
    all_times = Histogram.decode(histogram)

    def at_most(permille: int) -> float | None:
        time = all_times.at_most(permille)
        return time if time is None or longest is None else min(time, longest)

    return Times(
        min=shortest,
        mean=_of_all(lambda means: fmean(means, counts), (part.mean for part in parts)),
        p50=at_most(500),
        p90=at_most(900),
        p99=at_most(990),
        p99_9=at_most(999),
        max=longest,
        histogram=histogram,
    )


def _merge_windows(parts: Sequence[Sequence[Window]]) -> list[Window]:
    """Merge windows of the same number; a client whose load ended before has none of the last."""
    return [
        _merge(
            [part for part in same if part is not None],
            at_s=fmean,
            length_s=fmean,
            ramp_up=_first,
            stalled=any,
        )
        for same in zip_longest(*parts)
    ]


def _merge_endpoints(parts: Sequence[Sequence[EndpointResult]]) -> list[EndpointResult]:
    by_name: dict[str, list[EndpointResult]] = {}
    for part in chain.from_iterable(parts):
        by_name.setdefault(part.endpoint, []).append(part)
    return [_merge(same, endpoint=_first, latency_us=_merge_times) for same in by_name.values()]
