"""One slot's work shared out among several clients, and their reports joined to one.

Each client is a load generator on a host of its own. Of their reports, counts and histograms are
added, so that they are those of one client that had done it all. Rates add up. What clients say of
themselves and can't be added is said of the worst one: each is watched for its own limits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from statistics import fmean
from typing import Any, TypeVar

from webdyno.core.base import Foreign
from webdyno.core.errors import UserError
from webdyno.core.load import Load
from webdyno.core.load_result import (
    Client,
    EndpointResult,
    EventTimes,
    KeepAliveResult,
    LoadResult,
    SendDelay,
    Times,
    Whole,
    Window,
)
from webdyno.load.interface import LoadOrder, Share, Users

MOST_SAMPLES = 5
"""Failures in words, for people; as many as the engine keeps."""

Number = TypeVar("Number", int, float)
Counts = TypeVar("Counts", bound=Foreign)


def split_order(order: LoadOrder, clients: int) -> list[LoadOrder]:
    """Give each of so many clients its part of a slot's work; together they do exactly all of it.

    Connections of every kind and a count are divided; parts differ by one at most. An open loop's
    timetable is drawn from the order's seed by each of them, which keeps what is its own: it is the
    one that a lone client would make. Raise UserError where there are fewer connections, or
    requests, than clients.
    """
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

    count = order.count
    if count is not None and order.load.loop == "closed":
        # That of an open loop is of the places in the timetable, which is everybody's.
        count = own(count)
    return replace(
        order,
        load=_own_connections(order.load, own),
        count=count,
        replay=order.replay and order.replay.part(share.of, share.index),
        share=share,
        users=order.users and _own_users(order.users, order.load.connections, share),
    )


def _own_users(users: Users, connections: int, share: Share) -> Users:
    before = connections // share.of * share.index + min(share.index, connections % share.of)
    values = {name: _own_values(its, before, share) for name, its in users.values.items()}
    return replace(users, values=values)


def _own_values(values: Mapping[str, Any], before: int, share: Share) -> dict[str, Any]:
    """Give what no other client gives: rows, numbers of a counter."""
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


def _own_connections(load: Load, own: Callable[[int], int]) -> Load:
    slow = load.slow_readers
    slow_connections = own(slow.connections) if slow else 0
    return load.replace(
        connections=own(load.connections),
        idle_connections=own(load.idle_connections),
        slow_readers=slow.replace(connections=slow_connections)
        if slow and slow_connections
        else None,
    )


def merged_results(results: Sequence[LoadResult]) -> LoadResult:
    """Give the results of all clients of a slot as one; there is one at least.

    Percentiles are those of all times together, read from the added histograms. Of the send delay,
    which has none, each figure is the worst of any client.
    """
    if not results:
        raise ValueError("there is no result to join")
    if len(results) == 1:
        return results[0]
    first = results[0]
    return LoadResult(
        target=", ".join(dict.fromkeys(result.target for result in results)),
        loop=first.loop,
        ended_by="late" if any(result.gave_up for result in results) else first.ended_by,
        ramp_up_s=first.ramp_up_s,
        measured_s=fmean(result.measured_s for result in results),
        tail_s=max(result.tail_s for result in results),
        drain_s=max(result.drain_s for result in results),
        requests=_sum_counts([result.requests for result in results]),
        by_status=_statuses(result.by_status for result in results),
        failures=_sum_counts([result.failures for result in results]),
        failure_samples=_samples(result.failure_samples for result in results),
        bytes=_sum_counts([result.bytes for result in results]),
        connections=_sum_counts([result.connections for result in results]),
        idle_connections=_sum_known_counts(result.idle_connections for result in results),
        keepalive=KeepAliveResult(
            requested=first.keepalive.requested,
            server_closed=_of_all(sum, (result.keepalive.server_closed for result in results)),
        ),
        throughput_rps=sum(result.throughput_rps for result in results),
        offered_rps=_of_all(sum, (result.offered_rps for result in results)),
        due_together=first.due_together,
        last_offered_rps=_of_all(sum, (result.last_offered_rps for result in results)),
        latency_us=_times([result.latency_us for result in results]),
        service_time_us=_times([result.service_time_us for result in results]),
        connect_time_us=_times([result.connect_time_us for result in results]),
        send_delay_us=_latest([result.send_delay_us for result in results]),
        client=_clients([result.client for result in results]),
        windows=_windows([result.windows for result in results]),
        whole=_wholes([result.all_of_it for result in results]) if first.whole else None,
        tls=_sum_known_counts(result.tls for result in results),
        events=_events([result.events for result in results if result.events]),
        endpoints=_endpoints(list(chain.from_iterable(result.endpoints for result in results))),
        printed="\n".join(result.printed for result in results if result.printed) or None,
    )


def _events(parts: Sequence[EventTimes]) -> EventTimes | None:
    if not parts:
        return None
    responses = sum(part.responses for part in parts)
    events = sum(part.responses * part.per_response for part in parts)
    return EventTimes(
        responses=responses,
        per_response=events / responses if responses else 0.0,
        time_to_first_us=_times([part.time_to_first_us for part in parts]),
        gap_us=_times([part.gap_us for part in parts]),
    )


def _of_all(
    of: Callable[[Sequence[Number]], Number], values: Iterable[Number | None]
) -> Number | None:
    """Work something out of what all say; None where one of them doesn't."""
    asked = list(values)
    known = [value for value in asked if value is not None]
    return of(known) if len(known) == len(asked) else None


