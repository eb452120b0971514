"""One slot's work shared out among several clients, each a load generator on a host of its own."""

from collections.abc import Callable
from dataclasses import replace

from webdyno.generator.interface import LoadOrder, Share
from webdyno.model.load import Load
from webdyno.model.mistake import Mistake


def shares(order: LoadOrder, clients: int) -> list[LoadOrder]:
    """Give each of so many clients its part of a slot's work; together they do exactly all of it.

    Connections of every kind and a count are divided; parts differ by one at most. An open loop's
    timetable is drawn from the order's seed by each of them, which keeps what is its own: it is the
    one that a lone client would make. Raise Mistake where there are fewer connections, or requests,
    than clients.
    """
    _ensure_enough("load.connections", order.load.connections, clients)
    if order.count is not None:
        _ensure_enough("load.requests", order.count, clients)
    return [_part(order, Share(clients, index)) for index in range(clients)]


def _ensure_enough(key: str, there_are: int, clients: int) -> None:
    if there_are < clients:
        raise Mistake(
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
    )


def _own_connections(load: Load, own: Callable[[int], int]) -> Load:
    slow = load.slow_readers
    slow_connections = own(slow.connections) if slow else 0
    return load.model_copy(
        update={
            "connections": own(load.connections),
            "idle_connections": own(load.idle_connections),
            "slow_readers": slow.model_copy(update={"connections": slow_connections})
            if slow and slow_connections
            else None,
        }
    )