def _sum_counts(parts: Sequence[Counts]) -> Counts:
    kind = type(parts[0])
    return kind.model_validate(
        {name: _of_all(sum, (getattr(part, name) for part in parts)) for name in kind.model_fields}
    )


def _sum_known_counts(parts: Iterable[Counts | None]) -> Counts | None:
    """Give counts of what not all clients had to do, such as holding idle connections."""
    known = [part for part in parts if part is not None]
    return _sum_counts(known) if known else None


def _statuses(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for status, count in chain.from_iterable(part.items() for part in parts):
        total[status] = total.get(status, 0) + count
    return total


def _samples(parts: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(parts)))[:MOST_SAMPLES]


def _times(parts: Sequence[Times]) -> Times:
    """Give the distribution of all times; without histograms only its ends are known."""
    from webdyno.core.histogram import Histogram, add_encoded  # numpy takes a while to import

    shortest = _of_all(min, (part.min for part in parts))
    longest = _of_all(max, (part.max for part in parts))
    encoded = [part.histogram for part in parts if part.histogram is not None]
    if len(encoded) < len(parts):
        return Times(min=shortest, max=longest)
    counts = [Histogram.decode(each).total for each in encoded]
    measured = [part for part, count in zip(parts, counts, strict=True) if count]
    if len(measured) < len(parts):
        # Those of none are reported as 0, which is no time.
        return _times(measured) if measured else parts[0]
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


def _latest(parts: Sequence[SendDelay]) -> SendDelay:
    return SendDelay(
        budget=max(part.budget for part in parts),
        p50=_of_all(max, (part.p50 for part in parts)),
        p99=_of_all(max, (part.p99 for part in parts)),
        max=_of_all(max, (part.max for part in parts)),
    )


def _clients(parts: Sequence[Client]) -> Client:
    return Client(
        threads=sum(part.threads for part in parts),
        cpu_user_s=sum(part.cpu_user_s for part in parts),
        cpu_sys_s=sum(part.cpu_sys_s for part in parts),
        busy=max(part.busy for part in parts),
        stalled_s=max(part.stalled_s for part in parts),
        stalled_windows=max(part.stalled_windows for part in parts),
        excluded_windows=max(part.excluded_windows for part in parts),
        wake_ups=_of_all(sum, (part.wake_ups for part in parts)),
        busy_waits=any(part.busy_waits for part in parts),
    )


def _windows(parts: Sequence[Sequence[Window]]) -> list[Window]:
    """Join windows of the same number; a client whose load ended before has none of the last."""
    return [_window([part for part in same if part is not None]) for same in zip_longest(*parts)]


def _window(parts: Sequence[Window]) -> Window:
    return Window(
        at_s=fmean(part.at_s for part in parts),
        length_s=fmean(part.length_s for part in parts),
        completed=sum(part.completed for part in parts),
        ramp_up=parts[0].ramp_up,
        cpu_s=_of_all(sum, (part.cpu_s for part in parts)),
        stalled=any(part.stalled for part in parts),
    )


def _wholes(parts: Sequence[Whole]) -> Whole:
    return Whole(
        length_s=max(part.length_s for part in parts),
        sent=_of_all(sum, (part.sent for part in parts)),
        completed=sum(part.completed for part in parts),
        by_status=_statuses(part.by_status for part in parts),
        failures=_sum_counts([part.failures for part in parts]),
        failure_samples=_samples(part.failure_samples for part in parts),
        bytes=_sum_counts([part.bytes for part in parts]),
        connections=_sum_counts([part.connections for part in parts]),
        server_closed=_of_all(sum, (part.server_closed for part in parts)),
        retried=_of_all(sum, (part.retried for part in parts)),
    )


def _endpoints(parts: Sequence[EndpointResult]) -> list[EndpointResult]:
    by_name: dict[str, list[EndpointResult]] = {}
    for part in parts:
        by_name.setdefault(part.endpoint, []).append(part)
    return [
        EndpointResult(
            endpoint=name,
            completed=sum(result.completed for result in same),
            failed=sum(result.failed for result in same),
            throughput_rps=sum(result.throughput_rps for result in same),
            latency_us=_times([result.latency_us for result in same]),
        )
        for name, same in by_name.items()
    ]
